#!/usr/bin/env python3
"""Two processes of one thread against one process of one thread, by the seconds of iterations.

    cargo build --release --features mpi
    python benches/peers/processes.py

Each line: seconds of an iteration with 1 and with 2 processes (the fastest of three runs), and their ratio.
"""
import os, subprocess, sys, tempfile
import numpy as np

ALTBI = os.environ.get('ALTBI', 'target/release/altbi')
MPI = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1',
           OMPI_MCA_btl_vader_single_copy_mechanism='none')


def seconds(data, processes, settings, iterations):
    """An iteration, by the history: the last third, where caches are warm."""
    fastest = np.inf
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, 'run')
            command = [ALTBI, 'fit', data, '--threads', '1', '--tol', '0', '--max-iter', str(iterations), '--out', out, '--quiet', *settings]
            if processes > 1:
                command = ['mpirun', '-n', str(processes), '--bind-to', 'core', *command]
            done = subprocess.run(command, env=MPI, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            times = np.genfromtxt(os.path.join(out, 'history.csv'), delimiter=',', names=True)['seconds']
            start = len(times) // 3
            fastest = min(fastest, (times[-1] - times[start]) / (len(times) - 1 - start))
    return fastest


def dense(folder):
    rng = np.random.default_rng(0)
    w, h = rng.random((5000, 10)), rng.random((10, 500))
    path = os.path.join(folder, 'dense.npy')
    np.save(path, rng.poisson(w @ h).astype(float) + 0.1)
    return path


def sparse(folder):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from sparse import filled, topics
    import scipy.io
    x = filled(topics(20000, 8000, 20, 80, 91))
    path = os.path.join(folder, 'sparse.mtx')
    scipy.io.mmwrite(path, x.astype(int))
    return path


with tempfile.TemporaryDirectory() as folder:
    cases = [
        ('5000×500, r = 10, AltBi T = 4', dense(folder), ['--rank', '10'], 30),
        ('5000×500, r = 10, MU', dense(folder), ['--rank', '10', '--method', 'mu'], 60),
        ('5000×500, r = 10, both factors, smooth W', dense(folder),
         ['--rank', '10', '--penalize', 'both', '--penalty', 'smooth', '--penalty-h', 'l1', '--bunch', '10', '--lambda-scope', 'component'], 10),
        ('20000×8000 sparse, r = 20, MU', sparse(folder), ['--rank', '20', '--method', 'mu'], 40),
        ('20000×8000 sparse, r = 20, AltBi T = 4', sparse(folder), ['--rank', '20'], 15),
    ]
    for name, data, settings, iterations in cases:
        one, two = (seconds(data, processes, settings, iterations) for processes in (1, 2))
        print(f'{name}: {one * 1e3:.1f} ms, {two * 1e3:.1f} ms, {one / two:.2f} times as fast', flush=True)
