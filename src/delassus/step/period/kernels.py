"""The kernels of a simulation: a control period, its contact problem, its contact geometry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.host.inputs import Declared, Group, Input
from delassus.compiler.host.kernel import Floats, Kernel, kernel
from delassus.contact.cones.parameters import ContactParameters
from delassus.step.actuators.activation import activate
from delassus.step.actuators.drive import drive
from delassus.step.period.hooks import StepHooks
from delassus.step.period.period import PeriodStart, take_period
from delassus.step.scene import Scene
from delassus.step.stages.assemble import assemble
from delassus.step.stages.collide import collide, find_candidates
from delassus.step.stages.kinematics import compute_kinematics
from delassus.step.stages.pipeline import (
    Step,
    initial_result,
    solve_contacts_without_gain,
    take_activated_step,
)
from delassus.step.stages.types import MAX_ITERATIONS, TOLERANCE, GroundShape, SolverLimits, StepInputs

MATERIAL: Final = Group(
    ContactParameters,
    friction=Input("()", 0.7),
    torsional=Input("()", 0.0),
    rolling=Input("()", 0.0),
    restitution=Input("()", 0.0),
)
GROUND: Final = Group(
    GroundShape,
    normal=Input("(3)", (0.0, 0.0, 1.0)),
    height=Input("()", 0.0),
    heights=Input("(field_rows,field_columns)", shared=True),
)
LIMITS: Final = Group(SolverLimits, tolerance=Input("()", TOLERANCE), iterations=Input("()", MAX_ITERATIONS))
INPUTS: Final[dict[str, Declared]] = {
    "material": MATERIAL,
    "ground": GROUND,
    "limits": LIMITS,
    "wrench": Input("(pushes,6)"),
}
SIGNATURE: Final = (
    "(nq),(nv),(impulse_size),(slot_size),(),(),(control_size),()->(nq),(nv),(impulse_size),(slot_size),(),(),()"
)
"""Arrays without rows, contacts or controls have one unused element, since kernels need nonempty arrays."""


def simulate_by(step: Step) -> Kernel[..., Any]:
    """The kernel of a control period whose time steps are computed by `step`."""

    @kernel(SIGNATURE, inputs=INPUTS)
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
        material: ContactParameters,
        ground: GroundShape,
        limits: SolverLimits,
        wrench: Any = None,
    ) -> tuple[Floats, ...]:
        """q, v, impulses and contacts after a period; residual [m/s], iterations, flags (`Mark`)."""
        inputs = step_inputs(control, time_step, material, ground, limits)._replace(wrench=wrench)
        return take_period(scene, PeriodStart(q, v, impulse, contact, time, alive), inputs, step)

    return simulate


simulate: Final = simulate_by(take_activated_step)


def simulate_with_hooks(
    hooks: Callable[[Any], StepHooks], shared: Group | None, step: Step = take_activated_step
) -> Kernel[..., Any]:
    """`simulate` with the functions of a user in the period, `hooks(shared)`; `step` computes a time step.

    `shared` declares arrays that all environments share. They are inputs at run time: other values of them do not
    compile a new kernel.
    """

    @kernel(SIGNATURE, inputs=INPUTS | ({} if shared is None else {"shared": shared}))
    def simulate_hooks(
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
        material: ContactParameters,
        ground: GroundShape,
        limits: SolverLimits,
        wrench: Any = None,
        shared: Any = None,
    ) -> tuple[Floats, ...]:
        """`simulate`, with the functions of a user."""
        inputs = step_inputs(control, time_step, material, ground, limits)._replace(wrench=wrench)
        start = PeriodStart(q, v, impulse, contact, time, alive)
        return take_period(scene, start, inputs, step, hooks(shared))

    return simulate_hooks


def step_inputs(
    control: Any,
    time_step: Any,
    material: ContactParameters,
    ground: GroundShape,
    limits: SolverLimits = SolverLimits(),  # noqa: B008 - frozen
) -> StepInputs:
    """Inputs that the steps of a period share, from the input structures of kernels."""
    return StepInputs(control, time_step, ground._replace(normal=np.array(ground.normal)), material, limits)


@kernel(
    "(nq),(nv),(impulse_size),(slot_size),(control_size),(),()->(m,m),(m)",
    inputs={"material": MATERIAL, "ground": GROUND},
)
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
    material: ContactParameters,
    ground: GroundShape,
) -> tuple[Floats, Floats]:
    """G (m, m) and g (m,) of the contact problem of the next step, with the restitution that adds no energy."""
    state = initial_result(scene, q, v, impulse, contact, time).state
    signals, _ = activate(scene.actuators, state.activation, control[: scene.nu], time_step)
    inputs = step_inputs(signals, time_step, material, ground)
    kinematics = compute_kinematics(scene, q)
    contacts = collide(scene, kinematics, inputs.ground, v, time_step)
    forces = drive(scene.model, scene.actuators, q, v, inputs.control, time_step)
    system = assemble(scene, state, kinematics, contacts, forces, inputs)
    g = system.g
    if scene.bounces:
        fraction = solve_contacts_without_gain(scene, state, kinematics, contacts, system, inputs).restitution_fraction
        g = g - (1.0 - fraction) * system.rebound
    return system.delassus(), g


@kernel(
    "(nq),(nv),(impulse_size),(slot_size),(control_size),(),()->(nv),(nv),(impulse_size),(slot_size),(slot_size),()",
    inputs={"material": MATERIAL, "ground": GROUND, "limits": LIMITS},
)
def soft_accelerations(
    scene: Scene,
    q: Any,
    v: Any,
    impulse: Any,
    contact: Any,
    control: Any,
    time: Any,
    time_step: Any,
    *,
    material: ContactParameters,
    ground: GroundShape,
    limits: SolverLimits,
) -> tuple[Floats, ...]:
    """Accelerations (nv,) under MuJoCo's contact law, the constraint part of the forces (nv,), forces of rows,
    candidates and gaps of the contact slots, and the residual [m/s²]. All forces are explicit.
    """
    state = initial_result(scene, q, v, impulse, contact, time).state
    signals, _ = activate(scene.actuators, state.activation, control[: scene.nu], time_step)
    inputs = step_inputs(signals, time_step, material, ground, limits)
    kinematics = compute_kinematics(scene, q)
    contacts = collide(scene, kinematics, inputs.ground, v, time_step)
    forces = drive(scene.model, scene.actuators, q, v, inputs.control, 0.0)._replace(servos=None)
    system = assemble(scene, state, kinematics, contacts, forces, inputs)
    solution = solve_contacts_without_gain(scene, state, kinematics, contacts, system, inputs)
    rate = 1.0 / time_step
    force = rate * solution.impulse
    padding = np.zeros(scene.impulse_size - scene.m), np.zeros(scene.slot_size - scene.slots)
    return (
        rate * (solution.velocity - v),
        system.rows.joint_impulses(force) if scene.m else np.zeros(scene.nv),
        np.concatenate([force, padding[0]]),
        np.concatenate([contacts.candidate, padding[1]]),
        np.concatenate([contacts.gap, padding[1]]),
        rate * solution.residual,
    )


@kernel("(nq)->(candidates),(candidates,3),(candidates,3)", inputs={"ground": GROUND})
def candidate_geometry(scene: Scene, q: Any, *, ground: GroundShape) -> tuple[Floats, Floats, Floats]:
    """Gaps (candidates,) [m], points and normals (candidates, 3) in the world."""
    shape = ground._replace(normal=np.array(ground.normal))
    candidates = find_candidates(scene, compute_kinematics(scene, q), shape)
    return candidates.gap, candidates.point, candidates.normal


@kernel("(nq),(nv),()->(slot_size)", inputs={"ground": GROUND})
def contact_candidates(scene: Scene, q: Any, v: Any, time_step: Any, *, ground: GroundShape) -> Floats:
    """The candidates (slots,) of the contact slots in a step from a state."""
    shape = ground._replace(normal=np.array(ground.normal))
    return collide(scene, compute_kinematics(scene, q), shape, v, time_step).candidate
