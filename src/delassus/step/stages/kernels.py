"""The kernels of a simulation: a control period, its contact problem, and where a robot may touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, Kernel, kernel
from delassus.step.actuation.actuators import drive
from delassus.step.scene import Scene
from delassus.step.stages.assemble import assemble
from delassus.step.stages.collide import collide, find_candidates
from delassus.step.stages.kinematics import compute_kinematics
from delassus.step.stages.pipeline import initial_result, solve_contacts_without_gain, take_period
from delassus.step.stages.types import (
    MAX_ITERATIONS,
    TOLERANCE,
    ContactParameters,
    GroundShape,
    SolverLimits,
    StepInputs,
)

GROUND_INPUTS: Final = {
    "friction": "()",
    "restitution": "()",
    "torsional": "()",
    "rolling": "()",
    "normal": "(3)",
    "height": "()",
}
INPUTS: Final = {**GROUND_INPUTS, "tolerance": "()", "iterations": "()"}
SIGNATURE: Final = (
    "(nq),(nv),(impulse_size),(slot_size),(),(),{control}()->(nq),(nv),(impulse_size),(slot_size),(),(),()"
)
"""Without rows, contacts or controls their arrays have one element, which means nothing: kernels need some."""
SHARED: Final = {"heights": "(field_rows,field_columns)"}


@kernel(SIGNATURE.format(control="(control_size),"), inputs=INPUTS, shared=SHARED)
def simulate(
    scene: Scene,
    q: Any,
    v: Any,
    impulse: Any,
    contact: Any,
    time: Any,
    alive: Any,
    control: Any,
    time_step: Any,
    *,
    friction: Any = 0.7,
    restitution: Any = 0.0,
    torsional: Any = 0.0,
    rolling: Any = 0.0,
    normal: Any = (0.0, 0.0, 1.0),
    height: Any = 0.0,
    tolerance: Any = TOLERANCE,
    iterations: Any = MAX_ITERATIONS,
    heights: Any = None,
) -> tuple[Floats, ...]:
    """q, v, impulses and contacts after a period; residual [m/s], iterations, `Mark`."""
    ground = GroundShape(np.array(normal), height, heights)
    coefficients = ContactParameters(friction, torsional, rolling, restitution)
    inputs = StepInputs(control, time_step, ground, coefficients, SolverLimits(tolerance, iterations))
    return take_period(scene, q, v, impulse, contact, time, alive, inputs)


def simulate_with(policy: Callable[[Any, Any, Any], Any]) -> Kernel[..., Any]:
    """The same kernel with a traced function of time, q and v in place of the controls."""

    @kernel(SIGNATURE.format(control=""), inputs=INPUTS, shared=SHARED)
    def simulate_policy(
        scene: Scene,
        q: Any,
        v: Any,
        impulse: Any,
        contact: Any,
        time: Any,
        alive: Any,
        time_step: Any,
        *,
        friction: Any = 0.7,
        restitution: Any = 0.0,
        torsional: Any = 0.0,
        rolling: Any = 0.0,
        normal: Any = (0.0, 0.0, 1.0),
        height: Any = 0.0,
        tolerance: Any = TOLERANCE,
        iterations: Any = MAX_ITERATIONS,
        heights: Any = None,
    ) -> tuple[Floats, ...]:
        """As `simulate`."""
        ground = GroundShape(np.array(normal), height, heights)
        coefficients = ContactParameters(friction, torsional, rolling, restitution)
        limits = SolverLimits(tolerance, iterations)
        inputs = StepInputs(np.array(policy(time, q, v)), time_step, ground, coefficients, limits)
        return take_period(scene, q, v, impulse, contact, time, alive, inputs)

    return simulate_policy


@kernel("(nq),(nv),(impulse_size),(slot_size),(control_size),(),()->(m,m),(m)", inputs=GROUND_INPUTS, shared=SHARED)
def assemble_step(
    scene: Scene,
    q: Any,
    v: Any,
    impulse: Any,
    contact: Any,
    control: Any,
    time: Any,
    time_step: Any,
    *,
    friction: Any = 0.7,
    restitution: Any = 0.0,
    torsional: Any = 0.0,
    rolling: Any = 0.0,
    normal: Any = (0.0, 0.0, 1.0),
    height: Any = 0.0,
    heights: Any = None,
) -> tuple[Floats, Floats]:
    """G (m, m) and g (m,) of the contact problem of the next step, with the restitution that adds no energy."""
    ground = GroundShape(np.array(normal), height, heights)
    coefficients = ContactParameters(friction, torsional, rolling, restitution)
    inputs = StepInputs(control[: scene.nu], time_step, ground, coefficients)
    state = initial_result(scene, q, v, impulse, contact, time).state
    kinematics = compute_kinematics(scene, q)
    contacts = collide(scene, kinematics, ground)
    forces = drive(scene.model, scene.actuators, q, v, inputs.control, time_step)
    system = assemble(scene, state, kinematics, contacts, forces, inputs)
    g = system.g
    if scene.bounces:
        fraction = solve_contacts_without_gain(scene, contacts, system, inputs).restitution_fraction
        g = g - (1.0 - fraction) * system.rebound
    return system.rows.delassus(system.S), g


@kernel("(nq)->(candidates),(candidates,3),(candidates,3)", inputs={"normal": "(3)", "height": "()"}, shared=SHARED)
def candidate_geometry(
    scene: Scene, q: Any, *, normal: Any = (0.0, 0.0, 1.0), height: Any = 0.0, heights: Any = None
) -> tuple[Floats, Floats, Floats]:
    """Gaps (candidates,) [m], points and normals (candidates, 3) in the world."""
    ground = GroundShape(np.array(normal), height, heights)
    gap, point, normal = find_candidates(scene, compute_kinematics(scene, q), ground)
    return gap, point, normal
