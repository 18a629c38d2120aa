"""The contact problem behind a result, built when it is asked for, from numbers that can be copied and pickled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from delassus.contact.problems.problem import ContactProblem
from delassus.errors import BadArgument
from delassus.step.contact.rigid import assemble_contacts
from delassus.step.laws.inputs import structured
from delassus.step.laws.relaxed import relaxed_rows
from delassus.step.scene import Scene

_CONE = ("friction", "torsional", "rolling")


@dataclass(frozen=True, eq=False)
class Origin:
    """What a result is of: a state with a step, and numbers by name, as they were: simulations change theirs in place.

    Attributes:
        law: "rigid" or "relaxed"; others solve no contact problem.
        scene: The robot, its contacts and its other rows.
        state: q, v, tau and h.
        names: Of the numbers.
        numbers: Those that the kernel was called with.
    """

    law: str
    scene: Scene
    state: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    numbers: tuple[Any, ...] = ()

    @classmethod
    def of(cls, law: str, scene: Scene, state: tuple[Any, ...], numbers: dict[str, Any]) -> Origin:
        """With arrays of its own."""
        return cls(law, scene, tuple(np.array(x, float) for x in state), tuple(numbers), tuple(numbers.values()))

    def problem(self) -> ContactProblem:
        """The contact problem."""
        given = dict(zip(self.names, self.numbers, strict=True))
        if self.law == "rigid":
            return rigid_problem(self.scene, self.state, given)
        if self.law == "relaxed":
            return relaxed_problem(self.scene, self.state, given)
        raise BadArgument(f"there is no ContactProblem of {self.law}.", code="not-supported")


def rigid_problem(scene: Scene, state: tuple[Any, ...], numbers: dict[str, Any]) -> ContactProblem:
    """That of a step of time with rigid contact."""
    cone = {name: numbers[name] for name in _CONE if name in numbers}
    rest = {name: value for name, value in numbers.items() if name not in cone}
    G, g, R, _, _ = assemble_contacts(scene, *state, **structured(rest))
    bounds = _bounds(scene, np.asarray(state[3]))
    return ContactProblem(G, g, scene.layout.cones, **cone, **bounds, compliance=R if np.any(R) else None, check=False)


def relaxed_problem(scene: Scene, state: tuple[Any, ...], numbers: dict[str, Any]) -> ContactProblem:
    """(G + R) f + a_f - a*: a convex problem of forces, with elliptic cones."""
    G, R, wanted, moving, on = relaxed_rows(scene, *state, **structured(numbers))
    cone = {name: numbers[name] for name in _CONE if name in numbers}
    bounds = _bounds(scene, np.ones(()))
    return ContactProblem(G, on * (moving - wanted), scene.layout.cones, **cone, **bounds, compliance=R, check=False)


def _bounds(scene: Scene, h: Any) -> dict[str, Any]:
    if not scene.friction_bounds:
        return {}
    bounds = h[..., None] * np.array(scene.friction_bounds)
    return {"lower": -bounds, "upper": bounds}
