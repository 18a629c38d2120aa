"""What a call asks for, checked: a scene, a state, a step, and numbers by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import (
    NOT_NEGATIVE,
    SHARES,
    TIME_STEPS,
    TOLERANCES,
    iteration_count,
    number_in_range,
    numbers_in_range,
    real_array,
)
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.solvers.registry import find_solver
from delassus.contact.systems.scaled import CAPABILITIES as COMPILED
from delassus.dynamics.kinematics.manifold import parts
from delassus.step.points.numbers import numbers_of, scene_for
from delassus.step.scene import Scene
from delassus.step.sources.contact import Contact


@dataclass(frozen=True, eq=False)
class Asked:
    """A robot in a state, and what acts there.

    Attributes:
        scene: What is compiled.
        contacts: With their numbers.
        state: Configurations, velocities, generalised forces.
        step: h [s], or None for forces.
        numbers: Arrays of the contacts by name: friction and the like.
        rest: stabilization, time, parameters, where they are given.
        solver: tolerance, iterations, method, start.
    """

    scene: Scene
    contacts: tuple[Contact, ...]
    state: tuple[Any, Any, Any]
    step: NDArray[np.float64] | None
    numbers: dict[str, Any]
    rest: dict[str, Any]
    solver: dict[str, Any]

    @classmethod
    def of(
        cls,
        mechanism: Any,
        state: tuple[Any, Any, Any],
        contacts: Any,
        time_step: Any,
        numbers: dict[str, Any],
        rest: dict[str, Any],
        solver: dict[str, Any],
        rows: dict[str, bool],
    ) -> Asked:
        """Checked; `rows` are options of the scene."""
        scene, given = scene_for(mechanism, contacts, **rows)
        step = None if time_step is None else numbers_in_range("time_step", time_step, TIME_STEPS)
        _check_batch(state, step, solver.get("start"))
        return cls(
            scene,
            given,
            (_without_zero_quaternions(scene, state[0]), *state[1:]),
            step,
            numbers_of(scene, given, numbers),
            _given(rest),
            _checked(scene, solver),
        )

    def per_point(self, values: list[Any]) -> NDArray[np.float64]:
        """Numbers (points, …) from one for each contact."""
        return np.array([x for x, contact in zip(values, self.contacts, strict=True) for _ in contact.corners], float)


def _check_batch(state: tuple[Any, Any, Any], time_step: Any, start: Any) -> None:
    """Raise unless the batch axes of a state fit each other, and those of a start fit them."""
    for name, x in zip(("q", "v", "tau", "time_step", "start"), (*state, time_step, start), strict=True):
        if x is not None or name in ("q", "v", "tau"):
            real_array(name, x)
    shapes = [np.shape(x)[:-1] for x in state] + [() if time_step is None else np.shape(time_step)]
    try:
        batch = np.broadcast_shapes(*shapes)
        fits = start is None or np.broadcast_shapes(batch, np.shape(start)[:-1]) == batch
    except ValueError:
        fits = False
    if not fits:
        named = ", ".join(f"{name} {np.shape(x)}" for name, x in zip(("q", "v", "tau"), state, strict=True))
        more = "" if start is None else f", start {np.shape(start)}"
        raise ContactProblemError(f"the batch axes do not fit each other: {named}{more}.", code="batch-mismatch")


def _without_zero_quaternions(scene: Scene, q: Any) -> Any:
    """Configurations (…, nq) with NaN where a quaternion is zero, which is no rotation: the status says so then."""
    starts = [i + motion.nq - 4 for motion, i, _ in parts(scene.model) if motion.has_quaternion]
    if not starts or np.shape(q)[-1:] != (scene.model.nq,):
        return q
    array = np.asarray(q, float)
    zero = np.logical_or.reduce([~np.any(array[..., i : i + 4], -1) for i in starts])
    return np.where(zero[..., None], np.nan, array) if zero.any() else q


def resting(name: str, value: Any) -> float:
    """A distance or speed below which something rests: not negative."""
    return number_in_range(name, value, NOT_NEGATIVE)


def _given(rest: dict[str, Any]) -> dict[str, Any]:
    asked = rest.get("stabilization")
    share = numbers_in_range("stabilization", 0.0 if asked is None else asked, SHARES)
    found = rest | {"stabilization": share if np.any(share) else None}
    return {name: value for name, value in found.items() if value is not None}


def _checked(scene: Scene, solver: dict[str, Any]) -> dict[str, Any]:
    if not solver:
        return {}
    find_solver(solver["method"], solver.get("system", COMPILED), solver.get("law", "ncp"))
    iteration_count("iterations", solver["iterations"])
    tolerance = number_in_range("tolerance", solver["tolerance"], TOLERANCES)
    start = solver.get("start")
    if start is not None and np.shape(start)[-1:] != (scene.m,):
        raise ContactProblemError(
            f"start has shape {np.shape(start)}; it needs {scene.m} impulses in its last axis.", code="wrong-shape"
        )
    found = {"method": solver["method"], "tolerance": tolerance, "iterations": float(solver["iterations"])}
    return found if start is None else found | {"start": np.asarray(start, float)}
