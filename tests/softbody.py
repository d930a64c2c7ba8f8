#!/usr/bin/env python3
"""The soft body as a stranger runs it: small meshes of every kind fall, and hostile files are refused with their line.

Meshes are generated here. The program checks energy, momentum, ground, and (--verify) that yields change no bit; these
tests check that it does so, that its last line is what programs expect, and that a sanitized build has no complaint.
"""
import ctypes
import json
import math
import re
import resource
import struct
import subprocess
import tempfile
from pathlib import Path

import tap

NAMES = "steps newton cg pairs yields resumes growths energy penetration".split()
CHECKED = "address" in " ".join(tap.config("checked"))


def sphere(rings, x=0.0, y=0.0):
    """A closed ball of triangles, its poles single vertices."""
    around = 2 * rings
    v = [(x, y - 1, 0)] + [(x + math.sin(math.pi * r / rings) * math.cos(2 * math.pi * k / around),
                            y - math.cos(math.pi * r / rings),
                            math.sin(math.pi * r / rings) * math.sin(2 * math.pi * k / around))
                           for r in range(1, rings) for k in range(around)] + [(x, y + 1, 0)]
    f = []
    for k in range(around):
        n = (k + 1) % around
        f += [(0, 1 + k, 1 + n), (len(v) - 1, len(v) - 1 - around + n, len(v) - 1 - around + k)]
        for r in range(rings - 2):
            a, b = 1 + r * around, 1 + (r + 1) * around
            f += [(a + k, b + k, b + n), (a + k, b + n, a + n)]
    return v, f


def rod(rings):
    """A ball drawn out to a thin rod: edges of very different lengths. Loops that end early feed it energy."""
    v, f = sphere(rings)
    return [(40 * y, x, z) for x, y, z in v], f


def cloth(n):
    """A wavy sheet of quads: open edges, and polygons to be cut."""
    v = [(i / n, 0.1 * math.sin(6 * i / n) * math.cos(5 * j / n), j / n) for j in range(n + 1) for i in range(n + 1)]
    return v, [(j * (n + 1) + i, j * (n + 1) + i + 1, (j + 1) * (n + 1) + i + 1, (j + 1) * (n + 1) + i)
               for j in range(n) for i in range(n)]


def book(n):
    """Three sheets at one spine; with a stray vertex, a face twice and one without area."""
    v, f = [], []
    for a in (0.0, 2.1, 4.2):
        at = len(v)
        v += [(i / n * math.cos(a), j / n, i / n * math.sin(a)) for j in range(n + 1) for i in range(n + 1)]
        for j in range(n):
            for i in range(n):
                p = at + j * (n + 1) + i
                f += [(p, p + 1, p + n + 2), (p, p + n + 2, p + n + 1)]
    return v + [(9, 9, 9)], f + [f[0], (0, 0, 1)]


def joined(first, second):
    return first[0] + second[0], first[1] + [tuple(k + len(first[0]) for k in face) for face in second[1]]


def soup(count):
    """Triangles that share no corner, some of them needles."""
    v = [(math.sin(12.9 * k), math.sin(78.2 * k + 1), math.sin(37.7 * k + 2)) for k in range(3 * count)]
    return v, [(3 * k, 3 * k + 1, 3 * k + 2) for k in range(count)]


def write(path, mesh):
    lines = ["v %.9g %.9g %.9g\n" % tuple(p) for p in mesh[0]]
    path.write_text("".join(lines + ["f " + " ".join(str(k + 1) for k in face) + "\n" for face in mesh[1]]))


def start(program, *words):
    return subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=tap.HANGS)


def last_line(done):
    """The numbers of the last line, or what is wrong with it."""
    lines = done.stdout.splitlines()
    words = lines[-1].split() if lines else []
    if done.returncode != 0 or words[0::2] != NAMES or len(words) != 2 * len(NAMES):
        return None, f"exit code {done.returncode}, last line: {lines[-1:]}\n{done.stderr}"
    return {name: float(value) for name, value in zip(words[0::2], words[1::2])}, None


def png_size(path):
    head = path.read_bytes()[:24]
    return struct.unpack(">II", head[16:24]) if head[:8] == b"\x89PNG\r\n\x1a\n" else (0, 0)


class PngImage(ctypes.Structure):
    """png_image of png.h."""
    _fields_ = [("opaque", ctypes.c_void_p), ("version", ctypes.c_uint32), ("width", ctypes.c_uint32),
                ("height", ctypes.c_uint32), ("format", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("colours", ctypes.c_uint32), ("problem", ctypes.c_uint32), ("message", ctypes.c_char * 64)]


def png_bytes(path):
    """The picture as three bytes a pixel."""
    png, image = ctypes.CDLL("libpng16.so.16"), PngImage(version=1)
    png.png_image_begin_read_from_file(ctypes.byref(image), str(path).encode())
    image.format = 2  # PNG_FORMAT_RGB
    pixels = ctypes.create_string_buffer(3 * image.width * image.height)
    png.png_image_finish_read(ctypes.byref(image), None, pixels, 0, None)
    return pixels.raw


# The most of each moment of docs/fall.png that may differ visibly. In free fall sums only add up roundings; then
# contacts amplify the last bit, which depends on the number of threads and on the compiler.
MAY_DIFFER = (0.001, 0.001, 0.03, 0.06, 0.1, 0.2, 0.2, 0.2)


def picture_of_the_readme(program, folder):
    """docs/fall.png is what the demo draws."""
    done = start(program, "docs/examples/softbody/spot.obj", "--quiet", "--threads", 1, "--out", folder / "spot")
    problem = last_line(done)[1]
    shown, drawn = (path / "fall.png" for path in (tap.ROOT / "docs", folder / "spot"))
    if not problem and png_size(shown) != png_size(drawn):
        problem = f"{png_size(drawn)} pixels, not {png_size(shown)}"
    if not problem:
        width, height = png_size(shown)
        one, other = png_bytes(shown), png_bytes(drawn)
        moments = [[] for _ in MAY_DIFFER]
        for row in range(0, height, 4):
            for column in range(0, width, 4):
                at = 3 * (row * width + column)
                moments[column * len(moments) // width].append(max(abs(one[at + k] - other[at + k]) for k in (0, 1, 2)))
        shares = [sum(change > 30 for change in changes) / len(changes) for changes in moments]
        if any(share > most for share, most in zip(shares, MAY_DIFFER)):
            problem = f"of its moments differ {shares}, at most {MAY_DIFFER} may"
    tap.case("docs/fall.png is what the demo draws", problem)


def falls(name, program, mesh, folder, steps, threads, counted, yields):
    """One mesh, one run; what it counted is in its output."""
    path, out = folder / f"{name}.obj", folder / f"out_{name}_{threads}"
    write(path, mesh)
    done = start(program, path, "--steps", steps, "--threads", threads, "--pairs", 1, "--verify", "--out", out)
    numbers, problem = last_line(done)
    if not problem and (numbers["steps"] != steps or not 0 <= numbers["penetration"] <= 1e-3):
        problem = f"a strange result: {numbers}"
    if not problem and not (numbers["yields"] == numbers["resumes"] == numbers["growths"] >= yields):
        problem = f"yields, resumes and growths don't agree, or are fewer than {yields}: {numbers}"
    if not problem and len(re.findall(r"^step ", done.stdout, re.M)) != steps:
        problem = "there isn't a line per step"
    for words in (counted, "momentum", "energy", "bit for bit"):
        if not problem and words not in done.stdout:
            problem = f"nothing is said of {words}\n{done.stdout}"
    if not problem and (png_size(out / "fall.png") < (500, 100) or "nan" in (out / "final.obj").read_text()):
        problem = "the picture or the mesh that it wrote is broken"
    tap.case(f"{name} falls, {steps} steps on {threads} thread{'s' * (threads > 1)} ({program})", problem)


def same_again(program, folder):
    """Equal bits from two processes with as many threads; a different mesh would not do."""
    texts = []
    for k in (1, 2):
        start(program, folder / "two balls.obj", "--steps", 40, "--threads", 2, "--pairs", 1, "--quiet", "--out",
              folder / f"again{k}")
        texts.append((folder / f"again{k}" / "final.obj").read_text())
    tap.case("two processes agree", None if texts[0] == texts[1] else "they differ")


def is_refused(name, program, folder, content, expected, line):
    path = folder / "hostile.obj"
    path.write_bytes(content)
    done = start(program, path, "--steps", 1, "--out", folder / "never")
    wanted = f"softbody: {path}:{line}: " if line else f"softbody: {path}: "
    problem = None
    if done.returncode != 1 or not done.stderr.startswith(wanted) or expected not in done.stderr:
        problem = f"exit code {done.returncode}, not 1 with {wanted}... {expected}\n{done.stderr}"
    tap.case(f"refused: {name}", problem)


def hostile(program, folder):
    box = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
    cases = [
        ("an empty file", b"", "empty", 1),
        ("no face", box, "without a face", 4),
        ("no vertex", b"# nothing\n", "without a vertex", 1),
        ("cut within a face", box + b"f 1 2 3\nf 2 3", "three corners", 6),
        ("cut within a vertex", box + b"v 1 1", "three coordinates", 5),
        ("NaN", b"v 0 0 0\nv nan 0 0\n", "finite", 2),
        ("infinity", b"v 0 0 1e400\n", "finite", 1),
        ("an index too large", box + b"f 1 2 3\nf 1 2 9\n", "asks for vertex 9", 6),
        ("an index of 2^64", box + b"f 1 2 18446744073709551616\n", "count from 1", 5),
        ("index 0", box + b"f 0 1 2\n", "count from 1", 5),
        ("an index before the first", box + b"f -1 -2 -7\n", "before the first", 5),
        ("a byte 0", box + b"f 1 2\0 3\n", "byte 0", 5),
        ("a picture", b"\x89PNG\r\n\x1a\n\xff\xd8", "not text", 1),
        ("no area anywhere", b"v 0 0 0\nv 1 1 1\nv 2 2 2\nf 1 2 3\nf 1 1 2\n", "no triangle has an area", 0),
        ("all at one place", b"v 3 3 3\nv 3 3 3\nv 3 3 3\nf 1 2 3\n", "at one place", 0),
    ]
    for name, content, expected, line in cases:
        is_refused(name, program, folder, content, expected, line)
    for name, path, words in (("a missing file", folder / "nowhere.obj", "can't be opened"),
                              ("a folder", folder, "can't be read"),
                              ("a file without an end", Path("/dev/zero"), "byte 0")):
        done = start(program, path)
        tap.case(f"refused: {name}", None if done.returncode == 1 and words in done.stderr and str(path) in done.stderr
                 else f"exit code {done.returncode}\n{done.stderr}")


def command_lines(program, folder):
    mesh = folder / "cloth.obj"
    bad = [[], ["--steps"], [mesh, "--steps", "0"], [mesh, "--steps", "x"], [mesh, "--steps", "1.5"],
           [mesh, "--pairs", "-1"], [mesh, "--threads", "nan"], [mesh, "--threads", "1025"], [mesh, "--drop", "1e99"],
           [mesh, "--what"], [mesh, "--backend"], ["--plan"], [mesh, mesh]]
    for words in bad:
        done = start(program, *words)
        tap.case(f"not understood: {' '.join(Path(str(word)).name for word in words)}",
                 None if done.returncode == 2 and done.stderr.startswith("softbody: ") else
                 f"exit code {done.returncode}\n{done.stderr}")
    done = start(program, "--help")
    tap.case("--help", None if done.returncode == 0 and "--verify" in done.stdout else done.stdout + done.stderr)
    for words, said in ((["--backend", "abacus"], "abacus"), (["--out", "/proc/none"], "/proc/none"),
                        (["--out", "/dev/null"], "no folder")):
        done = start(program, mesh, "--steps", 1, "--out", folder / "x", *words)
        tap.case(f"refused: {' '.join(words)}", None if done.returncode == 1 and said in done.stderr else
                 f"exit code {done.returncode}\n{done.stderr}")


def full_disks(program, folder):
    """What can't be written whole is an error, and leaves what was there before."""
    mesh, out = folder / "cloth.obj", folder / "full"
    start(program, mesh, "--steps", 1, "--pairs", 1, "--out", out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # noqa: E731
    done = subprocess.run([program, mesh, "--steps", "2", "--pairs", "1", "--out", out], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, preexec_fn=limit,
                          restore_signals=False)  # Python ignores SIGXFSZ
    after = {path.name: path.read_bytes() for path in out.iterdir()}
    tap.case("a mesh cut short doesn't replace a whole one",
             None if done.returncode == 1 and "final.obj.part: writing failed: " in done.stderr and before == after and
             len(before) == 2 else f"exit code {done.returncode}, {[*before]}, {[*after]}\n{done.stderr}")
    for words in ((mesh, "--steps", "1", "--pairs", "1", "--out", out), ("--help",), ("--plan", "text")):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([program, *words], stdout=full, stderr=subprocess.PIPE, text=True)
        tap.case(f"standard output is full: {Path(str(words[0])).name}",
                 None if done.returncode == 1 and "No space left" in done.stderr else
                 f"exit code {done.returncode}\n{done.stderr}")


def plans(program):
    """What deciding takes on the device, in each pass of each loop: less than in the usual lowering, for launches from
    the top and from anywhere, and also on devices that do less."""
    done = start(program, "--plan", "json")
    plan = json.loads(done.stdout) if done.returncode == 0 else {"nodes": [], "gates": {"passes": []}}
    rows = {plan["nodes"][row["node"]]["name"]: row for row in plan["gates"]["passes"]}
    names = ["step", "NEWTON", "SOLVE", "SEARCH"]
    tap.case("the plan has a row per loop", None if list(rows) == names else f"{list(rows)}\n{done.stderr}")
    for name, row in rows.items():
        for lowering in ("fresh", "resume", "plain_fresh", "plain_resume"):
            fewer = all(ours < usual for ours, usual in zip(row[lowering], row["usual"]))
            tap.case(f"the plan has fewer kernels and nodes: {name}, {lowering}", None if fewer else str(row))
    table = start(program, "--plan", "text").stdout.splitlines()[-len(names):]
    documented = (tap.ROOT / "docs/cuda.md").read_text()
    tap.case("docs/cuda.md shows that table", None if table and all(f"{line}\n" in documented for line in table) else
             "\n".join(table))
    done = start(program, "--plan", "dance")
    tap.case("refused: --plan dance",
             None if done.returncode == 1 and "text, dot, json" in done.stderr else done.stderr)


def main():
    programs = ["build/softbody"] + [tap.checked("softbody")] * CHECKED
    problem = tap.run("ninja", *programs)
    if not tap.case("builds", problem):
        tap.finish()
    plain, checked = programs[0], programs[-1]
    two = joined(sphere(7), sphere(7, 0.15, 2.4))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for threads in (1, 2):
            falls("two balls", plain, two, folder, 60, threads, "0 open, 0 with more", 1)
        falls("cloth", plain, cloth(10), folder, 40, 2, "40 open, 0 with more", 0)
        falls("rod", plain, rod(10), folder, 60, 1, "0 open, 0 with more", 1)
        falls("book", plain, book(8), folder, 40, 2, "8 with more than two", 0)
        falls("soup", checked, soup(60), folder, 25, 2, "180 open", 0)
        falls("triangle", checked, ([(0, 0, 0), (1e9, 0, 0), (0, 1e9, 0)], [(0, 1, 2)]), folder, 50, 1, "3 open", 0)
        falls("small balls", checked, joined(sphere(5), sphere(5, 0.15, 2.4)), folder, 60, 2, "0 open, 0 with more", 1)
        same_again(plain, folder)
        picture_of_the_readme(plain, folder)
        hostile(checked, folder)
        command_lines(checked, folder)
        full_disks(plain, folder)
        plans(checked)
    tap.finish()


main()
