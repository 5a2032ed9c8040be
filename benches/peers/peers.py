"""The peers: the same bunch in NumPy and JAX, and scikit-learn's MU."""
import time

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
import jax.numpy as jnp
import numpy as np
from sklearn.decomposition import NMF

T = 4


def problem(n, m, r):
    """A noisy product of gamma variates, and where the factors start."""
    generator = np.random.default_rng(0)
    w = generator.gamma(0.5, 1.0, (n, r)) + 1e-3
    h = generator.gamma(0.5, 1.0, (r, m)) + 1e-3
    x = w @ h * generator.gamma(20.0, 0.05, (n, m))
    w0 = generator.uniform(0.1, 1.0, (n, r))
    h0 = generator.uniform(0.1, 1.0, (r, m))
    return x, w0, h0, np.full(n, 0.1)


def bunch_numpy(x, w, h, lam):
    """Kullback-Leibler, l1: T updates with their tangents, then dE/dlambda."""
    sums = h.sum(axis=1)
    p = sums + lam[:, None]
    s = np.zeros_like(w)
    for _ in range(T):
        y = w @ h
        ratio = x / y
        q = (ratio @ h.T) / p
        n_dot = -((ratio / y) * (s @ h)) @ h.T
        q_dot = (n_dot - q) / p
        s = s * q + w * q_dot
        w = w * q
    y = w @ h
    ratio = x / y
    error = np.sum(x * np.log(ratio) - x + y)
    return error, np.sum((sums - ratio @ h.T) * s, axis=1)


def bunch_error(lam, x, w, h):
    p = h.sum(axis=1) + lam[:, None]
    for _ in range(T):
        w = w * ((x / (w @ h)) @ h.T) / p
    y = w @ h
    return jnp.sum(x * jnp.log(x / y) - x + y)


bunch_jax = jax.jit(jax.value_and_grad(bunch_error))


UPDATES = 10


def both_error(lam_w, lam_h, x, mask, held_out, w, h):
    """Updates of both factors on some entries: smooth W, l1 on H, a weight for each component;
    then the error of the other entries."""
    ends = jnp.full((w.shape[0], 1), 2.0).at[0].set(1.0).at[-1].set(1.0)
    seen = mask * x
    for _ in range(UPDATES):
        h = h * (w.T @ (seen / (w @ h))) / (w.T @ mask + lam_h[:, None])
        beside = jnp.pad(w[1:], ((0, 1), (0, 0))) + jnp.pad(w[:-1], ((1, 0), (0, 0)))
        n = (seen / (w @ h)) @ h.T + lam_w * beside
        w = w * n / (mask @ h.T + lam_w * ends * w)
    y = w @ h
    return jnp.sum(held_out * (x * jnp.log(x / y) - x + y))


both_jax = jax.jit(jax.value_and_grad(both_error, argnums=(0, 1)))


class Peers:
    def __init__(self, n, m, r):
        self.x, self.w, self.h, self.lam = problem(n, m, r)
        self.held_out = (np.random.default_rng(1).random((n, m)) < 0.1).astype(float)
        self.weights = [jnp.asarray(a) for a in (1 - self.held_out, self.held_out)]
        self.on_device = [jnp.asarray(a) for a in (self.lam, self.x, self.w, self.h)]
        self.rank = r
        self.jax()  # compiles

    def numpy(self):
        return bunch_numpy(self.x, self.w, self.h, self.lam)

    def jax(self):
        return jax.block_until_ready(bunch_jax(*self.on_device))

    def both(self):
        lam = jnp.full(self.rank, 0.1)
        _, x, w, h = self.on_device
        return jax.block_until_ready(both_jax(lam, lam, x, *self.weights, w, h))

    def sklearn(self, iterations):
        model = NMF(
            self.rank, init="custom", solver="mu", beta_loss="kullback-leibler",
            max_iter=iterations, tol=0.0,
        )
        model.fit_transform(self.x, W=self.w.copy(), H=self.h.copy())


def fastest(work, repeats=5):
    """Seconds of the fastest of at least so many, and of as many as fit in a twentieth
    of a second, after one that does not count."""
    work()
    times = []
    while len(times) < repeats or sum(times) < 0.05:
        clock = time.perf_counter()
        work()
        times.append(time.perf_counter() - clock)
    return min(times)
