"""The parts of bench/tools/gpu.py that run the conformance suite: by itself, with random lists, and under
compute-sanitizer."""
import json
import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

from gpu_process import DRY, LOGS, ROOT

LISTS_SECONDS = 480  # for random lists: as many run as fit
WORKERS = min(6, len(os.sched_getaffinity(0)))
CONDITIONAL = {"DO_WHILE", "WHILE", "IF", "SWITCH", "CHECKPOINT"}
TOOLS = {"memcheck": ["--report-api-errors", "no"], "racecheck": [], "initcheck": [], "synccheck": []}
CLEAN = re.compile(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards")


# ---- conformance ----------------------------------------------------------------------------------------------------

def all_cases():
    """{chapter/name: constructs}, from the suite's list."""
    found = re.findall(r"^CASE\((\w+), (\w+), (?:0|\"(.*?)\")\)", (ROOT / "tests/conformance/cases.def").read_text(),
                       re.M)
    return {f"{chapter}/{name}": set(needs.split()) for chapter, name, needs in found}


def filters(cases):
    """Patterns for the runner, which takes plain names as parts of names, and patterns as whole names."""
    return [f"[{name[0]}]{name[1:]}" for name in cases]


def batches(cases, size=8):
    cases = list(cases)
    return [cases[k:k + size] for k in range(0, len(cases), size)]


def cases_of(options):
    cases = list(all_cases())
    return [name for name in cases if name in ("plain/two_tasks", "loops/counter")] if options.quick else cases


def run_cases(part, name, words, cases, env):
    """Runs some cases in one process. @return their outcomes, and the capability report"""
    out = LOGS / f"{part.name}-{name}.json"
    out.unlink(missing_ok=True)
    done = part.call(name, ["build/tests/conformance/conformance", *words, "--json", out,
                            *filters(cases)], env=env)
    try:
        column = json.loads(out.read_text())["backends"][0]
        out.unlink()
    except (OSError, ValueError, LookupError):
        column = {"cases": [], "constructs": [], "device": "", "driver": "",
                  "unavailable": done.trouble(5) or "there is no JSON"}
    found = {f"{one['chapter']}/{one['case']}": (one["outcome"], one.get("why", "")) for one in column["cases"]}
    lost = ("FAIL", column["unavailable"] or "the runner came to no end")
    return {case: found.get(case, lost) for case in cases}, column


def run_suite(part, label, words, cases, env, alone=True):
    """Runs the suite in several processes at a time. A case that fails runs once more by itself."""
    outcomes, report = {}, {}
    with ThreadPoolExecutor(WORKERS) as pool:
        jobs = [pool.submit(run_cases, part, f"{label}-{k}", words, few, env) for k, few in enumerate(batches(cases))]
        for job in jobs:
            few, column = job.result()
            outcomes.update(few)
            report = column if column["constructs"] or not report else report
    for case in [case for case, (outcome, _) in outcomes.items() if outcome == "FAIL"][:20] if alone else []:
        again, _ = run_cases(part, f"{label}-alone-{case.replace('/', '-')}", words, [case], env)
        if again[case][0] == "pass":
            outcomes[case] = ("pass", "failed beside other processes, passed by itself")
    return {"outcomes": outcomes, "constructs": {one["construct"]: one["how"] for one in report["constructs"]},
            "whys": {one["construct"]: one["why"] for one in report["constructs"]},
            "device": report["device"], "driver": report["driver"], "unavailable": report["unavailable"]}


def check_suite(part, label, ran):
    by = {}
    for case, (outcome, why) in ran["outcomes"].items():
        by.setdefault(outcome, []).append(f"{case}: {why}".rstrip(": "))
    bad = by.get("FAIL", []) + by.get("UNEXPECTED PASS", [])
    counts = ", ".join(f"{len(names)} {outcome}" for outcome, names in sorted(by.items()))
    part.figures[label] = dict(ran, counts=counts)
    problem = ran["unavailable"] or ("\n".join([counts] + [one[:600] for one in bad[:12]]) if bad else None) or \
        (None if by.get("pass") else "no case passed: " + counts)
    part.check(label, problem, counts)
    for one in by.get("skip", []):
        print(f"       skipped: {one}", flush=True)


def native_on_real(part, options):
    """The suite on the real driver, or the kept result of an earlier run of the same program."""
    runner = part.tree / "build/tests/conformance/conformance"
    kept = runner.with_name("real.json")
    key = [options.backend, options.quick, DRY, runner.stat().st_mtime if runner.exists() else 0]
    try:
        found = json.loads(kept.read_text())
        if found["key"] == key:
            return found
    except (OSError, ValueError, LookupError):
        pass
    found = run_suite(part, "native", ["--backend", options.backend], cases_of(options), part.real)
    kept.write_text(json.dumps(dict(found, key=key)))
    return found


def random_lists(part, options, label, words, share):
    """Runs as many as the time allows, in several processes at a time, each with its own seeds."""
    chunk, most = (20, 2) if options.quick else (250, 400)
    ends, done_lists, bad = time.monotonic() + min(part.left(), LISTS_SECONDS) * share, [], []

    def one(k):
        if time.monotonic() > ends or bad:
            return
        done = part.call(f"{label}-{k}", ["build/tests/conformance/random_lists", "--backend", options.backend, *words,
                                          "--seed", 1 + k * chunk, "--random", chunk])
        if part.left() <= 0 and done.late:
            return
        skipped = "# SKIP" in done.text
        if skipped or done.trouble():
            bad.append(done.trouble(60) or done.text[-600:])
        else:
            done_lists.append(chunk)
            done.log.unlink()
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, range(most)))
    part.figures[label] = sum(done_lists)
    part.check(label, bad[0] if bad else None if done_lists else "not one process came to its end",
               f"{sum(done_lists)} lists")


def conformance(part, options):
    (part.tree / "build/tests/conformance/real.json").unlink(missing_ok=True)
    check_suite(part, "native", native_on_real(part, options))
    check_suite(part, "host-gated", run_suite(part, "gated", ["--backend", options.backend, "--host-gated"],
                                              cases_of(options), part.real))
    random_lists(part, options, "random lists", [], 0.5)
    random_lists(part, options, "random lists, host-gated", ["--host-gated"], 0.8)


# ---- compute-sanitizer ----------------------------------------------------------------------------------------------

def find_sanitizer():
    usual = "/usr/local/cuda/bin/compute-sanitizer"
    return shutil.which("compute-sanitizer") or (usual if not DRY and os.access(usual, os.X_OK) else None)


def sanitize(part, options, program, tool, label, words, cases):
    front = [program, "--tool", tool, "--error-exitcode", "99", "--print-limit", "20", *TOOLS[tool]] if program else []
    done = part.call(f"{tool}-{label}", [*front, "build/tests/conformance/conformance", "--here", "--backend",
                                         options.backend, *words, *filters(cases)],
                     env={**part.real, "GK_CUDA_PROBE": "0"} if words else None)  # false errors in bodies of nodes
    problem = done.trouble(40)
    if not problem and "# SKIP" in done.text and not re.search(r"^ok \d+ - [^#]*$", done.text, re.M):
        problem = "no case ran:\n" + done.text[-600:]
    if not problem and program and not CLEAN.search(done.text):
        problem = f"{tool} didn't say that all is well:\n" + done.text[-1500:]
    return f"{tool}, {label}", problem, f"{len(cases)} cases"


def sanitizer(part, options):
    program = find_sanitizer()
    if not program and not DRY:
        part.check("compute-sanitizer", "it is neither in PATH nor in /usr/local/cuda/bin")
        return
    wanted = [name for name in cases_of(options) if name != "sections/overlap_measured"]  # nothing overlaps under it
    flat = [name for name, needs in all_cases().items() if name in wanted and not needs & CONDITIONAL]
    work = [(tool, f"{kind}-{k}", words, few) for tool in TOOLS
            for kind, words, cases in (("flat", [], flat), ("host-gated", ["--host-gated"], wanted))
            for k, few in enumerate(batches(cases, 30))]
    with ThreadPoolExecutor(WORKERS) as pool:
        for result in pool.map(lambda one: sanitize(part, options, program, *one), work):
            part.check(*result)
