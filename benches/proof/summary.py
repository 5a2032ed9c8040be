"""Tables of benches/proof/run as Markdown: geometric means of error ratios, paired by seed;
errors after the refit, because that is what a user gets.

    python3 benches/proof/summary.py target/proof
"""

import itertools
import json
import math
import os
import sys

SEARCHES = ["grid", "path", "random", "tpe", "cma-es", "genetic"]
RULES = ["none", "scikit-learn", "fixed", "exponential", "l-curve", "discrepancy", "ard-l1", "ard-l2"]


def logs(a, b, key="refit", other=None):
    return [math.log(a[s][key] / b[s][other or key]) for s in sorted(a) if s in b]


def text(values, bold=False):
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((x - mean) ** 2 for x in values) / max(len(values) - 1, 1))
    ratio = math.exp(mean)
    cell = f"{ratio:.2f} ± {ratio * spread / math.sqrt(len(values)):.2f}"
    return f"**{cell}**" if bold else cell


def signed_rank(values):
    """Two-sided p, counted over all signs; zeros left out, ties share their rank."""
    values = [v for v in values if v != 0]
    sizes = sorted(abs(v) for v in values)
    rank = {s: sum(i + 1 for i, t in enumerate(sizes) if t == s) / sizes.count(s) for s in sizes}
    ranks = [rank[abs(v)] for v in values]
    middle = sum(ranks) / 2
    seen = abs(sum(r for r, v in zip(ranks, values) if v > 0) - middle)
    sums = (sum(c) for c in itertools.product(*[(0, r) for r in ranks]))
    counts = [abs(s - middle) >= seen - 1e-9 for s in sums]
    return sum(counts) / len(counts)


def read(folder):
    tasks = {}
    for name in sorted(os.listdir(folder)):
        if not os.path.exists(f"{folder}/{name}/report.html"):
            continue
        rivals = tasks.setdefault(name, {})
        for standing in json.load(open(f"{folder}/{name}/standings.json"))["contest"]["standings"]:
            rivals.setdefault(standing["rival"], {})[standing["seed"]] = standing
    return tasks


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def relative_to_plain(tasks):
    head = ["task", "practical", *SEARCHES, *RULES]
    rows, all_logs = [], {}
    for name, rivals in tasks.items():
        plain = rivals["plain"]
        means = {}
        for rival in head[1:]:
            if rival in rivals:
                values = logs(rivals[rival], plain)
                means[rival] = math.exp(sum(values) / len(values))
                all_logs.setdefault(rival, []).extend(values)
        best = min(means.values())
        rows.append([name] + [
            "" if r not in means else f"**{means[r]:.2f}**" if means[r] == best else f"{means[r]:.2f}"
            for r in head[1:]
        ])
    last = [f"{math.exp(sum(all_logs[r]) / len(all_logs[r])):.2f}" if r in all_logs else "" for r in head[1:]]
    rows.append(["all", *last])
    table(head, rows)


def practical_against(tasks):
    rows, losses = [], []
    for rival in ["plain", *SEARCHES, *RULES]:
        values, won, lost, count = [], 0, 0, 0
        for name, rivals in tasks.items():
            if rival not in rivals:
                continue
            of_task = logs(rivals["practical"], rivals[rival])
            values.append(sum(of_task) / len(of_task))
            count += 1
            p = signed_rank(of_task)
            if p < 0.05:
                won += sum(of_task) < 0
                lost += sum(of_task) > 0
                if sum(of_task) > 0:
                    losses.append(f"{name} to {rival} ({text(of_task)}, p = {p:.3f})")
        if values:
            rows.append([rival, text(values), str(won), str(count - won - lost), str(lost)])
    table(["rival", "practical / rival", "won", "undecided", "lost"], rows)
    print(f"Lost: {'; '.join(losses) or 'none'}.\n")


def details(tasks):
    rows = []
    for name, rivals in tasks.items():
        own = rivals["practical"]
        row = [name]
        row += [text(logs(own, rivals[r])) if r in rivals else "" for r in ["plain", "path", "tpe"]]
        row.append(text(logs(own, own, "refit", "judged")))
        row.append(f"{sum(s['seconds'] for s in own.values()) / len(own):.2f}")
        rows.append(row)
    table(["task", "to plain", "to path", "to tpe", "refit", "seconds"], rows)


def refits(tasks):
    """Every answer was refitted: how often that raised D, and what became of the judged error."""
    every = [s for rivals in tasks.values() for own in rivals.values() for s in own.values()]
    raised = sum(after > before for before, after in (s["divergence"] for s in every))
    print(f"{len(every)} refits, {raised} of which raised the divergence on the entries they were given.\n")
    head = ["task", "practical", "plain", *SEARCHES, *RULES]
    rows = []
    for name, rivals in tasks.items():
        cells = [text(logs(rivals[r], rivals[r], "refit", "judged")) if r in rivals else "" for r in head[1:]]
        rows.append([name, *cells])
    table(head, rows)


def main(folder):
    tasks = read(folder)
    benchmarks = {n: t for n, t in tasks.items() if n[:2] in ("a-", "b-", "c-", "d-")}
    others = {n: t for n, t in tasks.items() if n not in benchmarks}
    print("Judged error after the refit, relative to plain updates stopped early; the lowest is bold\n")
    relative_to_plain(benchmarks)
    print("Practical against each, over these tasks; won and lost: p < 0.05 (signed ranks)\n")
    practical_against(benchmarks)
    print("The same over B, C and D, which have structure; first relative to plain updates\n")
    structured = {n: t for n, t in benchmarks.items() if n[:2] != "a-"}
    relative_to_plain(structured)
    practical_against(structured)
    print("Others\n")
    if others:
        relative_to_plain(others)
    print("Practical relative to three of them; its refit relative to what was before; its seconds\n")
    details(tasks)
    print("Judged error after the refit, relative to before it\n")
    refits(tasks)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "target/proof")
