"""A sparse X: topics by Zipf's law, as ratios in one run; growth with stored entries and columns;
peak memory.

    python benches/peers/sparse.py --command target/release/altbi [--folder DIR]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import scipy.sparse as sp

warnings.filterwarnings("ignore")


def topics(rows, columns, rank, words, seed):
    """Counts of words: each row mixes a few topics, each topic prefers some words."""
    rng = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, columns + 1) ** 1.05
    zipf /= zipf.sum()
    preferred = rng.dirichlet(np.full(columns, 0.02) * zipf * columns, size=rank)
    preferred = 0.7 * preferred + 0.3 * zipf
    mixtures = rng.dirichlet(np.full(rank, 0.1), size=rows)
    lengths = rng.poisson(words, size=rows) + 1
    at_rows, at_columns = [], []
    for topic, weights in enumerate(preferred):
        counts = rng.binomial(lengths, mixtures[:, topic])
        index = np.repeat(np.arange(rows), counts)
        at_rows.append(index)
        at_columns.append(rng.choice(columns, size=index.size, p=weights / weights.sum()))
    places = (np.concatenate(at_rows), np.concatenate(at_columns))
    x = sp.csr_matrix((np.ones(places[0].size), places), shape=(rows, columns))
    x.sum_duplicates()
    return x


def filled(x):
    """Without empty rows and columns."""
    x = x[np.flatnonzero(x.getnnz(1))]
    return x[:, np.flatnonzero(x.getnnz(0))]


def run(command, data, *flags):
    call = [command, "fit", data, "--quiet", "--json", *map(str, flags)]
    output = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(output)["seconds"]


def peak(command, data, *flags):
    """Bytes. By a small process in between: a child begins with the peak of its parent."""
    call = [command, "fit", data, "--quiet", *map(str, flags)]
    small = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    output = subprocess.run([sys.executable, "-c", small, *call], stdout=subprocess.PIPE, text=True, check=True)
    return int(output.stdout.split()[-1]) * 1024


def per_iteration(command, data, *flags, iterations=(3, 23)):
    """Milliseconds, by two runs of different length; the fastest of three."""
    few, many = iterations
    times = []
    for _ in range(3):
        short = run(command, data, "--max-iter", few, "--tol", 0, "--engine", "fused", *flags)
        long = run(command, data, "--max-iter", many, "--tol", 0, "--engine", "fused", *flags)
        times.append((long - short) / (many - few) * 1e3)
    return min(times)


def peer(x, rank):
    from sklearn.decomposition import NMF

    def seconds(iterations):
        model = NMF(rank, solver="mu", beta_loss="kullback-leibler", init="random",
                    random_state=0, max_iter=iterations, tol=0)
        start = time.perf_counter()
        model.fit(x)
        return time.perf_counter() - start

    return min((seconds(12) - seconds(2)) / 10 * 1e3 for _ in range(2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", default="target/release/altbi")
    parser.add_argument("--folder", help="keep the matrix there")
    arguments = parser.parse_args()
    command = os.path.abspath(arguments.command)
    with tempfile.TemporaryDirectory() as folder:
        folder = arguments.folder or folder
        os.makedirs(folder, exist_ok=True)

        def save(name, x):
            path = os.path.join(folder, f"{name}.npz")
            sp.save_npz(path, x)
            return path

        rank = 20
        x = filled(topics(20000, 8000, rank, 80, 91))
        data = save("topics", x)
        size = x.data.nbytes + x.indices.nbytes + x.indptr.nbytes
        print(f"{x.shape[0]}x{x.shape[1]}, {x.nnz} stored ({size / 1e6:.1f} MB as CSR), r = {rank}")
        flags = ("--rank", rank)
        mu = per_iteration(command, data, *flags, "--method", "mu")
        theirs = peer(x, rank)
        print(f"KL iteration: scikit-learn {theirs:.0f} ms, altbi {mu:.1f} ms with D: "
              f"{theirs / mu:.1f} times as fast")
        t = per_iteration(command, data, *flags, "--method", "mu-t")
        for mode in ("reverse", "adjoint", "forward"):
            tuned = per_iteration(command, data, *flags, "--hypergradient", mode)
            update = (t - mu) / 3
            print(f"AltBi (T = 4, {mode}) / MU-T: {tuned / t:.1f}; "
                  f"the bunch with its hypergradient / its 4 updates: {(tuned - t) / (4 * update) + 1:.1f}")
        for name, extra in {
            "held-out": ("--criterion", "held-out:0.1"),
            "thinned": ("--criterion", "thinned:0.1"),
        }.items():
            tuned = per_iteration(command, data, *flags, "--hypergradient", "adjoint", *extra)
            print(f"AltBi (T = 4, adjoint, {name}) / MU-T: {tuned / t:.1f}")
        frobenius = per_iteration(command, data, *flags, "--method", "mu", "--divergence", "frobenius")
        print(f"MU iteration: Frobenius / KL: {frobenius / mu:.1f}")
        memory = peak(command, data, *flags, "--method", "mu", "--max-iter", 5, "--tol", 0)
        factors = (x.shape[0] + x.shape[1]) * rank * 8
        small = save("small", x[:30, :20])
        program = peak(command, small, "--rank", 2, "--method", "mu", "--max-iter", 5, "--tol", 0)
        tuned = peak(command, data, *flags, "--max-iter", 5, "--tol", 0)
        print(f"peak memory: {memory / 1e6:.0f} MB, AltBi {tuned / 1e6:.0f} MB, of which {program / 1e6:.0f} MB "
              f"are needed for 30x20 too; 4 x CSR + factors = {(4 * size + factors) / 1e6:.1f} MB")
        for scale in (1, 2, 4):
            grown = filled(topics(20000 * scale, 8000, rank, 80, 91))
            path = save("grown", grown)
            ms = per_iteration(command, path, *flags, "--method", "mu", iterations=(3, 23))
            print(f"{grown.nnz} stored: {ms:.1f} ms, {ms / grown.nnz * 1e6:.1f} ns an entry")
        wide = sp.csr_matrix((x.data, x.indices * 10, x.indptr), shape=(x.shape[0], x.shape[1] * 10))
        path = save("wide", wide)
        ms = per_iteration(command, path, *flags, "--method", "mu", iterations=(3, 23))
        print(f"the same entries in {wide.shape[1]} columns: {ms / mu:.1f} times as long")


if __name__ == "__main__":
    main()
