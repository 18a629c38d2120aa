"""A step of a robot on the ground as seven stages; `step.period` composes a control period of several steps.

    kinematics → collide → forces → assemble → solve → integrate → close loops

Each stage is a function of the results of earlier stages (see `types`). Kernels are composed of these functions, and
`Simulation.stages` calls them on plain arrays. Functions around the stages repeat a step if force limits of servos
become active, split it into substeps for fast joints, and set the flags of environments that the host solves again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.cones.parameters import RowParameters
from delassus.dynamics.mass.crba import mass_matrix
from delassus.step.actuators.activation import activate, count_clipped
from delassus.step.actuators.drive import drive, limited_servos
from delassus.step.actuators.external import add_joint_forces, push_frames
from delassus.step.actuators.forces import Forces, predict_servo_modes, servo_modes
from delassus.step.impacts.dissipation import solve_without_gain
from delassus.step.points.slot_friction import contact_coefficients
from delassus.step.scene import ARTICULATED, Scene
from delassus.step.scheme.components import components, turning_dofs
from delassus.step.scheme.free_rotation import SUBSTEPS
from delassus.step.stages.assemble import StepSystem, assemble
from delassus.step.stages.close_loops import close_loops
from delassus.step.stages.collide import Contacts, collide, has_impulse_outside, penetrates_outside
from delassus.step.stages.integrate import Motion, integrate
from delassus.step.stages.kinematics import Kinematics, compute_kinematics
from delassus.step.stages.soft_solve import solve_softly
from delassus.step.stages.solve import Solved, solve_impulses
from delassus.step.stages.tree_problem import TreeSolution, tree_solver
from delassus.step.stages.types import Impulses, StepInputs, StepResult, StepState

TURN: Final = 0.2
"""Largest angle [rad] by which a joint rotates in a step; faster joints take substeps."""

MOST_SUBSTEPS: Final = 16
"""Largest number of substeps of a step."""

LONGEST_TURN: Final = 0.4
"""Angle [rad] beyond which a step, or a substep, is flagged as too long."""

GAIN: Final = 0.5e-8
"""Velocity error, relative to the velocity scale, that does not count as a gain of energy."""

_SERVO_GUESSES: Final = 8
"""Largest number of attempts to find the active limits of servos."""


class Stages(NamedTuple):
    """The result of each stage of a step (see `types` and `Simulation.stages`)."""

    kinematics: Kinematics
    contacts: Contacts
    forces: Forces
    system: StepSystem
    impulses: Impulses
    velocity: Any
    motion: Motion
    q: Any
    v: Any


def run_stages(scene: Scene, state: StepState, inputs: StepInputs, modes: Any = None) -> Stages:
    """Run the seven stages of one step; `modes` are those of `Forces`, None for the modes at the beginning of the
    step."""
    h = inputs.time_step
    kinematics = compute_kinematics(scene, state.q)
    contacts = collide(scene, kinematics, inputs.ground, state.v, h)
    if scene.is_soft:  # the problem of stage 5 contains the limits of servos
        modes = np.zeros(len(limited_servos(scene.actuators)))
    forces = drive(scene.model, scene.actuators, state.q, state.v, inputs.control, h, modes)
    if scene.method == ARTICULATED and forces.servos is not None and modes is None:
        modes = predict_servo_modes(forces.servos, mass_matrix(scene.model, state.q), h)
        forces = drive(scene.model, scene.actuators, state.q, state.v, inputs.control, h, modes)
    if inputs.wrench is not None:
        forces = push_frames(scene.model, scene.pushed, state.q, inputs.wrench, forces)
    if inputs.joint_forces is not None:
        forces = add_joint_forces(forces, inputs.joint_forces, state.v, h)
    system = assemble(scene, state, kinematics, contacts, forces, inputs)
    impulses = solve_contacts_without_gain(scene, state, kinematics, contacts, system, inputs)
    v = impulses.velocity
    if v is None:
        v = system.free_velocity + system.respond(impulses.impulse) if scene.m else system.free_velocity
    motion = integrate(scene, state, kinematics, contacts, system, v, impulses, h)
    q, v_end = close_loops(scene, system, motion.q, motion.v, motion.allowances, state.time + h)
    return Stages(kinematics, contacts, forces, system, impulses, v, motion, q, v_end)


def solve_contacts_without_gain(
    scene: Scene,
    state: StepState,
    kinematics: Kinematics,
    contacts: Contacts,
    system: StepSystem,
    inputs: StepInputs,
) -> Impulses:
    """Stage 5 of a step: impulses that satisfy the contact laws, with the largest restitution that adds no energy.

    Without restitution it is one solve; with it, `solve_without_gain` repeats the solve with smaller restitution if the
    impact would add energy.
    """
    if not scene.m and not scene.is_soft:
        zero = np.array(0.0)
        return Impulses(np.zeros(0), zero, zero, np.array(True), np.array(1.0))
    parameters = RowParameters()
    if scene.slots:
        none, ground = np.zeros(scene.slots), inputs.contact
        given = (ground.friction + none, ground.torsional + none, ground.rolling + none)
        parameters = contact_coefficients(scene, contacts.candidate, given)
    if scene.friction_bounds:
        bounds = np.array(scene.friction_bounds) * inputs.time_step
        parameters = parameters._replace(lower=-bounds, upper=bounds)

    if scene.is_soft:
        return solve_softly(scene, system, parameters, inputs.time_step, inputs.solver)

    zero = np.array(0.0)
    empty: Any = Solved(system.start, zero, zero, np.array(True))
    if scene.method == ARTICULATED:
        h, limits = inputs.time_step, inputs.solver
        by_tree = tree_solver(scene, state, kinematics, contacts, system, parameters, h, limits)
        empty = TreeSolution(system.start, zero, zero, np.array(True), system.free_velocity, np.zeros(scene.nv))

    def solve(g: Any, start: Any) -> Any:
        if scene.method == ARTICULATED:
            return by_tree.solve(g, start)
        sharing = system.rows.sharing
        return solve_impulses(
            scene.layout, sharing, system.S, g, parameters, start, system.scale, inputs.solver, scene.method
        )

    if not scene.bounces:
        solution = solve(system.g, system.start)
        return _impulses(solution, np.array(1.0))

    solution, fraction = solve_without_gain(
        solve,
        system.delassus_times,
        0.5 * (system.before + system.after),
        np.any(system.rebound != 0.0),
        system.g,
        system.g - system.rebound,
        empty,
        GAIN * system.scale,
    )
    return _impulses(solution, fraction)


def _impulses(solution: Any, fraction: Any) -> Impulses:
    """The solution of a solver, with its fraction of restitution."""
    impulse, residual, iterations, done, *rest = solution
    return Impulses(impulse, residual, iterations, done, fraction, *rest)


# --- one step ---------------------------------------------------------------------------------------------------------


def _try_step(scene: Scene, last: StepResult, inputs: StepInputs, modes: Any = None) -> tuple[StepResult, Any]:
    """One step with assumed servo modes, and the modes that its end velocity implies."""
    state, h = last.state, inputs.time_step
    stages = run_stages(scene, state, inputs, modes)
    contacts, forces, motion, impulse = stages.contacts, stages.forces, stages.motion, stages.impulses.impulse
    modes = servo_modes(forces, stages.velocity)
    clipped = forces.clipped
    known = scene.method == ARTICULATED or scene.is_soft
    if len(modes) and known:
        clipped = clipped - np.sum(np.abs(forces.modes)) + np.sum(np.abs(modes))
    omitted = penetrates_outside(scene, stages.kinematics, contacts, state.q, stages.velocity, h)
    candidate = contacts.candidate
    if scene.reduced is not None:
        omitted = omitted | has_impulse_outside(scene, state.impulse, state.contact)
        if len(modes) and not known:
            omitted = omitted | np.any(modes != forces.modes)
        full_impulse = np.zeros(scene.full.m)
        full_impulse[list(scene.rows_in_full)] = impulse
        impulse, candidate = full_impulse, numpy.array(scene.slot_candidates, float)
    result = StepResult(
        StepState(stages.q, stages.v, impulse, candidate, state.time + h, state.activation),
        stages.impulses.residual,
        last.iterations + stages.impulses.iterations,
        last.overflow | contacts.overflow | stages.system.rows.overflow,
        last.unsolved | ~stages.impulses.converged,
        last.omitted | omitted,
        last.clipped | (clipped > 0.0),
        motion.angle,
        last.too_long | (motion.angle > LONGEST_TURN) | (motion.substeps > SUBSTEPS),
        last.energy_limited | (stages.impulses.restitution_fraction < 1.0),
    )
    return result, modes


Step: TypeAlias = Callable[[Scene, StepResult, StepInputs], StepResult]
"""A function that integrates the state over one time step."""


class _ServoGuess(NamedTuple):
    """A step, the servo modes of the next attempt, whether the previous ones were wrong, and the number of attempts."""

    result: StepResult
    modes: Any
    wrong: Any
    count: Any


def take_step(scene: Scene, last: StepResult, inputs: StepInputs) -> StepResult:
    """Integrate over one time step.

    Which servos reach their force limits is known only at the end of the step. With the full contact set, a step with
    wrong modes is repeated with the modes at its end. With the reduced set, the step is flagged for the full set.
    """
    known = scene.method == ARTICULATED or scene.is_soft
    if scene.reduced is not None or known or not limited_servos(scene.actuators):
        return _try_step(scene, last, inputs)[0]

    def try_again(guess: _ServoGuess) -> _ServoGuess:
        result, modes = _try_step(scene, last, inputs, guess.modes)
        wrong = np.any(modes != guess.modes)
        # A servo changes from one limit to the other by way of the unsaturated mode 0.
        return _ServoGuess(result, np.where(modes * guess.modes < 0.0, 0.0, modes), wrong, guess.count + 1.0)

    state = last.state
    forces = drive(scene.model, scene.actuators, state.q, state.v, inputs.control, inputs.time_step)
    first = _ServoGuess(last, forces.modes, np.array(True), np.array(0.0))
    most = float(_SERVO_GUESSES)
    return while_loop(lambda guess: guess.wrong & (guess.count < most), try_again, first, _SERVO_GUESSES).result


class _Substeps(NamedTuple):
    """The result so far, the number of finished substeps, their total number, and whether this total is final."""

    result: StepResult
    done: Any
    count: Any
    final: Any


def take_substeps(scene: Scene, last: StepResult, inputs: StepInputs, step: Step = take_step) -> StepResult:
    """One time step, split into substeps if a joint rotates by more than `TURN`; `step` integrates one substep.

    The initial velocity determines the number of substeps. If joints rotate further in the first substep, it is
    repeated with the number that its angle requires. With the reduced contact set, such a step is flagged for the full
    set. The returned impulses are those of the last substep, scaled to the whole step.
    """
    turns = turning_dofs(scene.model, components(scene.mechanism, last.state.q))
    if scene.is_soft:
        return step(scene, last, inputs)
    if scene.reduced is not None or not turns:
        result = step(scene, last, inputs)
        too_far = result.omitted | (result.angle > TURN)
        return result._replace(omitted=too_far) if scene.reduced is not None else result

    def substep(now: _Substeps) -> _Substeps:
        state, count = now.result.state, now.count
        before = now.result._replace(state=state._replace(impulse=state.impulse / count))
        result = step(scene, before, inputs._replace(time_step=inputs.time_step / count))
        needed = _needed_substeps(count * result.angle)
        retry = ~now.final & (needed > count)
        result = result._replace(state=result.state._replace(impulse=result.state.impulse * count))
        kept = _select(retry, now.result, result)
        done, count = np.where(retry, 0.0, now.done + 1.0), np.where(retry, needed, count)
        return _Substeps(kept, done, count, np.array(True))

    def remains(now: _Substeps) -> Any:
        return now.done < now.count

    expected = _needed_substeps(inputs.time_step * np.max(np.abs(last.state.v[turns])))
    start = _Substeps(last, np.array(0.0), expected, np.array(False))
    if scene.full_slots:
        return while_loop(remains, substep, start, MOST_SUBSTEPS + 1).result
    # Without contacts the code of a step is short, so the first substep is compiled a second time, without a loop.
    first = substep(start)

    def loop(done: Any, count: Any, final: Any) -> StepResult:
        return while_loop(remains, substep, _Substeps(first.result, done, count, final), MOST_SUBSTEPS).result

    return cond(remains(first), loop, first.result, first.done, first.count, first.final)


def _needed_substeps(angle: Any) -> Any:
    """Number of substeps for a step in which a joint rotates by an angle [rad]."""
    needed = np.clip(np.ceil(angle / TURN), 1.0, float(MOST_SUBSTEPS))
    return np.where(np.isfinite(angle), needed, float(MOST_SUBSTEPS))


def _select(condition: Any, one: StepResult, other: StepResult) -> StepResult:
    """The first result where the condition holds, else the other."""
    states = (np.where(condition, x, y) for x, y in zip(one.state, other.state, strict=True))
    rest = (np.where(condition, x, y) for x, y in zip(one[1:], other[1:], strict=True))
    return StepResult(StepState(*states), *rest)


# --- the step of a control period -------------------------------------------------------------------------------------


def initial_result(scene: Scene, q: Any, v: Any, impulse: Any, contact: Any, time: Any) -> StepResult:
    """The result that a period starts from: the initial state without the padding of empty arrays, and no flags."""
    zero, no, rows = np.array(0.0), np.array(False), scene.full.m
    state = StepState(q, v, impulse[:rows], contact[: scene.full_slots], time, impulse[rows : rows + scene.na])
    return StepResult(state, zero, zero, no, no, no, no, zero, no, no)


def take_activated_step(scene: Scene, last: StepResult, inputs: StepInputs, step: Step = take_step) -> StepResult:
    """One step with actuator activations, which depend on the controls only and advance once per step."""
    if not scene.na:
        return take_substeps(scene, last, inputs, step)
    signals, after = activate(scene.actuators, last.state.activation, inputs.control, inputs.time_step)
    result = take_substeps(scene, last, inputs._replace(control=signals), step)
    clipped = result.clipped | (count_clipped(scene.actuators, inputs.control) > 0.0)
    return result._replace(state=result.state._replace(activation=after), clipped=clipped)
