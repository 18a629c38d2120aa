"""Creates the contact problem of a result on request, from data that can be copied and pickled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from delassus.contact.problems.problem import ContactProblem
from delassus.errors import BadArgument
from delassus.step.contact.rigid import assemble_contacts
from delassus.step.contact.shape_rows import assemble_shape_contacts
from delassus.step.laws.inputs import ContactInputs, RowRelaxation
from delassus.step.laws.relaxed import relaxed_rows
from delassus.step.scene import Scene


@dataclass(frozen=True, eq=False)
class Origin:
    """Copies of the state, step and inputs of a result, since simulations change theirs in place.

    Attributes:
        law: "rigid" or "relaxed"; other laws have no contact problem.
        scene: The robot, its contacts and its other rows.
        state: q, v, tau and h.
        inputs: The run-time inputs of the kernel.
        restitution_share: (…) the fraction of restitution that adds no energy; None without restitution.
        relaxation: The compliance of rows; None for rigid rows.
        parameters: (…, nparameters) of the model, None if it has none.
    """

    law: str
    scene: Scene
    state: tuple[Any, ...] = ()
    inputs: ContactInputs | None = None
    restitution_share: Any = None
    relaxation: RowRelaxation | None = None
    parameters: Any = None

    def problem(self) -> ContactProblem:
        """The contact problem."""
        if self.inputs is None or self.law not in ("rigid", "relaxed"):
            raise BadArgument(
                f"{self.law} has no ContactProblem; only a time step under a rigid law, or under the relaxed law with "
                "elliptic cones, has one.",
                code="not-supported",
            )
        if self.relaxation is None:
            return rigid_problem(self.scene, self.state, self.inputs, self.parameters, self.restitution_share)
        return relaxed_problem(self.scene, self.state, self.inputs, self.parameters, self.relaxation)


def copy_arrays(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copy the arrays of a state."""
    return tuple(np.array(x, float) for x in state)


def rigid_problem(
    scene: Scene, state: tuple[Any, ...], inputs: ContactInputs, parameters: Any = None, restitution_share: Any = None
) -> ContactProblem:
    """The contact problem of a time step with rigid contact."""
    if scene.slots:
        result = assemble_shape_contacts(
            scene, *state, surroundings=inputs, parameters=parameters, restitution_share=restitution_share
        )
        own = inputs.contact.replace(friction=result.friction)
        own = own if own.torsional is None else own.replace(torsional=result.torsional)
        own = own if own.rolling is None else own.replace(rolling=result.rolling)
        R = result.compliance
        known = inputs._replace(contact=own)
        return _problem(scene, result.G, result.g, np.asarray(state[3]), known, R if np.any(R) else None)
    G, g, R, _, _ = assemble_contacts(
        scene,
        *state,
        surroundings=inputs._replace(contact=inputs.contact.replace(friction=None, torsional=None, rolling=None)),
        parameters=parameters,
        restitution_share=restitution_share,
    )
    return _problem(scene, G, g, np.asarray(state[3]), inputs, R if np.any(R) else None)


def relaxed_problem(
    scene: Scene, state: tuple[Any, ...], inputs: ContactInputs, parameters: Any, relaxation: RowRelaxation
) -> ContactProblem:
    """The convex problem (G + R) f + a_f - a* of forces f in elliptic cones."""
    G, R, wanted, moving, on = relaxed_rows(
        scene, *state, surroundings=inputs, relaxation=relaxation, parameters=parameters
    )
    return _problem(scene, G, on * (moving - wanted), np.ones(()), inputs, R)


def _problem(scene: Scene, G: Any, g: Any, h: Any, inputs: ContactInputs, compliance: Any) -> ContactProblem:
    contact, lower, upper = inputs.contact.replace(restitution=None, compliance=compliance), None, None
    if scene.friction_bounds:
        upper = h[..., None] * np.array(scene.friction_bounds)
        lower = -upper
    return ContactProblem(
        G,
        g,
        scene.layout.cones,
        friction=contact.friction,
        torsional=contact.torsional,
        rolling=contact.rolling,
        lower=lower,
        upper=upper,
        compliance=contact.compliance,
        check=False,
    )
