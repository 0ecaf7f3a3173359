#!/usr/bin/env python3
"""Counts the instructions of a few small cases by callgrind and compares them with the committed numbers, so that speed is not lost unseen.

    tools/count-instructions.py BUILD            compares; exit code 1 on a change that is not declared, 77 when nothing can be compared
    tools/count-instructions.py BUILD --write    rewrites the committed numbers (also: meson compile -C BUILD count-instructions); commit them with what moved them

Counted is only this project's own code (the benchmark program, linked statically with the library), apart for set-up and one evaluation: not the
C, FFT and BLAS libraries, which differ between systems. Order, leaf size, root cube and threads are named, so neither a profile nor a clock
decides anything. The counts belong to one compiler version and instruction set (Valgrind offers AVX2, not AVX-512); with another one the comparison
is skipped, and says so. A rise above 3 % fails; so does a fall above 10 %, since the old numbers would then hide later rises."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBERS = os.path.join(HERE, "..", "tests", "instructions.json")
RISE, FALL = 0.03, 0.10
SKIP = 77
# Name: distribution, digits, order, leaf size. 20,000 points, one thread.
CASES = {
    "uniform 3 digits": "dist=uniform digits=3 order=4 leaf=64",
    "uniform 6 digits": "dist=uniform digits=6 order=6 leaf=64",
    "uniform 9 digits": "dist=uniform digits=9 order=8 leaf=128",
    "ellipsoid 3 digits": "dist=ellipsoid digits=3 order=4 leaf=64",
    "ellipsoid 6 digits": "dist=ellipsoid digits=6 order=6 leaf=64",
}
COMMON = "n=20000 root=1 threads=1 runs=0 samples=0"


def skip(why):
    print(f"count-instructions: skipped: {why}")
    sys.exit(SKIP)


def fail(why):
    print(f"count-instructions: error: {why}", file=sys.stderr)
    sys.exit(1)


def self_cost_by_function(path):
    """Instructions of the program's own functions in one callgrind dump: {function: count}."""
    names, counts, objects = {}, {}, {}
    own, function, skip_next = False, None, False

    def full(table, text):
        number, _, name = text.partition(" ")
        if name:
            table[number] = name
        return table.get(number, number)
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            line = line.rstrip("\n")
            if line.startswith("ob="):
                own = os.path.basename(full(objects, line[3:])).startswith("bench-cpu")
            elif line.startswith("cob="):
                full(objects, line[4:])
            elif line.startswith("fn="):
                function = full(names, line[3:])
            elif line.startswith("cfn="):
                full(names, line[4:])
            elif line.startswith("calls="):
                skip_next = True  # the next line is the cost of the called function
            elif re.match(r"[+\-*\d]", line) and function:
                if skip_next:
                    skip_next = False
                elif own:
                    counts[function] = counts.get(function, 0) + int(line.split()[1])
    return counts


def count(program, words, folder):
    """What the program reports, and {part: {function: instructions}} of one case."""
    out = os.path.join(folder, "out")
    environment = dict(os.environ, FMM_PROFILE="", XDG_STATE_HOME=folder, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
    command = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-before=fmm_plan_execute", program]
    said = subprocess.run(command + words.split() + COMMON.split(), stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, timeout=600)
    if said.returncode:
        fail(f"{' '.join(command)} {words}: {said.stderr.strip()[-400:]}")
    # The dump made before the evaluation has a number; the last one, of the evaluation, has none.
    parts = {"set-up": self_cost_by_function(out + ".1"), "evaluation": self_cost_by_function(out)}
    parts["set-up"] = {f: n for f, n in parts["set-up"].items() if not f.startswith("fmm_generate")}
    for name in os.listdir(folder):
        if name.startswith("out"):
            os.remove(os.path.join(folder, name))
    return json.loads(said.stdout), parts


def largest(parts):
    """The functions that hold a part's instructions, for the report of a change."""
    return {f: n for f, n in sorted(parts.items(), key=lambda item: -item[1])[:8]}


def measure(program):
    counted, key = {}, ""
    with tempfile.TemporaryDirectory() as folder:
        for name, words in CASES.items():
            report, parts = count(program, words, folder)
            key = f"{report['compiler']} {report['simd']}"
            counted[name] = {part: {"instructions": sum(functions.values()), "largest": largest(functions)} for part, functions in parts.items()}
    return key, counted


def compare(was, now):
    """Prints every part of every case; returns the number of changes that need to be declared."""
    undeclared = 0
    for name in CASES:
        for part in ("set-up", "evaluation"):
            old, new = was.get(name, {}).get(part), now[name][part]
            if not old:
                print(f"{name}, {part}: {new['instructions']:,} instructions, none committed")
                undeclared += 1
                continue
            change = new["instructions"] / old["instructions"] - 1
            print(f"{name}, {part}: {new['instructions']:,} instructions, {100 * change:+.1f} %")
            if -FALL <= change <= RISE:
                continue
            undeclared += 1
            for function in sorted(set(old["largest"]) | set(new["largest"])):
                print(f"    {function}: {old['largest'].get(function, 0):,} -> {new['largest'].get(function, 0):,}")
    return undeclared


def write(key, counted):
    numbers = {}
    if os.path.exists(NUMBERS):
        with open(NUMBERS, encoding="utf-8") as file:
            numbers = json.load(file)
    numbers[key] = counted
    with open(NUMBERS + ".part", "w", encoding="utf-8") as file:
        json.dump(numbers, file, indent=1)
        file.write("\n")
    os.replace(NUMBERS + ".part", NUMBERS)
    print(f"count-instructions: wrote {os.path.normpath(NUMBERS)} for {key}")


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    for word in sys.argv[2:]:
        if word.startswith("--skip="):
            skip(word[len("--skip="):])
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    key, counted = measure(os.path.join(sys.argv[1], "tools", "bench-cpu"))
    if "--write" in sys.argv:
        write(key, counted)
        return 0
    with open(NUMBERS, encoding="utf-8") as file:
        numbers = json.load(file)
    if key not in numbers:
        skip(f"no numbers are committed for {key}, only for {', '.join(numbers)}")
    undeclared = compare(numbers[key], counted)
    if undeclared:
        print(f"count-instructions: error: {undeclared} changes are not declared; if they are meant: meson compile -C {sys.argv[1]} count-instructions, "
              "and commit tests/instructions.json with the reason", file=sys.stderr)
    return 1 if undeclared else 0


sys.exit(main())
