#!/usr/bin/env python3
"""gk-info: its text and its JSON, on this machine, on the simulated driver as it was in each version and with some
answers that are no, and where a backend hangs, crashes or is lost. docs/info.md has what it prints, and the tables of
what differs; `tests/info.py --update` writes them."""
import ctypes
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap

import tap

PROGRAM = "build/tests/info/gk-info"
PAGE = tap.ROOT / "docs" / "info.md"
VERSIONS = ["11.4", "12.2", "12.3", "12.4", "12.6", "12.8", "13.0"]
NOS = ["conditional", "P1a", "P1d", "P2b", "P17b", "P4e", "P9a", "overlap"]
BACKENDS = ["cuda", *([] if tap.config("hip_left_out") else ["hip"]), *tap.config("vulkan_backend"), "openmp"]
COLUMNS = 118  # of what is printed in the page
KEPT = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "LLVM_PROFILE_FILE")
NO_VULKAN = {"VK_ICD_FILENAMES": "/nowhere", "VK_DRIVER_FILES": "/nowhere"}  # else a driver of this machine is found
HOME = tempfile.TemporaryDirectory()


def ask(*arguments, code=0, **env):
    """What it prints, or an exception with all there is to say."""
    clean = {**{name: os.environ[name] for name in KEPT if name in os.environ}, **NO_VULKAN}
    done = subprocess.run([PROGRAM, *arguments], env=dict(clean, HOME=HOME.name, **env), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=tap.HANGS)
    text, errors = done.stdout.decode(), done.stderr.decode(errors="replace")
    if done.returncode != code:
        raise ValueError(f"exit code {done.returncode}, not {code}: {arguments} {env}\n{text}{errors}")
    return text if code != 2 else errors


def ask_json(*arguments, **options):
    return json.loads(ask("--json", *arguments, **options), object_pairs_hook=no_key_twice)


def no_key_twice(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"a key stands twice: {keys}")
    return dict(pairs)


def simulated(version="13.0", no="", **more):
    return dict(LD_LIBRARY_PATH="build/simgpu", CUDA_HOME="build/simgpu", SIMGPU_VERSION=version, SIMGPU_NO=no, **more)


def case(name, judge):
    """A case; `judge` answers what is wrong, or raises it."""
    try:
        problem = judge()
    except (ValueError, KeyError, IndexError, subprocess.TimeoutExpired) as wrong:
        problem = f"{type(wrong).__name__}: {wrong}"
    tap.case(name, problem)


def differs(what, found, wanted):
    return None if found == wanted else f"{what}: {found!r}, not {wanted!r}"


def backend(report, name):
    return next(one for one in report["backends"] if one["name"] == name)


def fact(of, group, name):
    return next(one for one in of["facts"] if (one["group"], one["name"]) == (group, name))


# ---- keys -----------------------------------------------------------------------------------------------------------

KEYS = {
    "": {"format": int, "version": str, "default": (str, type(None)), "trouble": str, "facts": list, "backends": list},
    "backends": {"name": str, "usable": bool, "why": str, "trouble": str, "facts": list, "devices": list},
    "devices": {"ordinal": int, "usable": bool, "why": str, "name": str, "driver": str, "threads": int,
                "constructs": list, "facts": list},
    "constructs": {"construct": str, "how": str, "why": str},
    "facts": {"group": str, "name": str, "value": (str, type(None)), "why": str},
}
HOWS = {"refused", "on_host", "in_series", "batched", "native", "unknown"}


def wrong_keys(value, name=""):
    """What isn't as KEYS has it, all the way down."""
    if set(value) != set(KEYS[name]):
        return [f"{name}: {sorted(value)}"]
    wrong = [f"{name}.{key} is {value[key]!r}" for key, kind in KEYS[name].items() if not isinstance(value[key], kind)]
    if name == "constructs" and value["how"] not in HOWS:
        wrong.append(f"how {value['how']}")
    for key in KEYS[name]:
        if isinstance(value[key], list):
            wrong += [problem for one in value[key] for problem in wrong_keys(one, key)]
        if key == "facts":
            names = [(one["group"], one["name"]) for one in value[key]]
            wrong += [f"the fact {one} stands twice" for one in set(names) if names.count(one) > 1]
    return wrong


def one_line(text):
    return " ".join(text.split())


def unsaid(report, text):
    """What the JSON has and the text lacks."""
    flat = one_line(text)

    def walk(value):
        if isinstance(value, dict):
            words = [value[key] for key in ("name", "value", "why", "driver", "construct") if value.get(key)]
            return [word for word in words if one_line(word) not in flat] + \
                [word for child in value.values() if isinstance(child, list) for one in child for word in walk(one)]
        return []
    return walk(report)


def judge_both(text, report):
    wrong = wrong_keys(report)
    trouble = [report["trouble"], *(one["trouble"] for one in report["backends"])]
    return "\n".join(wrong + [f"not in the text: {word}" for word in unsaid(report, text)] + [t for t in trouble if t])


def same_both(*arguments, **options):
    text = ask(*arguments, **options)
    moving = re.compile(r"^( +(microseconds|overlaps) +)\d+", re.M)  # differ from time to time
    report = ask_json(*arguments, **options)
    for one in report["backends"]:
        for device in one["devices"]:
            for known in device["facts"]:
                if known["name"] in ("microseconds", "overlaps"):
                    known["value"] = "some"
    return judge_both(moving.sub(r"\1some", text), report)


# ---- the page -------------------------------------------------------------------------------------------------------

# Rows that the machine decides, by how they begin; the others where the driver is a real one, if any.
ALWAYS = ["library", "cache", "microseconds", "overlaps", "HOME"]
MACHINE = ["name", "driver", "threads", "nvtx", r"libnvrtc\S*"]


def masked(text, rows):
    text = re.sub(rf"^    ({'|'.join(rows)})( +).*$", r"    \1\2...", text, flags=re.M)
    text = re.sub(r"^  (openmp 0|vulkan)( +).*$", r"  \1\2...", text, flags=re.M)
    text = re.sub(r"^  hip  .*\n(?: {13}.*\n)*", "  hip        ...\n", text, flags=re.M)  # AMD's runtime may be here
    text = re.sub(r"^hip\n(?: .*\n)+\n", "", text, flags=re.M)
    text = re.sub(r"\S*/(lib(?:cuda|nvrtc)\.so\S*),", r".../\1,", text)
    return "\n".join(wrapped(line) for line in text.splitlines())


def wrapped(line):
    """As on a terminal: what comes behind the last gap of two blanks or more is continued under it."""
    if len(line) <= COLUMNS:
        return line
    hang = [found.end() for found in re.finditer(r" {2,}", line) if found.end() < 60]
    return textwrap.fill(line, COLUMNS, subsequent_indent=" " * hang[-1], break_long_words=False,
                         break_on_hyphens=False)


def block(text):
    return f"```text\n{text}\n```"


def constructs(report):
    return {one["construct"]: (one["how"].replace("_", " "), one["why"])
            for one in backend(report, "cuda")["devices"][0]["constructs"]}


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table_of_versions():
    reports = {version: ask_json("--backend", "cuda", **simulated(version)) for version in VERSIONS}
    seen = {version: constructs(report) for version, report in reports.items()}
    lines, sentences = [row("", *VERSIONS), row(*["---"] * (len(VERSIONS) + 1))], []
    for name in seen["13.0"]:
        if len({seen[version][name] for version in VERSIONS}) == 1:
            continue
        cells = []
        for version in VERSIONS:
            how, why = seen[version][name]
            why = why.replace(f"is for CUDA {version}", "is for CUDA ...")
            if why not in sentences:
                sentences.append(why)
            cells.append(f"{how} ({sentences.index(why) + 1})")
        lines.append(row(name, *cells))
    devices = {version: backend(report, "cuda")["devices"][0] for version, report in reports.items()}
    lines.append(row("kernels by", *(fact(devices[v], "kernels", "compiler")["value"] for v in VERSIONS)))
    own = {v: fact(devices[v], "kernels", "own")["value"] for v in VERSIONS}
    own.update((v, "PTX") for v in VERSIONS if v < "13.0" and own[v] == "machine code")  # of an nvcc as old as v
    lines.append(row("gk's own", *own.values()))
    answers = {v: [one["value"] for one in devices[v]["facts"] if re.match(r"P\d", one["name"])] for v in VERSIONS}
    lines.append(row("answers: yes, not asked", *(f"{answers[v].count('yes')}, {answers[v].count(None)}"
                                                  for v in VERSIONS)))
    return "\n".join(lines + [""] + [f"{k}. {why}" for k, why in enumerate(sentences, 1)])


def table_of_answers():
    usual = constructs(ask_json("--backend", "cuda", **simulated()))
    lines = [row("answered with no", "construct", "how", "why"), row(*["---"] * 4)]
    for no in NOS:
        for name, (how, why) in constructs(ask_json("--backend", "cuda", **simulated(no=no))).items():
            if usual[name] != (how, why) and not why.startswith("As "):
                lines.append(row(f"`{no}`", name, how, why))
    return "\n".join(lines)


PARTS = {
    "machine": lambda: block(masked(ask(), ALWAYS + MACHINE)),
    "simulated": lambda: block(masked(ask("--backend", "cuda", **simulated()).split("\nthis process\n")[0], ALWAYS)),
    "versions": table_of_versions,
    "answers": table_of_answers,
}
PART = r"<!-- tests/info.py: {} -->\n(.*?)\n<!-- end -->"


def has_cuda():
    try:
        return bool(ctypes.CDLL("libcuda.so.1"))
    except OSError:
        return False


def judge_page(name, update):
    text = PAGE.read_text()
    found = re.search(PART.format(name), text, re.S)
    if not found:
        return f"docs/info.md has no part {name}"
    made = PARTS[name]()
    if update:
        PAGE.write_text(text[:found.start(1)] + made + text[found.end(1):])
        return None
    if one_line(found[1]) == one_line(made):
        return None
    return f"run tests/info.py --update and look at the difference; now it is\n{made}"


def judge_keys():
    """The page's tables have the keys that there are."""
    text = PAGE.read_text().split("\n## JSON\n")[1]
    named = set(re.findall(r"^\| `(\w+)` \|", text, re.M)) | {"group", "value"}  # these two in the words below
    rows = re.findall(r"^\|[^|]*\| `(\w+)` \| (.*) \|$", text, re.M)
    facts = {name: set(re.findall(r"`(\w+)`", rest)) for name, rest in rows}
    report = ask_json(**simulated())
    cuda = backend(report, "cuda")
    told = {(one["group"], one["name"]) for of in (report, cuda, cuda["devices"][0]) for one in of["facts"]}
    missing = [f"{group}.{name} isn't in the page" for group, name in sorted(told)
               if name not in facts.get(group, ()) and group not in ("environment", "nvrtc") and name[0] != "P"]
    return differs("keys", named, {key for keys in KEYS.values() for key in keys}) or "\n".join(missing)


# ---- cases ----------------------------------------------------------------------------------------------------------

def judge_environment():
    code = "".join(path.read_text() for folder in ("common", "cuda", "fallback")
                   for path in sorted((tap.ROOT / folder).rglob("*.c")) if "common/info" not in path.as_posix()
                   and (path.parent.name not in ("hip", "vulkan") or path.parent.name in BACKENDS))
    read = set(re.findall(r"getenv\(\"(\w+)\"\)", code)) | {"LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES",
                                                           "NVTX_INJECTION64_PATH"}
    asked = {"omp_get_thread_limit": "OMP_THREAD_LIMIT", "omp_get_proc_bind": "OMP_PROC_BIND",
             "omp_get_num_places": "OMP_PLACES"}
    read |= {name for call, name in asked.items() if call in code}
    report = ask_json("--backend", "openmp", GK_LOG="none")
    told = {one["name"] for one in report["facts"] if one["group"] == "environment"}
    return differs("variables", told, read) or differs("GK_LOG", fact(report, "environment", "GK_LOG")["value"], "none")


def judge_version(version):
    report = ask_json("--backend", "cuda", **simulated(version))
    device = backend(report, "cuda")["devices"][0]
    how = {one["construct"]: one["how"] for one in device["constructs"]}
    old, newest = float(version) < 12.4, version == "13.0"
    return differs("WHILE", how["WHILE"], "batched" if old else "native") or \
        differs("driver", device["driver"], f"CUDA {version}") or \
        differs("library", fact(backend(report, "cuda"), "driver", "cuda")["value"], version) or \
        differs("P1a", fact(device, "probe", "P1a")["value"], None if old else "yes") or \
        differs("P9a", fact(device, "probe", "P9a")["value"], "yes" if newest else None) or \
        differs("own", fact(device, "kernels", "own")["value"] in ("COPY and FILL, by the compiler",) if old else
                fact(device, "kernels", "own")["value"] in ("machine code", "PTX")[:1 if newest else 2], True)


def judge_answer(name, way):
    device = backend(ask_json("--backend", "cuda", **simulated(no=name)), "cuda")["devices"][0]
    found = fact(device, "probe", name)
    return differs("answer", found["value"], "no") or (None if way in found["why"] else found["why"])


def judge_arguments():
    wrong = [(["--jsn"], "--jsn"), (["--backend"], "--backend"), (["--timeout", "soon"], "soon"),
             (["--timeout", "0"], "--timeout 0"), (["--timeout", "9999"], "3600"), (["x"], "x"),
             (["--backend", "openmp", "--backend", "nobody"], "nobody: there is no such backend; there are: cuda")]
    problems = [f"{arguments}: {said}" for arguments, word in wrong
                for said in [ask(*arguments, code=2)] if word not in said]
    usage = ask("--help")
    problems += [f"--help has no {word}" for word in ("--json", "--backend", "--timeout", "Exit code") if
                 word not in usage]
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([PROGRAM, "--backend", "openmp"], stdout=full, stderr=subprocess.PIPE, text=True)
    if done.returncode != 2 or "No space left" not in done.stderr:
        problems.append(f"/dev/full: {done.returncode} {done.stderr}")
    done = subprocess.run(["/bin/sh", "-c", f"exec {PROGRAM} --backend openmp <&- >&-"], stderr=subprocess.PIPE,
                          text=True)
    if done.returncode != 2 or "can't be printed" not in done.stderr:
        problems.append(f"closed: {done.returncode} {done.stderr}")
    return "\n".join(problems)


def judge_none():
    report = ask_json("--backend", "cuda", code=1, **simulated(SIMGPU_DEVICES="0"))
    cuda = backend(report, "cuda")
    return differs("usable", cuda["usable"], False) or differs("devices", cuda["devices"], []) or \
        (None if "no CUDA-capable device" in cuda["why"] else cuda["why"]) or \
        differs("default", report["default"], None)


def judge_default():
    env = simulated(SIMGPU_DEVICES="2")
    report = ask_json(**env)
    names = [one["name"] for one in report["backends"]]
    return differs("order", names, BACKENDS) or differs("default", report["default"], "cuda") or \
        differs("devices", [one["ordinal"] for one in backend(report, "cuda")["devices"]], [0, 1]) or \
        differs("asked for", ask_json(GK_BACKEND="openmp", **env)["default"], "openmp") or \
        differs("nobody", ask_json(GK_BACKEND="nobody", **env)["default"], None)


def odd(what="", *arguments, **options):
    return ask_json("--timeout", "5", *arguments, GK_MODULES="build/tests/info/odd.so", ODD=what, **options)


def ordinals(one, usable):
    return [device["ordinal"] for device in one["devices"] if device["usable"] == usable]


def judge_odd():
    report = odd()
    one = backend(report, "odd")
    whys = [device["why"] for device in one["devices"]]
    wanted = ["", "it hangs", "signal 9", "lost: \"it\"\nfor \ufffd good", ""]
    return "\n".join(wrong_keys(report)) or \
        differs("usable", ordinals(one, True), [0, 4]) or differs("others", ordinals(one, False), [1, 2, 3]) or \
        "\n".join(why for why, word in zip(whys, wanted) if word not in why) or \
        differs("default", report["default"], "odd") or \
        differs("openmp", backend(report, "openmp")["usable"], True) or \
        differs("fact", list(fact(one, "zoo", "none").values()), ["zoo", "none", None, "because"]) or \
        differs("fact of a device", fact(one["devices"][0], "own", "colour")["value"], "a\tblue") or \
        differs("name", one["devices"][0]["name"], "odd \"one\"\x0b\x01 \u00e9\ufffd\ufffd\ufffd") or \
        differs("hows", [line["how"] for line in one["devices"][0]["constructs"]], ["batched", "unknown"])


def judge_odd_text():
    text = ask("--timeout", "5", "--backend", "odd", GK_MODULES="build/tests/info/odd.so")
    wanted = ["  odd 1     can't be opened: nothing came", "  odd 3     can't be opened: lost: \"it\" for \ufffd good",
              "    KERNEL  batched  Two lines.\n", "    animal  gn\u00fc\n", "    none    -  because\n"]
    return "\n".join(f"not there: {word!r}" for word in wanted if one_line(word) not in one_line(text))


def judge_stubborn():
    hanging = backend(odd("all hang", "--backend", "odd", code=1), "odd")
    lost = backend(odd("all lost", "--backend", "odd", code=1), "odd")
    facts = backend(odd("facts hang"), "odd")
    return differs("all hang", ordinals(hanging, False), [0, 1, 2, 3]) or \
        (None if "no more were asked" in hanging["trouble"] else hanging["trouble"]) or \
        differs("all lost", ordinals(lost, False), list(range(16))) or \
        differs("facts hang", facts["devices"], []) or (None if "it hangs" in facts["why"] else facts["why"])


def judge_modules():
    loading = odd("load hangs")
    ending = backend(odd("end"), "odd")["trouble"]
    path = ask_json("--backend", "openmp", GK_MODULES="build/nothing.so")
    names = [one["name"] for one in loading["backends"]]
    return differs("load hangs", names, BACKENDS) or \
        (None if "left out" in loading["trouble"] else loading["trouble"]) or \
        (None if "exit code 7" in ending else ending) or \
        differs("no facts", backend(odd("no facts"), "odd")["facts"], []) or \
        (None if "build/nothing.so" in fact(path, "gk", "modules")["why"] else str(path["facts"]))


def judge_hanging_gpu():
    report = ask_json("--timeout", "60", **simulated(no="ends", SIMGPU_DEVICES="2"))
    cuda = backend(report, "cuda")
    return differs("others", ordinals(cuda, False), [0, 1]) or \
        differs("openmp", backend(report, "openmp")["usable"], True) or \
        "\n".join(one["why"] for one in cuda["devices"] if "didn't end within" not in one["why"])


def judge_lost_gpu():
    """Of what is asked of the driver in one process, everything fails from the 40th call on."""
    report = ask_json(**simulated(SIMGPU_FAIL="40:700:lost", SIMGPU_DEVICES="2", SIMGPU_ALLOW="leak"))
    cuda = backend(report, "cuda")
    return differs("others", ordinals(cuda, False), [0, 1]) or \
        differs("openmp", backend(report, "openmp")["usable"], True) or \
        "\n".join(one["why"] for one in cuda["devices"] if f"device {one['ordinal']} failed as" not in one["why"])


def judge_terminal():
    """Its width is heeded, and nothing else is changed."""
    plain = ask("--backend", "openmp")
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 90, 0, 0))
    clean = {**{name: os.environ[name] for name in KEPT if name in os.environ}, **NO_VULKAN}
    process = subprocess.Popen([PROGRAM, "--backend", "openmp"], env=dict(clean, HOME=HOME.name), stdout=child)
    os.close(child)
    said = b""
    try:
        while piece := os.read(parent, 4096):
            said += piece
    except OSError:
        pass  # how the end of a terminal is told
    os.close(parent)
    text = said.decode()
    long = [line for line in text.splitlines() if len(line) > 90 and " " in line[40:]]
    return differs("exit code", process.wait(), 0) or differs("words", text.split(), plain.split()) or \
        "\n".join(long) or (None if len(text.splitlines()) > len(plain.splitlines()) else "nothing was wrapped")


def main():
    update = "--update" in sys.argv
    for name in PARTS:
        if name == "machine" and (has_cuda() or not {"hip", "vulkan"} <= set(BACKENDS)):
            tap.skip("docs/info.md: machine", "it is about one without CUDA's driver, and gk with all backends")
        else:
            case(f"docs/info.md: {name}", lambda: judge_page(name, update))
    if update:
        tap.finish()
    case("its keys", judge_keys)
    case("on this machine", same_both)
    case("on simulated CUDA", lambda: same_both(**simulated()))
    case("variables are those that gk reads", judge_environment)
    for version in VERSIONS:
        case(f"CUDA {version}", lambda: judge_version(version))
    for name, way in (("P2b", "plain gates"), ("P4e", "chain branches"), ("P9a", "no SWITCH"), ("P1a", "host-gated")):
        case(f"{name} answered with no", lambda: judge_answer(name, way))
    case("arguments", judge_arguments)
    case("no device", judge_none)
    case("what is opened where nothing is named", judge_default)
    case("devices that hang, crash or are lost", judge_odd)
    case("the same as text", judge_odd_text)
    case("backends that do nothing else", judge_stubborn)
    case("modules that don't load, or don't end", judge_modules)
    case("GPUs that hang", judge_hanging_gpu)
    case("GPUs that are lost", judge_lost_gpu)
    case("a terminal", judge_terminal)
    tap.finish()


main()
