#!/usr/bin/env python3
"""Says in plain words what a report of `fmm-run --json` means. Used by quickstart.sh (python3 is there because Meson is written in it).

    say-report.py REPORT.json      exit code 0: the accuracy asked for was reached (or not checked), 1: it was not
"""
import json
import sys


def seconds(value):
    if value is None:
        return "unknown"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1 or unit == "µs":
            return f"{value * factor:.3g} {unit}"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    case, plan, error = report["case"], report["plan"], report.get("error") or {}
    evaluation = report["evaluation_s"]["median"]
    print(f"Evaluated: the {case['kernel']} potential of {case['points']} points at {case['targets']} targets, "
          f"asked relative error {case['tolerance']:.0e}.")
    if plan["leaves"] > 1 and plan["order"] == 0:
        tree = f"{plan['leaves']} leaves: for so few points direct sums are predicted to be the fastest."
    elif plan["leaves"] > 1:
        tree = (f"surface order {plan['order']}, at most {plan['leaf_size']} points a leaf: "
                f"{plan['leaves']} leaves on {plan['levels']} levels.")
    else:
        tree = "one leaf: for so few points plain direct sums are predicted to be the fastest."
    print(f"Chosen:    schedule '{plan['schedule']}' on {plan['threads']} threads, {tree}")
    print(f"Time:      predicted {seconds(report['predicted_s'])}, took {seconds(evaluation)}, "
          f"after a set-up of {seconds(report['setup_s'])} that is done once for the same points.")
    measured = [p for p in report["phases"] if p.get("measured_s")]
    if measured:
        longest = max(measured, key=lambda p: p["measured_s"])
        print(f"Longest:   phase '{longest['name']}' on the {longest['device']}, {seconds(longest['measured_s'])}.")
    if "relative_l2" not in error:
        return 0
    reached = max(error["relative_l2"], error.get("gradient_relative_l2") or 0)
    verdict = "as asked" if reached <= case["tolerance"] else "MORE THAN ASKED"
    print(f"Checked:   against a direct sum at {error['samples']} targets: relative error {reached:.1e}, {verdict}.")
    return 0 if reached <= case["tolerance"] else 1


if __name__ == "__main__":
    sys.exit(main())
