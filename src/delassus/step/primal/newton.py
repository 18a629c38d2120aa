"""Newton's method for the velocity of a step under MuJoCo's contact law.

The velocity u (nv,) of the step minimizes the convex function

    φ(u) = ½ (u - v_f)ᵀ M̂ (u - v_f) + Σ s_i(J_i u - c_i)

with the velocity v_f without constraints, the reference velocities c (m,) of the rows (see `soft_rows`) and their costs
s (see `costs`). One iteration is

    (M̂ + Jᵀ s'' J) du = -(M̂ (u - v_f) + Jᵀ s'),      u⁺ = u + t du,  t near the minimum of φ(u + t du).

If all contacts are with the world, the matrix has the sparsity of the tree, and its factorization costs as much as that
of the mass matrix: O(n d²) for depth d. Rows of limits and joint friction only add to its diagonal. All rows are linear
in t, so the line search evaluates φ' in O(m), without products with J. No Delassus matrix is formed. Redundant contacts
need no special treatment, since φ is strictly convex. A warm-started step takes one to three iterations.

M̂ contains servos without their force limits. The cost of a servo subtracts the force beyond its limits: for the
unlimited force f, its slope is h (f - clip f), and its curvature cancels the servo's part of M̂.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import UNBOUNDED, while_loop
from delassus.dynamics.mass.factor import factor_tree, substitute
from delassus.linalg.cholesky import Cholesky
from delassus.step.primal.costs import ContactCost

_FLAT: Final = 0.1
"""Fraction of the initial slope at which the line search ends."""

_SEARCHES: Final = 6.0
"""Largest number of evaluations of a line search."""


class Block(NamedTuple):
    """The contacts of one body: J (motions, nv) of its motions, and for each contact the indices of its rows, its P
    (rows, motions) or None for the identity, and its cost."""

    J: Any
    contacts: list[tuple[list[int], Any, ContactCost]]


class Single(NamedTuple):
    """A single row: its index, its nonzero entries by velocity index, its stiffness [kg], and its type: "bilateral",
    "one-sided", or "friction" with the largest impulse `bound`."""

    row: int
    factors: dict[int, Any]
    stiffness: Any
    kind: str
    bound: Any = None


class SoftServo(NamedTuple):
    """A servo with force limits: its moment arms r by velocity index, its impulse pull + slope r·u without limits,
    where slope ≤ 0, and the bounds of its impulse."""

    factors: dict[int, Any]
    pull: Any
    slope: Any
    lower: Any
    upper: Any


class PrimalProblem(NamedTuple):
    """The function φ of a step.

    Attributes:
        above: For each velocity, those that the matrix couples it with; None if the matrix is dense.
        M: (nv, nv) M̂.
        free: (nv,) v_f.
        target: (m,) c.
        blocks: Contacts, grouped by body.
        singles: All other rows.
        servos: Servos with force limits.
    """

    above: list[list[int]] | None
    M: Any
    free: Any
    target: Any
    blocks: list[Block]
    singles: list[Single]
    servos: list[SoftServo]

    def rows(self, u: Any) -> Any:
        """J u (m,), followed by the rates r·u of servos."""
        result = np.zeros(len(self.target) + len(self.servos))
        for block in self.blocks:
            motion = block.J @ u
            for rows, P, _ in block.contacts:
                result[rows] = motion if P is None else P @ motion
        for row, factors in self._scalar_rows():
            result[row] = sum(f * u[j] for j, f in factors.items())
        return result

    def _scalar_rows(self) -> list[tuple[int, dict[int, Any]]]:
        own = [(single.row, single.factors) for single in self.singles]
        return own + [(len(self.target) + k, servo.factors) for k, servo in enumerate(self.servos)]

    def errors(self, u: Any) -> Any:
        """x = J u - c (m,), followed by the rates of servos."""
        return self.rows(u) - np.concatenate([self.target, np.zeros(len(self.servos))])

    def slopes(self, x: Any) -> Any:
        """s'(x) (m,), followed by the slopes of the servos' costs."""
        result = np.zeros(len(x))
        for block in self.blocks:
            for rows, _, cost in block.contacts:
                result[rows] = cost.slope(x[rows])
        for single in self.singles:
            push = single.stiffness * x[single.row]
            if single.kind == "one-sided":
                push = np.minimum(push, 0.0)
            elif single.kind == "friction":
                push = np.clip(push, -single.bound, single.bound)
            result[single.row] = push
        for k, servo in enumerate(self.servos):
            row = len(self.target) + k
            force = servo.pull + servo.slope * x[row]
            result[row] = force - np.clip(force, servo.lower, servo.upper)
        return result

    def joint_impulses(self, slopes: Any) -> Any:
        """Jᵀ s' (nv,)."""
        total = np.zeros(len(self.free))
        for block in self.blocks:
            motion = None
            for rows, P, _ in block.contacts:
                own = slopes[rows] if P is None else P.T @ slopes[rows]
                motion = own if motion is None else motion + own
            total = total + block.J.T @ motion
        for row, factors in self._scalar_rows():
            for j, factor in factors.items():
                total[j] = total[j] + factor * slopes[row]
        return total

    def solve(self, x: Any, force: Any) -> Any:
        """(M̂ + Jᵀ s''(x) J)⁻¹ f (nv,)."""
        n = len(self.free)
        above = self.above or [list(range(k - 1, -1, -1)) for k in range(n)]
        H = np.array(self.M)
        for block in self.blocks:
            K = None
            for rows, P, cost in block.contacts:
                W = cost.curvature(x[rows])
                own = W if P is None else P.T @ (W @ P)
                K = own if K is None else K + own
            moved = K @ block.J
            for k in range(n):
                for i in (*above[k], k):
                    for r in range(len(moved)):
                        H[i, k] = H[i, k] + block.J[r, i] * moved[r, k]
        for factors, curvature in self._scalar_curvatures(x):
            for k, one in factors.items():
                for i, other in factors.items():
                    if i <= k:
                        H[i, k] = H[i, k] + curvature * one * other
        if self.above is None:
            return Cholesky(H.T).solve(force)
        U, D = factor_tree(above, H)
        return substitute(above, U, D, force)

    def _scalar_curvatures(self, x: Any) -> list[tuple[dict[int, Any], Any]]:
        result = []
        for single in self.singles:
            D, error = single.stiffness, x[single.row]
            if single.kind == "one-sided":
                D = np.where(error < 0.0, D, 0.0)
            elif single.kind == "friction":
                D = np.where(np.abs(D * error) < single.bound, D, 0.0)
            result.append((single.factors, D))
        for k, servo in enumerate(self.servos):
            force = servo.pull + servo.slope * x[len(self.target) + k]
            within = (force >= servo.lower) & (force <= servo.upper)
            result.append((servo.factors, np.where(within, 0.0, servo.slope)))
        return result


class PrimalState(NamedTuple):
    """Velocity u (nv,), errors x and slopes s' of rows, M̂ (u - v_f) (nv,), gradient of φ (nv,), iteration count."""

    u: Any
    x: Any
    slopes: Any
    push: Any
    gradient: Any
    count: Any


class _Search(NamedTuple):
    """A line search: t, the slope of φ and of the rows at t, and the bounds of an interval with their slopes."""

    t: Any
    value: Any
    slopes: Any
    low: Any
    low_value: Any
    high: Any
    high_value: Any
    count: Any


def minimize(problem: PrimalProblem, u: Any, should_continue: Callable[[PrimalState], Any]) -> PrimalState:
    """Minimize φ by Newton's method, from a velocity u (nv,)."""

    def step(last: PrimalState) -> PrimalState:
        du = problem.solve(last.x, -last.gradient)
        along, push = problem.rows(du), problem.M @ du
        linear, quadratic = du @ last.push, du @ push
        first = linear + last.slopes @ along

        def evaluate(t: Any) -> tuple[Any, Any]:
            slopes = problem.slopes(last.x + t * along)
            return linear + t * quadratic + slopes @ along, slopes

        def is_steep(current: _Search) -> Any:
            return (current.value > -_FLAT * first) & (current.count < _SEARCHES) | (
                (current.value < _FLAT * first) & (current.t < 1.0) & (current.count < _SEARCHES)
            )

        def shorten(current: _Search) -> _Search:
            above = current.value > 0.0
            low, low_value = np.where(above, current.low, current.t), np.where(above, current.low_value, current.value)
            high, high_value = (
                np.where(above, current.t, current.high),
                np.where(above, current.value, current.high_value),
            )
            share = np.clip(low_value / (low_value - high_value), 0.05, 0.95)
            t = low + share * (high - low)
            value, slopes = evaluate(t)
            return _Search(t, value, slopes, low, low_value, high, high_value, current.count + 1.0)

        one, zero = np.array(1.0), np.array(0.0)
        value, slopes = evaluate(one)
        start = _Search(one, value, slopes, zero, first, one, value, zero)
        end = while_loop(is_steep, shorten, start, UNBOUNDED)
        u, x, total = last.u + end.t * du, last.x + end.t * along, last.push + end.t * push
        return PrimalState(u, x, end.slopes, total, total + problem.joint_impulses(end.slopes), last.count + 1.0)

    x = problem.errors(u)
    slopes, push = problem.slopes(x), problem.M @ (u - problem.free)
    start = PrimalState(u, x, slopes, push, push + problem.joint_impulses(slopes), np.array(0.0))
    last: PrimalState = while_loop(should_continue, step, start, UNBOUNDED)
    return last
