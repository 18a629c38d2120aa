"""Implicit Runge–Kutta–Munthe-Kaas methods; the stages are solved by Newton's method.

    vᵢ = v + h Σⱼ aᵢⱼ v'ⱼ,      θᵢ = h Σⱼ aᵢⱼ J(θⱼ)⁻¹ vⱼ,      v'ᵢ = a(t + cᵢ h, q ⊕ θᵢ, vᵢ)

The unknowns are the accelerations v'ᵢ. One matrix serves all iterations of a step, with derivatives of a at its start:

    N = 1 - h A ⊗ ∂a/∂v - h² A² ⊗ ∂a/∂q,      v' ← v' - N⁻¹ (v' - a(v')),

It includes stiff springs and dampers, which therefore do not slow down convergence; the charts' θᵢ are updated along
with the accelerations. The derivatives are exact, computed column by column in a loop that compiles the dynamics once
more. Iterations end when the residual stops decreasing, normally at rounding.

It takes 2 n directional derivatives, s evaluations per iteration (three to five), and one inverse of size s n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.differentiation.derivatives import jvp
from delassus.compiler.tracing.flow.control import map as along
from delassus.compiler.tracing.flow.control import scan, while_loop
from delassus.integrators.protocol import Step, System

_ITERATIONS: Final = 40
"""Maximum number of iterations; the residual reports steps that do not converge."""

Row = tuple[float, ...]


class _Iterate(NamedTuple):
    """Accelerations (s, nv) of the stages, their displacements (s, nv), the size of the last change, whether it was
    smaller than the previous one, the residual, and the number of iterations.
    """

    accelerations: Any
    ways: Any
    size: Any
    nearer: Any
    residual: Any
    count: Any


@dataclass(frozen=True)
class ImplicitRungeKutta:
    """An implicit method.

    Attributes:
        name: Name of the method.
        order: Its order.
        a: Coefficients of the stages (s, s).
        b: Weights of the step (s,).
        c: Times of the stages (s,), relative to the step.
    """

    name: str
    order: int
    a: tuple[Row, ...]
    b: Row
    c: Row

    @property
    def adaptive(self) -> bool:
        """False: it has no error estimate."""
        return False

    @property
    def has_dense_output(self) -> bool:
        """False: it has no dense output."""
        return False

    def step(self, system: System, time: Any, q: Any, v: Any, h: Any) -> Step:
        """Advance q and v by one step of h [s], iterating the stages."""
        A, b, c = numpy.array(self.a), numpy.array(self.b), numpy.array(self.c)
        s, n = len(b), system.nv
        at_start, inverse = self._newton(system, time, q, v, h)

        def chart(ways: Any, speeds: Any) -> Any:
            return h * (A @ np.stack([system.rates(ways[i], speeds[i]) for i in range(s)]))

        def stage(_: Any, item: Any) -> Any:
            share, displacement, speed = item
            at = time + share * h
            return (), system.acceleration(at, *system.on_stage(at, system.integrate(q, displacement), speed))

        def iterate(last: _Iterate) -> _Iterate:
            accelerations, ways, size, _, residual, count = last
            speeds = v + h * (A @ accelerations)
            ways = chart(ways, speeds)
            _, evaluated = scan(stage, (), (c, ways, speeds))
            residual_value = accelerations - evaluated
            change = -(inverse @ residual_value.reshape(s * n)).reshape(s, n)
            now = np.max(np.abs(change) / system.sizes)
            scale = np.max(np.abs(evaluated) / system.sizes)
            scaled_residual = now * np.minimum(h * h, 1.0 / np.where(scale > 0.0, scale, 1.0))
            nearer = now < size
            return _Iterate(
                np.where(nearer, accelerations + change, accelerations),
                ways,
                np.where(nearer, now, size),
                nearer & (now > 0.0),
                np.where(nearer, scaled_residual, residual),
                count + 1.0,
            )

        start = np.stack([at_start] * s)
        ways = chart(np.zeros((s, n)), v + h * (A @ start))
        first = _Iterate(start, ways, np.array(np.inf), np.array(True), np.array(np.inf), np.array(0.0))
        last: _Iterate = while_loop(lambda now: now.nearer, iterate, first, _ITERATIONS)
        speeds = v + h * (A @ last.accelerations)
        displacement = h * (b @ np.stack([system.rates(last.ways[i], speeds[i]) for i in range(s)]))
        return Step(system.integrate(q, displacement), v + h * (b @ last.accelerations), residual=last.residual)

    def _newton(self, system: System, time: Any, q: Any, v: Any, h: Any) -> tuple[Any, Any]:
        """The acceleration (nv,) at the start, and N⁻¹ (s nv, s nv)."""
        A = numpy.array(self.a)
        n = system.nv
        nothing, ones = numpy.zeros((n, n)), numpy.eye(n)

        def acceleration(displacement: Any, v: Any) -> Any:
            return system.acceleration(time, system.integrate(q, displacement), v)

        def column(to_q: Any, to_v: Any) -> Any:
            return jvp(acceleration, (np.zeros(n), v), (to_q, to_v))

        at_start, columns = along(column, numpy.concatenate([ones, nothing]), numpy.concatenate([nothing, ones]))
        by_q, by_v = columns[:n].T, columns[n:].T
        blocks = [
            [(float(i == j) * numpy.eye(n)) - h * A[i, j] * by_v - h * h * (A @ A)[i, j] * by_q for j in range(len(A))]
            for i in range(len(A))
        ]
        N = np.concatenate([np.concatenate(row, axis=1) for row in blocks])
        return at_start[0], np.linalg.inv(N)
