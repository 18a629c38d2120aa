"""Checks the arguments of a step with contact: scene, state, inputs of kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import (
    SHARES,
    TIME_STEPS,
    TOLERANCES,
    iteration_count,
    number_in_range,
    numbers_in_range,
    real_array,
)
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.solvers.laws import Lcp
from delassus.contact.solvers.options import SolverInputs, SolverOptions
from delassus.contact.solvers.registry import find_solver
from delassus.contact.solvers.solve_pyramids import PYRAMID_SYSTEM
from delassus.contact.systems.scaled import CAPABILITIES as COMPILED
from delassus.dynamics.kinematics.manifold import parts
from delassus.step.contact.options import ProblemOptions
from delassus.step.contact.shape_arguments import shape_scene, slot_parameters, slot_planes
from delassus.step.laws.inputs import ContactInputs, ContactPlanes
from delassus.step.laws.law import Law, Relaxed
from delassus.step.points.parameters import contact_parameters, plane_arrays, scene_for
from delassus.step.scene import Scene
from delassus.step.selection.options import ShapeSelection
from delassus.step.sources.contact import Contact


@dataclass(frozen=True, eq=False)
class ContactArguments:
    """A robot in a state, with its contacts and the inputs of a step.

    Attributes:
        scene: The scene, which is compiled.
        contacts: The contacts with their parameters.
        state: Configurations, velocities, generalized forces.
        step: h [s], or None for accelerations and forces.
        inputs: Run-time inputs of kernels.
        parameters: (…, nparameters) of the model, None if it has none.
    """

    scene: Scene
    contacts: tuple[Contact, ...]
    state: tuple[Any, Any, Any]
    step: NDArray[np.float64] | None
    inputs: ContactInputs
    parameters: Any = None

    @classmethod
    def of(
        cls,
        mechanism: Any,
        state: tuple[Any, Any, Any],
        contacts: Any,
        time_step: Any,
        law: Law,
        options: ProblemOptions,
    ) -> ContactArguments:
        """Check the arguments, except those of the solver (see `solver_inputs`)."""
        rows = options.rows
        given: tuple[Contact, ...] = ()
        of_shapes = isinstance(contacts, ShapeSelection)
        if of_shapes:
            on_plane = any(x is not None for x in options.planes)
            scene = shape_scene(mechanism, contacts, rows, options.contact, on_plane)
        else:
            scene, given = scene_for(mechanism, contacts, rows.limits, rows.joint_friction, isinstance(law, Relaxed))
        step = None if time_step is None else numbers_in_range("time_step", time_step, TIME_STEPS)
        solver = getattr(options, "solver", SolverOptions())
        _check_batch(state, step, solver.start)
        if options.time is not None:
            real_array("time", options.time, "a number of seconds")
        if of_shapes:
            contact = slot_parameters(scene, options.contact) if scene.slots else ContactParameters()
            planes = slot_planes(scene, options.planes) if scene.slots else ContactPlanes()
        else:
            contact = contact_parameters(given, options.contact)
            planes = ContactPlanes(*plane_arrays(scene, *options.planes))
        _check_contact_batch(state, contact, planes)
        share = numbers_in_range(
            "stabilization", 0.0 if options.stabilization is None else options.stabilization, SHARES
        )
        return cls(
            scene,
            given,
            (_without_zero_quaternions(scene, state[0]), *state[1:]),
            step,
            ContactInputs(contact, share if np.any(share) else None, planes, options.time),
            options.parameters,
        )

    def per_point(self, values: list[Any]) -> NDArray[np.float64]:
        """Values (points, …) from one value for each contact."""
        return np.array([x for x, contact in zip(values, self.contacts, strict=True) for _ in contact.corners], float)

    @property
    def without_stabilization(self) -> ContactInputs:
        """Inputs of kernels that do not correct position errors."""
        return self.inputs._replace(stabilization=None)

    def refuse_impacts(self, reason: str) -> None:
        """Raise if contacts have restitution or compliance; `reason` is the message with a placeholder for the name."""
        for name in ("restitution", "compliance"):
            if getattr(self.inputs.contact, name) is not None:
                raise ContactProblemError(reason.format(name), code="conflicting-arguments")


def _check_batch(state: tuple[Any, Any, Any], time_step: Any, start: Any) -> None:
    """Raise unless the batch axes of a state and of the warm start broadcast."""
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
        raise ContactProblemError(f"the batch axes do not broadcast: {named}{more}.", code="batch-mismatch")


def _check_contact_batch(state: tuple[Any, Any, Any], contact: ContactParameters, planes: ContactPlanes) -> None:
    """Raise unless the batch axes of parameters and planes of contacts broadcast with those of the state."""
    batch = np.broadcast_shapes(*(np.shape(x)[:-1] for x in state))
    for name, x in (*contact._asdict().items(), *planes._asdict().items()):
        axes = np.shape(x)[: -2 if name == "normal" else -1]
        try:
            np.broadcast_shapes(batch, axes)
        except ValueError:
            raise ContactProblemError(
                f"{name} has the batch axes {axes}, which do not broadcast with those of the state, {batch}.",
                code="batch-mismatch",
            ) from None


def _without_zero_quaternions(scene: Scene, q: Any) -> Any:
    """Configurations (…, nq) with NaN in place of zero quaternions, so that the status reports them."""
    starts = [i + motion.nq - 4 for motion, i, _ in parts(scene.model) if motion.has_quaternion]
    if not starts or np.shape(q)[-1:] != (scene.model.nq,):
        return q
    array = np.asarray(q, float)
    zero = np.logical_or.reduce([~np.any(array[..., i : i + 4], -1) for i in starts])
    return np.where(zero[..., None], np.nan, array) if zero.any() else q


def solver_inputs(scene: Scene, law: Law, solver: SolverOptions) -> SolverInputs:
    """Check the options of a solver, whose method must support the law, and convert them to inputs of kernels."""
    pyramids = isinstance(law, Lcp)
    find_solver(solver.method, PYRAMID_SYSTEM if pyramids else COMPILED, "lcp" if pyramids else "ncp")
    iteration_count("iterations", solver.iterations)
    tolerance = number_in_range("tolerance", solver.tolerance, TOLERANCES)
    start = solver.start
    if start is not None and np.shape(start)[-1:] != (scene.m,):
        raise ContactProblemError(
            f"start has shape {np.shape(start)}; its last axis must have length {scene.m}, one impulse for each row.",
            code="wrong-shape",
        )
    return SolverInputs(None if start is None else np.asarray(start, float), tolerance, float(solver.iterations))
