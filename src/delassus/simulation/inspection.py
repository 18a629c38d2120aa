"""`Inspection`: queries that do not change a state: contacts, stages of a step, contact problems."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import FINITE, array_of_shape, number_in_range
from delassus.compiler.graph.parameters import PARAMETERS
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.problems.problem import ContactProblem
from delassus.model.parts import WORLD
from delassus.simulation.checks import SimulationError, fits
from delassus.simulation.ground import COEFFICIENTS, structures
from delassus.simulation.policies.kernels import evaluate_command
from delassus.simulation.policies.policy import CompiledPolicy
from delassus.simulation.runner import pad_empty
from delassus.simulation.setup import Setup
from delassus.simulation.state import State, check_state
from delassus.step.actuators.activation import activate
from delassus.step.bodies.kernels import geometry_kernel
from delassus.step.bodies.robots import scene_parts
from delassus.step.period.hooks import HookInputs
from delassus.step.period.kernels import assemble_step, contact_candidates, soft_accelerations
from delassus.step.points.slot_friction import contact_coefficients
from delassus.step.scene import ParametricScene, Scene
from delassus.step.stages.pipeline import Stages, run_stages
from delassus.step.stages.types import GroundShape, SolverLimits, StepInputs, StepState

Array = NDArray[np.float64]


class GroundContacts(NamedTuple):
    """Contact candidates of one configuration or a batch.

    Attributes:
        gap: (…, candidates) signed distances [m], negative for penetrations.
        point: (…, candidates, 3) points on the body, in the world [m].
        normal: (…, candidates, 3) normals, towards the robot.
        body: Names of the joints that move the bodies of the candidates.
        shape: Names of the shapes.

    >>> robot = dl.load("quadruped")
    >>> dl.Simulation(robot, time_step=2e-3).contacts(robot.posture("home")).gap.shape
    (64,)
    """

    gap: Array
    point: Array
    normal: Array
    body: tuple[str, ...]
    shape: tuple[str, ...]


class Accelerations(NamedTuple):
    """Accelerations and forces under MuJoCo's contact law, of one environment or a batch.

    Attributes:
        acceleration: (…, nv) [m/s², rad/s²]; for a free base along the axes of the state, which are kept fixed.
        constraint_force: (…, nv) sum of the forces of contacts, limits, joint friction and constraints [N, N·m].
        force: (…, m) forces of the rows, in the order of `State.impulse` [N, N·m].
        candidate: (…, slots) indices of the candidates in the contact slots.
        gap: (…, slots) signed distances [m].
        residual: (…) residual of the solver [m/s²].

    >>> sim = dl.Simulation(dl.load("pendulum"), time_step=1e-2, touching=(), law="mujoco")
    >>> sim.accelerations(sim.start([0.0])).acceleration
    array([0.])
    """

    acceleration: Array
    constraint_force: Array
    force: Array
    candidate: Array
    gap: Array
    residual: Array


class Inspection(Setup):
    """The part of `Simulation` that inspects states."""

    def check(self, state: Any, control: Any = None) -> Array:
        """Check that a state and a control belong to this simulation and batch; return the control (…, nu)."""
        state, scene = check_state(state), self.scene
        parts = {"q": scene.nq, "v": scene.nv, "impulse": scene.m, "contact": scene.slots, "activation": scene.na}
        parts |= {"parameters": self.nparameters, "tally": scene.tally_size}
        if any(getattr(state, name).shape[-1:] != (n,) for name, n in parts.items()):
            raise SimulationError(
                f"the state belongs to another simulation: its q has shape {state.q.shape} and its impulses "
                f"{state.impulse.shape}; their last axes must be {scene.nq} and {scene.m}.",
                code="other-system",
            )
        batch = state.batch
        number_in_range("the state's time", np.max(np.abs(state.time), initial=0.0), FINITE)
        if not fits(self.ground.batch, batch):
            raise SimulationError(
                f"the state has the batch axes {batch}; they must broadcast with the batch axes of the ground, "
                f"{self.ground.batch}.",
                code="batch-mismatch",
            )
        u = np.zeros(self.nu) if control is None else array_of_shape("the control", control, (..., self.nu))
        if not fits(u.shape[:-1], batch):
            raise SimulationError(
                f"the control has shape {u.shape}; it must be ({self.nu},) or {(*batch, self.nu)}.",
                code="batch-mismatch",
            )
        return u

    def contacts(self, q: Any) -> GroundContacts:
        """Gaps, points and normals of all contact candidates in configurations (…, nq)."""
        if not self.scene.candidates:
            raise SimulationError(
                "the scene has no contact candidates: no shape may touch another.", code="not-recorded"
            )
        q = array_of_shape("q", q, (..., self.scene.nq), "the coordinates of the robot")
        gap, point, normal = geometry_kernel(self.plain_scene)(self.plain_scene, q, ground=self.ground.shape)
        joints = self.model.joints
        on = [shape.geometry.joint for shape, _, _ in self.scene.candidate_shapes]
        bodies = tuple("world" if k == WORLD else joints[k].name for k in on)
        return GroundContacts(gap, point, normal, bodies, self.candidates)

    def stages(self, state: State, control: Any = None) -> Stages:
        """The results of all stages of the next time step, for one environment.

        These are kinematics, contacts, forces, the system of the step, impulses, and the next state. The functions that
        the kernel is composed of are called on plain arrays, with the full contact set. This is slow and meant for
        inspection. `stages.system` has J, S and g; `stages.contacts` has gaps, points and bodies. A `CompiledPolicy` is
        evaluated at the start of the step.
        """
        scene, now, inputs = self._step_inputs(state, control)
        signals, _ = activate(scene.actuators, state.activation, inputs.control, self.time_step)
        return run_stages(scene, now, inputs._replace(control=signals))

    def _step_inputs(self, state: State, control: Any) -> tuple[Scene, StepState, StepInputs]:
        """The scene, state and inputs of the next time step of one environment; a policy is evaluated in Python."""
        policy = control if isinstance(control, CompiledPolicy) else None
        u = self.check(state, control if policy is None else policy.reference)
        self._refuse_many_bodies("stages")
        if state.q.ndim != 1 or self.ground.batch:
            raise SimulationError(
                f"the batch axes are {state.q.shape[:-1] or self.ground.batch}; stages takes one environment. Start "
                "one, such as sim.start(state.q[0], state.v[0]).",
                code="wrong-shape",
            )
        values = self.ground.inputs
        coefficients = ContactParameters(*(values.get(name, 0.0) for name in (*COEFFICIENTS, "restitution")))
        normal, height = np.asarray(self.ground.normal), np.asarray(self.ground.height)
        ground = GroundShape(normal, height, self.ground.heights)
        inputs = StepInputs(u, self.time_step, ground, coefficients, SolverLimits(self.tolerance))
        now = StepState(state.q, state.v, state.impulse, state.contact, np.asarray(state.time), state.activation)
        scene = self.scene
        if isinstance(scene, ParametricScene):
            scene = scene.with_parameters(state.parameters)
        if policy is not None:
            counters = np.array([state.seed, state.stream, state.count], float)
            read = HookInputs(scene, now, inputs, state.tally, policy.fill(state.memory, ()), counters, 0.0)
            command = evaluate_command(policy, read)
            inputs = inputs._replace(control=command.control, joint_forces=command.joint_forces)
        return scene, now, inputs

    def accelerations(self, state: State, control: Any = None) -> Accelerations:
        """Accelerations and constraint forces under MuJoCo's contact law, as `mj_forward` computes them.

        `state` is one environment or a batch. Nothing is integrated, so servos, springs and dampers are explicit. Only
        law="mujoco" is supported: under the rigid law, accelerations are not defined during impacts; see
        `contact_dynamics`.
        """
        u, scene = self.check(state, control), self.scene
        if not scene.is_soft:
            raise SimulationError(
                'accelerations needs law="mujoco"; under law="rigid", impacts have impulses instead. Use stages or '
                "contact_dynamics.",
                code="not-supported",
            )
        inputs: dict[str, Any] = {**structures(self.ground.inputs), "limits": SolverLimits(self.tolerance)}
        if self.nparameters:
            inputs[PARAMETERS] = state.parameters
        rows, places = pad_empty(state.rows), pad_empty(state.contact)
        a, constraint, force, candidate, gap, residual = soft_accelerations(
            scene, state.q, state.v, rows, places, pad_empty(u), state.time, self.time_step, **inputs
        )
        slots = slice(scene.slots)
        return Accelerations(a, constraint, force[..., : scene.m], candidate[..., slots], gap[..., slots], residual)

    def explain(self, state: State, control: Any = None) -> str:
        """Describe the next time step of one environment in words: residual and iterations, conditioning of the contact
        problem, the contact with the largest force, the joint with the largest acceleration."""
        for name, array in (("q", state.q), ("v", state.v)):
            if not np.isfinite(array).all():
                starts = self.model.q_starts if name == "q" else self.model.v_starts
                return f"{name} of the joint {self._joint_at(starts, ~np.isfinite(array))!r} is not finite."
        u = self._step_inputs(state, control)[2].control
        if not np.isfinite(u).all():
            k = int(np.flatnonzero(~np.isfinite(u))[0])
            actuators = self.scene.actuators
            return f"The control {k}{f' of the actuator {actuators[k].name!r}' if actuators else ''} is not finite."
        stages = self.stages(state, control)
        impulse, change = np.asarray(stages.impulses.impulse), np.asarray(stages.v) - state.v
        joint = self._joint_at(self.model.v_starts, np.abs(np.where(np.isfinite(change), change, np.inf)))
        most = np.abs(change).max(initial=0.0)
        text = (
            f"The joint {joint!r} has the largest change of velocity, {most:.3g} rad/s or m/s in {self.time_step:g} s."
        )
        if not self.scene.m:
            return text
        residual, iterations = float(stages.impulses.residual), int(stages.impulses.iterations)
        G = np.asarray(stages.system.delassus())
        active = np.flatnonzero(np.abs(impulse) > 1e-9 * np.abs(impulse).max(initial=0.0))
        condition = np.linalg.cond(G[np.ix_(active, active)]) if len(active) and np.isfinite(G).all() else np.nan
        text += (
            f" The contact solver reaches a residual of {residual:.3g} m/s in {iterations} iterations; the "
            f"{len(active)} active rows have a condition number of {condition:.3g}."
        )
        rows, slots = self.scene.contact_rows, self.scene.slots
        normal = impulse[: rows * slots].reshape(slots, rows)[:, 2] if slots else np.zeros(0)
        if normal.any():
            k = int(np.argmax(normal))
            shape = self.candidates[int(np.asarray(stages.contacts.candidate)[k])]
            text += f" The contact {shape!r} has the largest normal force, {normal[k] / self.time_step:.3g} N."
        return text

    def _joint_at(self, starts: tuple[int, ...], weight: Any) -> str:
        """The name of the joint that has the coordinate with the largest weight."""
        k = int(np.argmax(weight))
        joints = [joint for joint, start in zip(self.model.joints, starts, strict=True) if start <= k]
        return joints[-1].name if joints else ""

    def problem(self, state: State, control: Any = None) -> ContactProblem:
        """The contact problem that the next time step solves.

        Its rows are those of the full contact set: first the contact slots, whose candidates are
        `stages(state, control).contacts.candidate`, then constraints, limits and joint friction. A step that is solved
        with the reduced contact set stores the same impulses in other slots of `State.impulse`; `State.contact` has the
        candidates of these. If restitution would add energy, the problem has the reduced restitution.
        """
        scene = self.scene
        if not scene.m:
            raise SimulationError(
                "the scene has no contacts, constraints or limits to solve for.", code="nothing-to-do"
            )
        u = self.check(state, control)
        self._refuse_many_bodies("problem")
        if scene.is_soft:
            raise SimulationError(
                'problem needs law="rigid"; under law="mujoco", use accelerations or stages.',
                code="not-supported",
            )
        rows, places, signals = pad_empty(state.rows), pad_empty(state.contact), pad_empty(u)
        inputs = structures(self.ground.inputs)
        if self.nparameters:
            inputs[PARAMETERS] = state.parameters
        G, g = assemble_step(scene, state.q, state.v, rows, places, signals, state.time, self.time_step, **inputs)
        coefficients: dict[str, Any] = {}
        if scene.slots:
            coefficients |= self._friction(state)
        if scene.friction_bounds:
            bounds = self.time_step * np.array(scene.friction_bounds)
            coefficients |= {"lower": -bounds, "upper": bounds}
        return ContactProblem(G, g, scene.layout.cones, **coefficients, check=False)

    def _refuse_many_bodies(self, name: str) -> None:
        """Raise for queries that need a dense contact problem, in scenes without one."""
        if self.scene.many_bodies is not None:
            count = len(scene_parts(self.scene).bodies)
            raise SimulationError(
                f"{name} needs a dense contact problem, but the contacts of this scene with {count} free bodies are "
                "solved without a matrix. Use sim.contacts(q), or a scene with fewer bodies.",
                code="not-supported",
            )

    def _friction(self, state: State) -> dict[str, Any]:
        """Friction coefficients (…, slots) of the contacts of the next step."""
        scene, values = self.scene, self.ground.inputs
        ground = [values.get(name, np.zeros(()))[..., None] + np.zeros(scene.slots) for name in COEFFICIENTS]
        number = None
        if scene.own_friction and not scene.has_fixed_slots:
            number = contact_candidates(self.plain_scene, state.q, state.v, self.time_step, ground=self.ground.shape)
        parameters = contact_coefficients(scene, number, (ground[0], ground[1], ground[2]))
        return {name: x for name, x in parameters._asdict().items() if x is not None}
