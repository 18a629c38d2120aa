"""Explicit Runge–Kutta–Munthe-Kaas methods: a table of coefficients, and a loop over its stages.

    θᵢ = h Σⱼ aᵢⱼ θ'ⱼ,      vᵢ = v + h Σⱼ aᵢⱼ v'ⱼ,      θ'ᵢ = J(θᵢ)⁻¹ vᵢ,      v'ᵢ = a(t + cᵢ h, q ⊕ θᵢ, vᵢ)

The step is q ⊕ h Σ bᵢ θ'ᵢ, v + h Σ bᵢ v'ᵢ. A second row of weights gives a step of lower order; the difference of both
estimates the error. The stages are a compiled loop, so that the dynamics is compiled once.

If the last stage is at the end of the step, its acceleration is reused as the first stage of the next step ("first same
as last").

Reference: H. Munthe-Kaas, High order Runge–Kutta methods on manifolds, Applied Numerical Mathematics 29 (1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan
from delassus.integrators.protocol import Step, System

Row = tuple[float, ...]


@dataclass(frozen=True)
class RungeKutta:
    """An explicit method.

    Attributes:
        name: Name of the method.
        order: Its order.
        a: Coefficients of the stages (s, s), zero on and above the diagonal.
        b: Weights of the step (s,).
        c: Times of the stages (s,), relative to the step.
        lower: Weights (s,) of the embedded step of lower order; () if there is none.
        dense: Weights of the stages at a fraction x of the step, as coefficients of x, x², … (s, …); () without dense
            output.
    """

    name: str
    order: int
    a: tuple[Row, ...]
    b: Row
    c: Row
    lower: Row = ()
    dense: tuple[Row, ...] = ()

    @property
    def adaptive(self) -> bool:
        """Whether it estimates its errors."""
        return bool(self.lower)

    @property
    def has_dense_output(self) -> bool:
        """Whether it computes states inside its steps."""
        return bool(self.dense)

    @property
    def first_is_last(self) -> bool:
        """Whether the last stage is at the end of the step, where the next one begins."""
        return self.a[-1] == self.b and self.c[-1] == 1.0

    def step(self, system: System, time: Any, q: Any, v: Any, h: Any, first: Any = None) -> Step:
        """One step; `first` is the acceleration of the first stage, if known from the previous step."""
        count = len(self.b)
        b = numpy.array(self.b)

        def stage(rates: Any, row: Any) -> Any:
            turns, gains = rates
            a, c, is_current = row
            at, displacement = time + c * h, h * (a @ turns)
            stage_q, now = system.on_stage(at, system.integrate(q, displacement), v + h * (a @ gains))
            new = system.rates(displacement, now), system.acceleration(at, stage_q, now)
            return tuple(
                np.where(is_current[:, None] > 0.5, x[None, :], old) for x, old in zip(new, rates, strict=True)
            ), None

        turns = gains = np.zeros((count, system.nv))
        rows: Any = (numpy.array(self.a), numpy.array(self.c), numpy.eye(count))
        if first is not None:  # its stage is known and skipped
            turns, gains = (np.concatenate([x[None, :], turns[1:]]) for x in (v, first))
            rows = tuple(x[1:] for x in rows)
        (turns, gains), _ = scan(stage, (turns, gains), rows)
        error = None
        if self.lower:
            apart = b - numpy.array(self.lower)
            error = np.stack([h * (apart @ turns), h * (apart @ gains)])

        def between(share: Any) -> tuple[Any, Any]:
            table = numpy.array(self.dense)
            weights = h * (table @ np.stack([share ** float(k + 1) for k in range(table.shape[1])]))
            return system.integrate(q, weights @ turns), v + weights @ gains

        return Step(
            system.integrate(q, h * (b @ turns)),
            v + h * (b @ gains),
            error,
            between=between if self.dense else None,
            last=gains[-1] if self.first_is_last else None,
        )
