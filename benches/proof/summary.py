"""Tables of benches/proof/run as Markdown: geometric means of error ratios, paired by seed.

    python3 benches/proof/summary.py target/proof
"""

import json
import math
import os
import sys

SEARCHES = ["grid", "path", "random", "tpe", "cma-es", "genetic"]
RULES = ["none", "fixed", "exponential", "l-curve", "discrepancy"]


def ratio(a, b, key):
    logs = [math.log(a[s][key] / b[s][key]) for s in a if s in b]
    mean = sum(logs) / len(logs)
    spread = math.sqrt(sum((x - mean) ** 2 for x in logs) / max(len(logs) - 1, 1))
    return math.exp(mean), math.exp(mean) * spread / math.sqrt(len(logs))


def text(pair):
    return f"{pair[0]:.2f} ± {pair[1]:.2f}"


def main(folder):
    names = sorted(n for n in os.listdir(folder) if os.path.exists(f"{folder}/{n}/report.html"))
    print("practical, and each rival, relative to plain (early-stopped updates); judged error")
    head = ["task", "practical", *SEARCHES, *RULES]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    against = []
    for name in names:
        rivals = {}
        for standing in json.load(open(f"{folder}/{name}/standings.json"))["contest"]["standings"]:
            rivals.setdefault(standing["rival"], {})[standing["seed"]] = standing
        plain, own = rivals["plain"], rivals["practical"]
        cells = [name, text(ratio(own, plain, "judged"))]
        for rival in SEARCHES + RULES:
            cells.append(f"{ratio(rivals[rival], plain, 'judged')[0]:.2f}" if rival in rivals else "")
        print("| " + " | ".join(cells) + " |")
        row = [name]
        best = min((r for r in SEARCHES if r in rivals), key=lambda r: ratio(rivals[r], plain, "judged")[0])
        for rival in ["plain", "path", "tpe", best]:
            row.append(text(ratio(own, rivals[rival], "judged")) if rival in rivals else "")
        row[-1] += f" ({best})"
        refit = {s: dict(own[s], judged=own[s]["refit"]) for s in own}
        row.append(text(ratio(refit, own, "judged")))
        row.append(f"{sum(own[s]['seconds'] for s in own) / len(own):.2f}")
        against.append(row)
    print("\npractical relative to ...; refit relative to practical before it; seconds of practical")
    head = ["task", "plain", "path", "tpe", "best search", "refit", "seconds"]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in against:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "target/proof")
