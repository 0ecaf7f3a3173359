#!/usr/bin/env python3
"""Random cases through fmm-run, each held against direct sums: points, densities, targets, kernel, accuracy, tree and schedule are drawn by a seed.

  random-cases.py FMM_RUN CASES [SEED [SCHEDULE ...]]      (seed 1, schedule cpu; "gpu hybrid1 hybrid2 hybrid3" on a machine with a GPU)

A case fails whose command ends with another code than 0 or whose results at 1,000 targets err by more than was asked, unless rounding alone allows that
(`reachable` of the report). What failed is printed with the command; its points are kept beside. It needs nothing but Python. What is random here found what
cases that were thought of did not: the nearest pair of points on a line, by which single precision was taken to serve the others."""
import array, json, math, os, random, struct, subprocess, sys, tempfile


def write_npy(path, rows):
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    text += " " * (63 - (len(text) + 10) % 64) + "\n"
    values = array.array("d", [v for row in rows for v in row])
    if sys.byteorder == "big":
        values.byteswap()
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + values.tobytes())


def direction(r):
    x = [r.gauss(0, 1) for _ in range(3)]
    size = math.sqrt(sum(v * v for v in x)) or 1
    return [v / size for v in x]


def shifted(r, n, scale, shift):
    return [[scale * r.random() + shift for _ in range(3)] for _ in range(n)]


def line(r, n):
    noise = r.choice([0, 1e-9])
    return [[(k + 1) * t + noise * r.random() for k in range(3)] for t in (r.random() for _ in range(n))]


def lattice(r, n):
    edge = max(2, round(n ** (1 / 3)))
    return [[0.1 * i, 0.1 * j, 0.1 * k] for i in range(edge) for j in range(edge) for k in range(edge)]


def at_few_places(r, n):
    places = shifted(r, max(1, n // 20), 1, 0)
    return [list(r.choice(places)) for _ in range(n)]


POINTS = {
    "two clusters": lambda r, n: shifted(r, n // 2, 1, 0) + shifted(r, n - n // 2, 10 ** -r.uniform(0, 6), r.uniform(1, 1000)),
    "line": line,
    "lattice": lattice,
    "few places": at_few_places,
    "one far out": lambda r, n: [[10 ** r.uniform(1, 6)] * 3] + shifted(r, n - 1, 1, 0),
    "plane": lambda r, n: [[r.random(), r.random(), 0] for _ in range(n)],
    "shells": lambda r, n: [[(1 + i % 4) * v for v in direction(r)] for i in range(n)],
    "all scales": lambda r, n: [[10 ** (-6 * r.random()) * v for v in direction(r)] for _ in range(n)],
    "to a corner": lambda r, n: [[r.random() ** 3 for _ in range(3)] for _ in range(n)],
}


def make_files(r, folder, most, components):
    """Points with densities, and maybe targets, in files: the options that name them, and what they are."""
    kind = r.choice(sorted(POINTS))
    points = POINTS[kind](r, int(10 ** r.uniform(1.5, math.log10(most))))
    columns, sign, what = r.choice([1, 1, 1, 2, 3]), r.choice([0, 0.5]), [kind]
    sparse, uneven = r.random() < 0.2, r.random() < 0.2
    rows, scale = [], 10 ** r.uniform(-3, 3)
    for x in points:
        q = [r.random() - sign for _ in range(components * columns)]
        if sparse and r.random() < 0.9:
            q = [0.0] * len(q)
        if uneven:
            unit = 10.0 ** r.randint(-12, 12)
            q = [unit * v for v in q]
        rows.append([scale * v for v in x] + q)
    source = os.path.join(folder, "points.npy")
    write_npy(source, rows)
    options = [source]
    if r.random() < 0.35:
        extent = max(max(row[k] for row in rows) - min(row[k] for row in rows) for k in range(3)) * 10 ** r.uniform(-4, 1)
        near = [r.choice(rows) for _ in range(int(10 ** r.uniform(0.5, math.log10(most))))]
        targets = os.path.join(folder, "targets.npy")
        write_npy(targets, [[row[k] + extent * (r.random() - 0.5) for k in range(3)] for row in near])
        options += ["--targets", targets]
        what.append("targets of their own")
    return options, what + ["sparse"] * sparse + ["of many sizes"] * uneven


def make_case(r, folder, schedules):
    on_gpu = schedules != ["cpu"]
    kernel, most = r.choice(["laplace", "laplace", "laplace", "yukawa", "stokes"]), 200000 if on_gpu else 10000
    digits = r.randint(2, 8 if kernel == "stokes" else 11)
    if r.random() < 0.4:
        what = r.choice(["uniform", "ellipsoid", "sphere", "plummer"])
        options, what = ["--generate", what, "--points", str(int(10 ** r.uniform(1.5, math.log10(most)))), "--densities", r.choice(["unit", "signed"])], [what]
    else:
        options, what = make_files(r, folder, most if kernel == "laplace" else most // 3, 3 if kernel == "stokes" else 1)
    options += ["--kernel", kernel, "--digits", str(digits), "--schedule", r.choice(schedules), "--seed", str(r.randint(1, 1000))]
    if kernel == "yukawa":
        options += ["--param", "lambda=%g" % 10 ** r.uniform(-2, 2)]
    if r.random() < 0.4:
        options += ["--gradient"]
    if r.random() < 0.5:
        options += ["--leaf-size", str(int(10 ** r.uniform(1, 3)))]
    return options, what, 10.0 ** -digits


def fault_of(code, report, tolerance):
    if code != 0:
        return "exit code %s" % code
    error = json.loads(report)["error"]
    for name, allowed in (("relative_l2", "reachable"), ("gradient_relative_l2", "gradient_reachable")):
        if error.get(name) is not None and not error[name] <= max(tolerance, error.get(allowed) or 0):  # null: all sums are zero
            return "%s %s for %s" % (name, error[name], tolerance)
    return None


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    command, cases, seed, schedules = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1, sys.argv[4:] or ["cpu"]
    failed = 0
    for i in range(cases):
        folder = tempfile.mkdtemp(prefix="random-case-")
        options, what, tolerance = make_case(random.Random("%d %d" % (seed, i)), folder, schedules)
        run = subprocess.run([command, "--json", "--verify", "1000"] + options, capture_output=True, text=True)
        fault = fault_of(run.returncode, run.stdout, tolerance)
        if fault:
            failed += 1
            print("case %d of seed %d (%s): %s\n  %s %s\n  %s" % (i, seed, ", ".join(what), fault, command, " ".join(options), run.stderr.strip()), flush=True)
        else:
            for name in os.listdir(folder):
                os.remove(os.path.join(folder, name))
            os.rmdir(folder)
    print("%d random cases, %d failed" % (cases, failed))
    sys.exit(failed > 0)


main()
