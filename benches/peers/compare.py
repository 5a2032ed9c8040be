"""Runs peers and altbi in alternation and prints ratios. Called by ./run."""
import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

from peers import Peers, T, UPDATES, fastest

warnings.filterwarnings("ignore", module="sklearn")

# The threads of a library that has just worked go on spinning for a while.
PAUSE = 0.3
SIZES = [(1000, 50, 4), (224, 3025, 5), (5000, 500, 10)]
SIZES_OF_BOTH = [(1000, 50, 8), (224, 3025, 5), (5000, 500, 10)]


class Altbi:
    """The program of benches/peers/altbi.rs, asked over a pipe."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"altbi stopped at: {' '.join(map(str, words))}")
        return float(answer)


def save(folder, peers):
    lam = peers.lam.reshape(-1, 1)
    matrices = dict(x=peers.x, w=peers.w, h=peers.h, held_out=peers.held_out)
    for name, matrix in dict(matrices, **{"lambda": lam}).items():
        np.save(os.path.join(folder, name + ".npy"), matrix)


def alternate(works, rounds):
    """The fastest of so many rounds, in seconds."""
    best = {}
    for _ in range(rounds):
        for name, work in works.items():
            time.sleep(PAUSE)
            best[name] = min(best.get(name, np.inf), work())
    return best


def show(size, best):
    print(size, " ".join(f"{k} {1e3 * v:.3g}" for k, v in best.items() if k != "difference"), flush=True)


def head(rows):
    print("\n| | " + " | ".join(str(size) for size, _ in rows) + " | wanted |")
    print("|---|" + "---|" * (len(rows) + 1))


def line(rows, name, over, under, wanted):
    cells = [f"{best[over] / best[under]:.1f}" for _, best in rows]
    print(f"| {name} | " + " | ".join(cells) + f" | {wanted} |")


def both(altbi, folder, rounds):
    """Bunches over both factors: a mask, the error of held-out entries, weights of components."""
    print(f"\nboth factors, T = {UPDATES}, held-out error; milliseconds")
    rows = []
    for size in SIZES_OF_BOTH:
        peers = Peers(*size)
        save(folder, peers)
        altbi.ask("load", folder)
        works = {"jax": lambda: fastest(peers.both)}
        for mode in ("reverse", "adjoint"):
            works[mode] = lambda mode=mode: altbi.ask("both", UPDATES, mode, "smooth")
        for penalties in ("built-in", "own"):
            works[penalties] = lambda penalties=penalties: altbi.ask(
                "both", UPDATES, "reverse", penalties
            )
        best = alternate(works, rounds)
        _, (of_jax, _) = peers.both()
        for mode in ("reverse", "adjoint"):
            altbi.ask("both", UPDATES, mode, "smooth")
            found = np.load(os.path.join(folder, "g.npy"))[0]
            apart = np.abs(found - of_jax).max() / np.abs(of_jax).max()
            assert apart < 1e-8, (mode, apart)
        rows.append((size, best))
        show(size, best)
    head(rows)
    line(rows, "smooth W, ℓ1 H: JAX / reverse", "jax", "reverse", "at least 3")
    line(rows, "the same: JAX / adjoint", "jax", "adjoint", "at least 3")
    name = "ℓ2² W, ℓ1 H, reverse: penalties of value and split alone / built in"
    line(rows, name, "own", "built-in", "at most 1.3")


def ratios(altbi, folder, rounds, devices):
    print(f"\nmilliseconds, fastest of {rounds} alternating rounds; T = {T}, 64 bits, all cores")
    rows = []
    for size in SIZES:
        peers = Peers(*size)
        save(folder, peers)
        altbi.ask("load", folder)
        works = {
            "numpy": lambda: fastest(peers.numpy, 3),
            "fused": lambda: altbi.ask("fused", T),
            "jax": lambda: fastest(peers.jax),
            "sklearn, 20": lambda: fastest(lambda: peers.sklearn(20), 2),
            "sklearn, 40": lambda: fastest(lambda: peers.sklearn(40), 2),
            "updates": lambda: altbi.ask("updates"),
            "mu": lambda: altbi.ask("iteration", "mu", T),
            "mu-t": lambda: altbi.ask("iteration", "mu-t", T),
            "altbi": lambda: altbi.ask("iteration", "altbi", T),
        }
        for device in devices:
            works["reverse " + device] = lambda device=device: altbi.ask("reverse", T, device)
        best = alternate(works, rounds)
        # What twenty more iterations cost: without the start and the end.
        best["sklearn"] = (best.pop("sklearn, 40") - best.pop("sklearn, 20")) / 20
        _, of_numpy = peers.numpy()
        altbi.ask("fused", T)
        difference = np.abs(np.load(os.path.join(folder, "g.npy"))[:, 0] - of_numpy).max()
        best["difference"] = difference / np.abs(of_numpy).max()
        rows.append((size, best))
        show(size, best)
    head(rows)
    line(rows, "bunch: JAX / fused", "jax", "fused", "at least 4")
    line(rows, "bunch: NumPy / fused", "numpy", "fused", "at least 6")
    line(rows, "MU iteration: scikit-learn / fused", "sklearn", "updates", "at least 3")
    line(rows, "the same, altbi also computing D", "sklearn", "mu", "")
    line(rows, "iteration: AltBi / MU-T", "altbi", "mu-t", "at most 2.2")
    for device in devices:
        wanted = {"ndarray": "at most 2.5 at the first", "flex": "at most 1.5 at the first"}
        line(rows, f"bunch: Burn reverse on {device} / JAX", "reverse " + device, "jax", wanted[device])
    cells = [f"{best['difference']:.0e}" for _, best in rows]
    print("| largest relative difference of dE/dλ, fused to NumPy | " + " | ".join(cells) + " | |")
    return rows


def limit(altbi, rows):
    """The least time that the bunch's arithmetic could take on this machine."""
    product = min(altbi.ask("products") for _ in range(5)) / 1e9
    division = min(altbi.ask("divisions") for _ in range(5)) / 1e9
    print(f"\nthis machine, all cores: {1e-9 / product:.0f} thousand million multiply-adds "
          f"a second, {1e-9 / division:.1f} divisions")
    for (n, m, r), best in rows:
        # Per entry: 4 r T multiply-adds; in each of T + 1 passes 16 other operations
        # (1/y by products, the floor, the parts); for E one logarithm of 36, which
        # shares a division with three others.
        least = n * m * ((4 * r * T + 16 * (T + 1) + 36) * product + division / 4)
        print(f"  {(n, m, r)}: {1e3 * least:.3g} ms of arithmetic, "
              f"fused {1e3 * best['fused']:.3g} ms, {100 * least / best['fused']:.0f} %")


def growth(altbi, folder, rounds):
    """Time against n, m, T and r, each doubled twice, relative to linear."""
    base = dict(n=2000, m=512, r=8, t=4)
    print(f"\ntime over linear growth of the fused bunch, from {base}: wanted within 0.8 and 1.2")
    for name in base:
        times = []
        for factor in (1, 2, 4):
            shape = dict(base, **{name: base[name] * factor})
            peers = Peers(shape["n"], shape["m"], shape["r"])
            save(folder, peers)
            altbi.ask("load", folder)
            time.sleep(PAUSE)
            times.append(min(altbi.ask("fused", shape["t"]) for _ in range(rounds)))
        over = [t / times[0] / factor for t, factor in zip(times, (1, 2, 4))]
        print(f"  {name}: " + " ".join(f"{o:.2f}" for o in over))


def memory(command, folder):
    """Peak memory of a fit of a 20000×1000 matrix."""
    generator = np.random.default_rng(0)
    x = generator.gamma(0.5, 1.0, (20000, 10)) @ generator.gamma(0.5, 1.0, (10, 1000)) + 1e-3
    path = os.path.join(folder, "large.npy")
    np.save(path, x)
    out = os.path.join(folder, "run")
    # From a small process: a child's peak begins with the size of its parent.
    look = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
    look += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    fit = [command, "fit", path, "--rank", "10", "--max-iter", "5", "--quiet", "--out", out]
    answer = subprocess.run(
        [sys.executable, "-c", look, *fit], check=True, capture_output=True, text=True
    )
    maxrss = int(answer.stdout)
    peak, allowed = maxrss * 1024 / 1e6, 2.5 * x.nbytes / 1e6 + 100
    print(f"\npeak memory of fit, 20000×1000: {peak:.0f} MB, allowed {allowed:.0f} MB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--command", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--flex", action="store_true")
    arguments = parser.parse_args()
    altbi = Altbi(arguments.program)
    devices = ["ndarray"] + (["flex"] if arguments.flex else [])
    with tempfile.TemporaryDirectory() as folder:
        limit(altbi, ratios(altbi, folder, arguments.rounds, devices))
        both(altbi, folder, arguments.rounds)
        growth(altbi, folder, arguments.rounds)
        memory(arguments.command, folder)


main()
