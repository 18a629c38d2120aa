"""`Inspection`: what a simulation tells about a state without moving it: contacts, stages, contact problems."""

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
from delassus.simulation.runner import some
from delassus.simulation.setup import Setup
from delassus.simulation.state import State, check_state
from delassus.step.actuators.activation import activate
from delassus.step.bodies.kernels import geometry_kernel
from delassus.step.points.slot_friction import contact_coefficients
from delassus.step.scene import ParametricScene
from delassus.step.stages.kernels import assemble_step, contact_candidates, soft_accelerations
from delassus.step.stages.pipeline import Stages, run_stages
from delassus.step.stages.types import GroundShape, SolverLimits, StepInputs, StepState

Array = NDArray[np.float64]


class GroundContacts(NamedTuple):
    """Where a robot may touch the ground, of one configuration or a batch.

    Attributes:
        gap: (…, candidates) [m], negative where they penetrate.
        point: (…, candidates, 3) points of the body in the world [m].
        normal: (…, candidates, 3) of the ground there, towards the robot.
        body: The names of the joints whose bodies they are on.
        shape: The names of the shapes.
    """

    gap: Array
    point: Array
    normal: Array
    body: tuple[str, ...]
    shape: tuple[str, ...]


class Accelerations(NamedTuple):
    """A state under MuJoCo's law of contact, of one item or a batch.

    Attributes:
        acceleration: (…, nv) [m/s², rad/s²], along axes that do not turn: of a free base, those of the state.
        constraint_force: (…, nv) of contacts, limits, dry friction and constraints together [N, N·m].
        force: (…, m) of the rows, in the order of `State.impulse` [N, N·m].
        candidate: (…, slots) the candidates of the contact slots.
        gap: (…, slots) [m].
        residual: (…) [m/s²].
    """

    acceleration: Array
    constraint_force: Array
    force: Array
    candidate: Array
    gap: Array
    residual: Array


class Inspection(Setup):
    """A simulation as one looks into it."""

    def check(self, state: Any, control: Any = None) -> Array:
        """The control (…, nu) of a period; refuses states and controls of another simulation or of other items."""
        state, scene = check_state(state), self.scene
        parts = {"q": scene.nq, "v": scene.nv, "impulse": scene.m, "contact": scene.slots, "activation": scene.na}
        parts |= {"parameters": self.nparameters, "tally": scene.tally_size}
        if any(getattr(state, name).shape[-1:] != (n,) for name, n in parts.items()):
            raise SimulationError(
                f"the state is one of another simulation: its q has shape {state.q.shape} and its impulses "
                f"{state.impulse.shape}; here they have {scene.nq} and {scene.m} elements.",
                code="other-system",
            )
        batch = state.batch
        number_in_range("the state's time", np.max(np.abs(state.time), initial=0.0), FINITE)
        if not fits(self.ground.batch, batch):
            raise SimulationError(
                f"the ground has batch axes {self.ground.batch}, and the state has {batch}.", code="batch-mismatch"
            )
        u = np.zeros(self.nu) if control is None else array_of_shape("the control", control, (..., self.nu))
        if not fits(u.shape[:-1], batch):
            raise SimulationError(f"the control is {u.shape}, and there are items {batch}.", code="batch-mismatch")
        return u

    def contacts(self, q: Any) -> GroundContacts:
        """Where the robot may touch the ground in configurations (…, nq), all candidates."""
        if not self.scene.candidates:
            raise SimulationError("no shape of the robot may touch anything.", code="not-recorded")
        q = array_of_shape("q", q, (..., self.scene.nq), "the coordinates of the robot")
        gap, point, normal = geometry_kernel(self.plain_scene)(self.plain_scene, q, ground=self.ground.shape)
        joints = self.model.joints
        on = [shape.geometry.joint for shape, _, _ in self.scene.candidate_shapes]
        bodies = tuple("world" if k == WORLD else joints[k].name for k in on)
        return GroundContacts(gap, point, normal, bodies, self.candidates)

    def stages(self, state: State, control: Any = None) -> Stages:
        """What each stage of the next time step gives, for one item: kinematics, contacts, forces, the system of the
        step, impulses, and where it leads.

        These are the functions that the kernel is made of, called on numbers with the full contact set: slow, and
        meant for looking inside. `stages.system` has J, S and g, `stages.contacts` gaps, points and bodies.
        """
        u = self.check(state, control)
        self._refuse_many_bodies("stages")
        if state.q.ndim != 1 or self.ground.batch:
            raise SimulationError(
                f"stages shows one item; the state has {state.q.shape[:-1] or self.ground.batch} of them. Start one "
                "item of the batch, such as sim.start(state.q[0], state.v[0]).",
                code="wrong-shape",
            )
        given = self.ground.inputs
        coefficients = ContactParameters(*(given.get(name, 0.0) for name in (*COEFFICIENTS, "restitution")))
        normal, height = np.asarray(self.ground.normal), np.asarray(self.ground.height)
        ground = GroundShape(normal, height, self.ground.heights)
        signals, _ = activate(self.scene.actuators, state.activation, u, self.time_step)
        inputs = StepInputs(signals, self.time_step, ground, coefficients, SolverLimits(self.tolerance))
        now = StepState(state.q, state.v, state.impulse, state.contact, np.asarray(state.time), state.activation)
        scene = self.scene
        if isinstance(scene, ParametricScene):
            scene = scene.with_parameters(state.parameters)
        return run_stages(scene, now, inputs)

    def accelerations(self, state: State, control: Any = None) -> Accelerations:
        """Accelerations and constraint forces of states under MuJoCo's law of contact, as `mj_forward` gives them.

        Of one item or a batch. Nothing is integrated, so nothing is implicit: servos, springs and dampers push as the
        state says. Under the rigid law accelerations are not defined where something strikes; see `contact_dynamics`.
        """
        u, scene = self.check(state, control), self.scene
        if not scene.is_soft:
            raise SimulationError(
                'accelerations are those of law="mujoco"; under law="rigid" a state has impulses: see stages, or '
                "contact_dynamics.",
                code="not-supported",
            )
        given: dict[str, Any] = {**structures(self.ground.inputs), "limits": SolverLimits(self.tolerance)}
        if self.nparameters:
            given[PARAMETERS] = state.parameters
        rows, places = some(state.rows), some(state.contact)
        a, constraint, force, candidate, gap, residual = soft_accelerations(
            scene, state.q, state.v, rows, places, some(u), state.time, self.time_step, **given
        )
        slots = slice(scene.slots)
        return Accelerations(a, constraint, force[..., : scene.m], candidate[..., slots], gap[..., slots], residual)

    def explain(self, state: State, control: Any = None) -> str:
        """What is hard about the next step of time of one item, in sentences: residual and iterations, how well the
        contact problem is conditioned, the contact that pushes most, the joint that is accelerated most."""
        for name, array in (("q", state.q), ("v", state.v)):
            if not np.isfinite(array).all():
                starts = self.model.q_starts if name == "q" else self.model.v_starts
                return f"{name} is no number, of the joint {self._joint_at(starts, ~np.isfinite(array))!r}."
        if control is not None and not np.isfinite(control).all():
            k = int(np.flatnonzero(~np.isfinite(control))[0])
            actuators = self.scene.actuators
            return f"The control {k} is no number{f', of the actuator {actuators[k].name!r}' if actuators else ''}."
        stages = self.stages(state, control)
        impulse, change = np.asarray(stages.impulses.impulse), np.asarray(stages.v) - state.v
        joint = self._joint_at(self.model.v_starts, np.abs(np.where(np.isfinite(change), change, np.inf)))
        most = np.abs(change).max(initial=0.0)
        text = f"The joint {joint!r} changes its velocity most, by {most:.3g} rad/s or m/s in {self.time_step:g} s."
        if not self.scene.m:
            return text
        residual, iterations = float(stages.impulses.residual), int(stages.impulses.iterations)
        G = np.asarray(stages.system.delassus())
        active = np.flatnonzero(np.abs(impulse) > 1e-9 * np.abs(impulse).max(initial=0.0))
        condition = np.linalg.cond(G[np.ix_(active, active)]) if len(active) and np.isfinite(G).all() else np.nan
        text += (
            f" Impulses are solved to {residual:.3g} m/s in {iterations} iterations; the {len(active)} rows that act "
            f"have a condition number of {condition:.3g}."
        )
        rows, slots = self.scene.contact_rows, self.scene.slots
        normal = impulse[: rows * slots].reshape(slots, rows)[:, 2] if slots else np.zeros(0)
        if normal.any():
            k = int(np.argmax(normal))
            shape = self.candidates[int(np.asarray(stages.contacts.candidate)[k])]
            text += f" The contact {shape!r} pushes most, with {normal[k] / self.time_step:.3g} N."
        return text

    def _joint_at(self, starts: tuple[int, ...], weight: Any) -> str:
        """The name of the joint that has the coordinate with the largest weight."""
        k = int(np.argmax(weight))
        found = [joint for joint, start in zip(self.model.joints, starts, strict=True) if start <= k]
        return found[-1].name if found else ""

    def problem(self, state: State, control: Any = None) -> ContactProblem:
        """The contact problem of the next step of time; rows as in `State.impulse`.

        It is the one that the step solves: where restitution would add energy, with the share of it that does not.
        """
        scene = self.scene
        if not scene.m:
            raise SimulationError("there are no contacts, constraints or limits to solve for.", code="nothing-to-do")
        u = self.check(state, control)
        self._refuse_many_bodies("problem")
        if scene.is_soft:
            raise SimulationError(
                'problem shows the contact problem of law="rigid"; under law="mujoco" see accelerations, or stages.',
                code="not-supported",
            )
        rows, places = some(state.rows), some(state.contact)
        given = structures(self.ground.inputs)
        if self.nparameters:
            given[PARAMETERS] = state.parameters
        G, g = assemble_step(scene, state.q, state.v, rows, places, some(u), state.time, self.time_step, **given)
        numbers: dict[str, Any] = {}
        if scene.slots:
            numbers |= self._friction(state)
        if scene.friction_bounds:
            bounds = self.time_step * np.array(scene.friction_bounds)
            numbers |= {"lower": -bounds, "upper": bounds}
        return ContactProblem(G, g, scene.layout.cones, **numbers, check=False)

    def _refuse_many_bodies(self, name: str) -> None:
        """Refuse what is made of a dense matrix in scenes that have none."""
        if self.scene.many_bodies is not None:
            raise SimulationError(
                f"{name} shows scenes with a dense contact problem, and this one has {self.scene.nv // 6} free bodies, "
                "whose contacts are solved without a matrix. Look at sim.contacts(q), or at a scene of fewer bodies.",
                code="not-supported",
            )

    def _friction(self, state: State) -> dict[str, Any]:
        """Coefficients (…, slots) of the contacts that the next step solves for."""
        scene, given = self.scene, self.ground.inputs
        ground = [given.get(name, np.zeros(()))[..., None] + np.zeros(scene.slots) for name in COEFFICIENTS]
        number = None
        if scene.own_friction and not scene.has_fixed_slots:
            number = contact_candidates(self.plain_scene, state.q, state.v, self.time_step, ground=self.ground.shape)
        return contact_coefficients(scene, number, (ground[0], ground[1], ground[2]))
