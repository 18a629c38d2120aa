"""Random quadratic programs, with solutions that are known to exist, and with what makes them hard."""

import numpy as np

import delassus as dl


def feasible(seed, cones=False):
    """A qp with an answer: H of any rank, rows that depend on each other, bounds that touch, unused columns."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    e, m = int(rng.integers(0, n + 2)), int(rng.integers(0, 2 * n + 3))
    root = rng.normal(size=(n, int(rng.integers(0, n + 1))))
    H = root @ root.T * 10.0 ** rng.uniform(-2, 2)
    x = rng.normal(size=n)
    A, C = rng.normal(size=(e, n)), rng.normal(size=(m, n))
    if e > 1 and rng.random() < 0.5:
        A[-1] = 2.0 * A[0]
    lower = C @ x - rng.exponential(size=m) * (rng.random(m) < 0.7)
    upper = C @ x + rng.exponential(size=m) * (rng.random(m) < 0.7)
    lower[rng.random(m) < 0.3] = -np.inf
    g = H @ rng.normal(size=n) + A.T @ rng.normal(size=e)  # so that there is a least value
    sizes = tuple(int(k) for k in rng.integers(2, 5, size=int(rng.integers(1, 3)))) if cones else ()
    K, inside = rng.normal(size=(sum(sizes), n)), [np.zeros(0)]
    for size in sizes:
        point = rng.normal(size=size)
        point[-1] = np.linalg.norm(point[:-1]) + rng.exponential()
        inside.append(point)
    k = np.concatenate(inside) - K @ x
    return dl.QP(H, g, A, A @ x, C, lower, upper, K, k, cones=sizes)


def contradicting(seed):
    """A qp none of whose answers meets all rows: x ≤ 0 and x ≥ 1 along some direction, among other rows."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 7)), int(rng.integers(0, 5))
    direction = rng.normal(size=n)
    direction /= np.linalg.norm(direction)
    C = np.vstack([direction, direction, 10.0 * rng.normal(size=(m, n))])
    far = np.full(m, 1e3)
    lower, upper = np.concatenate([[1.0, -np.inf], -far]), np.concatenate([[np.inf, 0.0], far])
    return dl.QP(np.eye(n), rng.normal(size=n), C=C, lower=lower, upper=upper)
