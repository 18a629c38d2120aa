"""Contact problems whose matrix is an operator, solved by NumPy around its products.

    with (G + E)⁻¹:  x ← -(G + (η + ρ) D)⁻¹ (g + Γ(z) - η D x - ρ D y - z),  y ← P(x - z/(ρ d)),  z ← z - ρ D (x - y)
    with G alone:    y ← P(w - (G w + g + Γ)/(L d)),  w ← y + β (y - y⁻), begun again where the energy rises

D holds the mean response d of each contact, so that masses of 10⁻³ and 10³ kg look alike; L is the largest eigenvalue
of D^-½ G D^-½, by the power method. All contacts of all problems of a batch are projected at once.

References: J. Carpentier et al., From Compliant to Rigid Contact Simulation (2024); H. Mazhar et al., Using Nesterov's
method to accelerate multibody dynamics (2015).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.constrained.solvers.status import Status
from delassus.contact.cones.kinds import Interval, NonNegative
from delassus.contact.cones.second_order import project
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.problems.operators import diagonal
from delassus.contact.problems.solution import ContactSolution
from delassus.contact.solvers.scaled import LARGEST_FRICTION

if TYPE_CHECKING:
    from delassus.contact.problems.problem import ContactProblem

Array = NDArray[np.float64]

_ETA: Final = 1e-6
_RHO: Final = 0.1
"""The penalty at first, as a share of a row's response; doubled or halved where primal and dual errors differ much."""

_LOOKS: Final = 3
"""Each how many iterations of ADMM the error is looked at, if it may be small enough: that takes a product with G."""

_RELAXED: Final = 1.6
"""By how much ADMM goes further than it is told: takes about half of the iterations."""

_HOPEFUL: Final = 3.0
"""How many times the tolerance a guess of the error may be for it to be looked at."""

_UNBALANCED: Final = (50.0, 5.0)
"""How many times the primal error may be the dual one before penalties are doubled, and the other way round, halved.

At the best penalties of sheets with friction the first is some ten times the second.
"""

METHODS: Final = ("auto", "admm", "gradient")


def solve_by_operator(
    problem: ContactProblem, model: str, method: str, tolerance: float, iterations: int, start: Any
) -> ContactSolution:
    """The solution by ADMM, or by projected gradients where the operator has no `solve`."""
    if model not in ("ncp", "ccp") or method not in METHODS:
        raise ContactProblemError(
            f"G is an operator: models 'ncp' and 'ccp' with the methods {', '.join(METHODS)} can be solved, not model "
            f"{model!r} with method {method!r}.",
            code="not-supported",
        )
    if any(len(rows) > 3 for rows in problem.layout.friction):
        raise ContactProblemError(
            "G is an operator: contacts have three rows then, not torsional or rolling friction.", code="not-supported"
        )
    solver = _Rows(problem, model == "ccp")
    invertible = hasattr(problem.operator, "solve")
    if method == "admm" and not invertible:
        raise ContactProblemError(
            "the operator has no method solve(b, damping), which ADMM needs: take 'gradient'.", code="not-supported"
        )
    way = _admm if invertible and method != "gradient" else _gradient
    impulse, made = way(solver, tolerance, iterations, start)
    velocity = solver.velocity(impulse)
    residuals = solver.residual(impulse, velocity)
    solved = solver.error(impulse, velocity) <= tolerance
    status = np.where(solved, int(Status.CONVERGED), int(Status.ITERATIONS))
    status = np.where(np.isfinite(residuals).all(-1), status, int(Status.NOT_FINITE))
    return ContactSolution(problem, model, impulse, velocity, residuals, made, status)


class _Rows:
    """What both ways ask of a problem."""

    def __init__(self, problem: ContactProblem, convex: bool) -> None:
        self.problem, self.convex, self.layout = problem, convex, problem.layout
        self.g = np.broadcast_to(problem.g, (*problem.batch, problem.m))
        self.R = 0.0 if problem.compliance is None else problem.compliance
        own = diagonal(problem.operator) + self.R
        d = np.array(np.broadcast_to(own, self.g.shape))
        for rows in self.layout.friction:
            d[..., rows.start : rows.stop] = own[..., rows.start : rows.stop].mean(-1, keepdims=True)
        self.d = np.where(d > 0.0, d, 1.0)
        self.friction = np.zeros(0) if problem.friction is None else problem.friction
        self.contacts = np.array([list(rows) for rows in self.layout.friction], int)
        self.half, self.bounded = list(self.layout.rows(NonNegative)), list(self.layout.rows(Interval))

    def velocity(self, impulse: Array) -> Array:
        """σ (…, m)."""
        return np.asarray(self.problem.operator.apply(impulse) + self.R * impulse + self.g)

    def correction(self, velocity: Array) -> Any:
        """Γ (…, m)."""
        if self.convex or not len(self.contacts):
            return 0.0
        slide = np.linalg.norm(velocity[..., self.contacts[:, :2]], axis=-1)
        found = np.zeros_like(velocity)
        found[..., self.contacts[:, 2]] = np.minimum(self.friction, LARGEST_FRICTION) * slide
        return found

    def projected(self, x: Array) -> Array:
        """The nearest impulses (…, m)."""
        problem, y = self.problem, np.array(x)
        if len(self.contacts):
            y[..., self.contacts] = project(x[..., self.contacts], np.minimum(self.friction, LARGEST_FRICTION))
        y[..., self.half] = np.maximum(x[..., self.half], 0.0)
        if self.bounded:
            y[..., self.bounded] = np.clip(x[..., self.bounded], problem.lower, problem.upper)
        return y

    def residual(self, impulse: Array, velocity: Array) -> Array:
        """(…, m) [m/s]."""
        moved = impulse - (velocity + self.correction(velocity)) / self.d
        return np.asarray(self.d * (impulse - self.projected(moved)))

    def error(self, impulse: Array, velocity: Array) -> Array:
        """(…) the largest residual as a share of the largest free velocity; that of normals alone counts, too."""
        left = np.abs(self.residual(impulse, velocity)).max(-1)
        if len(self.contacts) and not self.convex:
            n = self.contacts[:, 2]
            push, d = impulse[..., n], self.d[..., n]
            left = np.maximum(left, np.abs(d * (push - np.maximum(push - velocity[..., n] / d, 0.0))).max(-1))
        scale = np.abs(self.g).max(-1)
        return np.asarray(left / np.where(scale > 0.0, scale, 1.0))

    def begun(self, start: Any) -> Array:
        """Impulses to start from (…, m)."""
        return np.zeros(self.g.shape) if start is None else self.projected(np.broadcast_to(start, self.g.shape))


def _admm(rows: _Rows, tolerance: float, iterations: int, start: Any) -> tuple[Array, NDArray[np.int64]]:
    d, y = rows.d, rows.begun(start)
    x, z = y, rows.velocity(y)
    z = z + rows.correction(z)
    rho, best, made = np.full((*y.shape[:-1], 1), _RHO), y, np.zeros(y.shape[:-1], int)
    least = rows.error(y, rows.velocity(y))
    for k in range(iterations):
        going = least > tolerance
        if not going.any():
            break
        made += going
        asked = rows.g + (rows.correction(z)) - _ETA * d * x - rho * d * y - z
        new = -rows.problem.operator.solve(asked, (_ETA + rho) * d + rows.R)
        further = _RELAXED * new + (1.0 - _RELAXED) * y
        kept = rows.projected(further - z / (rho * d))
        z = z - rho * d * (further - kept)
        primal = np.abs(new - kept).max(-1, keepdims=True)
        dual = np.abs(rho * (kept - y) + _ETA * (new - x)).max(-1, keepdims=True)
        x, y = new, kept
        # What was solved says what the velocities of `new` are: near those of `kept`, without a product.
        looks = k % (10 * _LOOKS) == 10 * _LOOKS - 1 or k == iterations - 1
        if not looks and k % _LOOKS == _LOOKS - 1:
            guessed = rows.error(y, rows.g - asked - (_ETA + rho) * d * new)
            looks = bool(((guessed <= _HOPEFUL * tolerance) & (least > tolerance)).any())
        if looks:
            error = rows.error(y, rows.velocity(y))
            better = error < least
            best, least = np.where(better[..., None], y, best), np.where(better, error, least)
        if k % 20 == 19:
            more, less = primal > _UNBALANCED[0] * dual, dual > _UNBALANCED[1] * primal
            rho = np.clip(np.where(more, 2.0, np.where(less, 0.5, 1.0)) * rho, 1e-4, 1e3)
    return best, made


def _gradient(rows: _Rows, tolerance: float, iterations: int, start: Any) -> tuple[Array, NDArray[np.int64]]:
    y = rows.begun(start)
    step = 1.0 / (_largest(rows) * rows.d)
    w, t, best, made = y, np.ones((*y.shape[:-1], 1)), y, np.zeros(y.shape[:-1], int)
    least = rows.error(y, rows.velocity(y))
    for _ in range(iterations):
        going = least > tolerance
        if not going.any():
            break
        made += going
        sigma = rows.velocity(w)
        new = rows.projected(w - step * (sigma + rows.correction(sigma)))
        again = np.sum((w - new) * (new - y), -1, keepdims=True) > 0.0
        t = np.where(again, 1.0, t)
        later = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        w, y, t = new + np.where(again, 0.0, (t - 1.0) / later) * (new - y), new, later
        error = rows.error(y, rows.velocity(y))
        better = error < least
        best, least = np.where(better[..., None], y, best), np.where(better, error, least)
    return best, made


def _largest(rows: _Rows) -> Array:
    """The largest eigenvalue (…, 1) of D^-½ (G + R) D^-½."""
    root = np.sqrt(rows.d)
    x = np.ones(rows.g.shape) + 0.1 * np.sin(np.arange(rows.g.shape[-1]))
    size = np.ones((*x.shape[:-1], 1))
    for _ in range(30):
        size = np.linalg.norm(x, axis=-1, keepdims=True)
        x = (rows.velocity(x / size / root) - rows.g) / root
    return np.asarray(1.05 * np.linalg.norm(x, axis=-1, keepdims=True))
