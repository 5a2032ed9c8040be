"""What the command takes, as ratios in one run: the preset that pays against plain updates,
iterations against scikit-learn's over ranks, other divergences against KL, peak memory.

    python benches/peers/command.py --command target/release/altbi [--memory]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

warnings.filterwarnings("ignore")


def seconds(command, data, *flags):
    """Of the solver, as the summary tells them."""
    call = [command, "fit", data, "--quiet", "--json", *map(str, flags)]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["seconds"]


def differences(run, short, long):
    """Milliseconds of an iteration, by the fastest of four runs of either length."""
    fastest = {short: np.inf, long: np.inf}
    for _ in range(4):
        for iterations in fastest:
            fastest[iterations] = min(fastest[iterations], run(iterations))
    return (fastest[long] - fastest[short]) / (long - short) * 1e3


def per_iteration(command, data, short, long, *flags):
    """The same for the command."""
    fixed = ("--tol", 0, "--engine", "fused", *flags)
    return differences(lambda iterations: seconds(command, data, "--max-iter", iterations, *fixed), short, long)


def signals(n, m, r):
    """Counts with clipped sinusoids behind them."""
    generator = np.random.default_rng(n)
    phase = np.linspace(0, 1, n)[:, None] * generator.uniform(1, 9, r) + generator.random(r)
    w = np.maximum(0, np.sin(2 * np.pi * phase))
    h = generator.random((r, m)) * (generator.random((r, m)) > 0.3)
    y = w @ h
    return generator.poisson(3 * y / y.mean()).astype(float)


def practical(command, folder):
    print("practical (smooth W, l1 H) / 2500 plain updates of both factors")
    structure = ("--preset", "practical", "--penalize", "both", "--penalty", "smooth", "--penalty-h", "l1")
    for n, m, r in ((1000, 50, 8), (224, 3025, 5), (5000, 500, 10)):
        data = os.path.join(folder, "signals.npy")
        np.save(data, signals(n, m, r))
        plain = 2500 * per_iteration(command, data, 50, 350, "--rank", r, "--method", "mu") / 1e3
        tuned = seconds(command, data, "--rank", r, *structure)
        print(f"  ({n}, {m}, {r}): {tuned:.1f} s, ratio {tuned / plain:.1f}", flush=True)


def products(x, r, loss):
    """Milliseconds of NumPy's matrix products in an iteration, without anything else: the fastest of
    twenty. No program whose products are as fast can be faster."""
    generator = np.random.default_rng(4)
    n, m = x.shape
    w, h = generator.random((n, r)), generator.random((r, m))
    of_w, of_h, y = np.empty((n, r)), np.empty((r, m)), np.empty((n, m))
    fastest = np.inf
    for _ in range(20):
        begun = time.perf_counter()
        for factor in "wh":
            if loss != "frobenius":
                np.matmul(w, h, out=y)
            np.matmul(x, h.T, out=of_w) if factor == "w" else np.matmul(w.T, x, out=of_h)
            if loss == "frobenius":
                np.matmul(w, h @ h.T, out=of_w) if factor == "w" else np.matmul(w.T @ w, h, out=of_h)
        fastest = min(fastest, time.perf_counter() - begun)
    return fastest * 1e3


def peer(data, r, loss, reuse):
    """Milliseconds of an iteration of scikit-learn. In a new process the system gives it new pages for
    every matrix as large as X, and takes them back. If the process has once freed a larger piece of
    memory (`reuse`), it keeps such pages, and an iteration takes down to a third of the time."""
    from sklearn.decomposition import NMF

    if reuse:
        larger = np.ones(4_000_000)
        del larger
    x = np.load(data)

    def fit(iterations):
        model = NMF(r, solver="mu", beta_loss=loss, init="random", random_state=0, max_iter=iterations, tol=0)
        begun = time.perf_counter()
        model.fit(x)
        return time.perf_counter() - begun

    return differences(fit, 2, 22)


def ranks(command, folder):
    generator = np.random.default_rng(1)
    x = generator.gamma(0.3, 1, (2000, 100)) @ generator.gamma(0.3, 1, (100, 1000))
    data = os.path.join(folder, "ranks.npy")
    np.save(data, x)
    print("iteration of plain updates on 2000×1000: scikit-learn in a new process, and if memory is used again / altbi")
    for name, loss, all_ranks in (
        ("kl", "kullback-leibler", (5, 20, 50, 100, 200)),
        ("frobenius", "frobenius", (10, 50, 200)),
    ):
        for r in all_ranks:
            peers = []
            for reuse in ("", "--reuse"):
                call = [sys.executable, __file__, "--peer", data, str(r), loss, *reuse.split()]
                done = subprocess.run(call, capture_output=True, text=True, check=True)
                peers.append(float(done.stdout))
                time.sleep(0.5)
            own = per_iteration(command, data, 2, 22, "--rank", r, "--method", "mu", "--divergence", name)
            alone = products(x, r, loss)
            print(
                f"  {name} r = {r}: {peers[0]:.1f}, {peers[1]:.1f} ms / {own:.1f} ms = {peers[0] / own:.1f}, "
                f"{peers[1] / own:.1f}; NumPy's products alone {alone:.1f} ms, scikit-learn / these "
                f"{peers[0] / alone:.1f}, {peers[1] / alone:.1f}",
                flush=True,
            )


def divergences(command, folder):
    data = os.path.join(folder, "divergences.npy")
    np.save(data, np.random.default_rng(2).gamma(2, 1, (2000, 500)) + 0.1)
    print("iteration of AltBi on 2000×500, r = 8, against KL's")
    kl = per_iteration(command, data, 2, 32, "--rank", 8, "--divergence", "kl")
    for beta in ("is", "beta:0.5", "beta:1.5", "beta:3"):
        own = per_iteration(command, data, 2, 32, "--rank", 8, "--divergence", beta)
        print(f"  {beta}: {own / kl:.1f}", flush=True)


def memory(command, folder):
    data = os.path.join(folder, "large.npy")
    np.save(data, np.random.default_rng(3).gamma(2, 1, (20000, 1000)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    seconds(command, data, "--rank", 10, "--preset", "practical", "--max-iter", 2, "--refit", 0)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"peak memory of practical on 20000×1000 (X has 153 MB): {max(peak, before) / 1024:.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--command")
    parser.add_argument("--memory", action="store_true", help="practical on 20000×1000 as well: minutes")
    parser.add_argument("--peer", nargs=3, metavar=("DATA", "RANK", "LOSS"), help="scikit-learn alone")
    parser.add_argument("--reuse", action="store_true", help="with --peer")
    arguments = parser.parse_args()
    if arguments.peer:
        data, rank, loss = arguments.peer
        print(peer(data, int(rank), loss, arguments.reuse))
        sys.exit()
    with tempfile.TemporaryDirectory() as scratch:
        practical(arguments.command, scratch)
        ranks(arguments.command, scratch)
        divergences(arguments.command, scratch)
        if arguments.memory:
            memory(arguments.command, scratch)
