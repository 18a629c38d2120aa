"""`Simulation`: robots on the ground, one or thousands, a control period in one kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import (
    FINITE,
    TIME_STEPS,
    array_of_shape,
    boolean,
    number_in_range,
    whole_number,
)
from delassus.common.options import Shortcuts
from delassus.compiler.graph.parameters import Parametric
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.problems.problem import ContactProblem
from delassus.contact.solvers.registry import find_solver
from delassus.contact.systems.scaled import CAPABILITIES as COMPILED
from delassus.dynamics.forces.tendons import check_tendons
from delassus.dynamics.kinematics.manifold import normalize
from delassus.errors import expect
from delassus.model.model import Model
from delassus.model.parts import WORLD
from delassus.model.transmission import Actuator
from delassus.output.trajectory import Trajectory
from delassus.simulation.checks import RunError, SimulationError, fits
from delassus.simulation.coefficients import friction_of
from delassus.simulation.controls import Control, control_of
from delassus.simulation.ground import COEFFICIENTS, Ground, structures
from delassus.simulation.meeting import Meeting, meeting_shapes
from delassus.simulation.options import ContactSelection, StepSolver
from delassus.simulation.recorder import Recorder
from delassus.simulation.runner import Runner, report_progress, some
from delassus.simulation.setup import Setup
from delassus.simulation.shapes import shapes_of, warn_of_ridges, warn_of_scenery
from delassus.simulation.starting import first_activation, repaired
from delassus.simulation.state import State, reject_moment
from delassus.simulation.stretch import Stretch
from delassus.step.actuators.activation import activate
from delassus.step.actuators.checks import check_actuators
from delassus.step.marks import Mark
from delassus.step.scene import Scene
from delassus.step.stages.friction import contact_coefficients
from delassus.step.stages.kernels import assemble_step, candidate_geometry, contact_candidates, simulate
from delassus.step.stages.pipeline import Stages, run_stages
from delassus.step.stages.types import (
    GroundShape,
    SolverLimits,
    StepInputs,
    StepState,
)

Array = NDArray[np.float64]

_SHORTCUTS: Final = Shortcuts(
    "Simulation", "robot ground time_step substeps actuators", contacts=ContactSelection(), solver=StepSolver()
)


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


class Simulation(Setup):
    """A robot on the ground, and how it is stepped through time.

        sim = dl.Simulation(robot, ground=dl.Ground(friction=0.7), time_step=1e-3)
        log = sim.run(q0, v0, steps=2000)

    Everything is compiled into one kernel when the first step is made. Contacts, closed loops, joint limits and dry
    friction are solved for together, to a residual of 1e-8 of the velocities involved; damping, springs and servos are
    implicit. It cannot be changed: another time step, ground or robot is another simulation.
    """

    def __init__(
        self,
        robot: Model | Mechanism,
        ground: Ground | None = None,
        time_step: float = 1e-3,
        *,
        substeps: int = 1,
        actuators: Iterable[Actuator] | None = None,
        contacts: ContactSelection | None = None,
        solver: str | StepSolver | None = None,
        **shortcuts: Any,
    ) -> None:
        """Put a simulation together; nothing is compiled yet.

        Args:
            robot: A model, whose own constraints close its loops, or a mechanism.
            ground: What it stands on; None for `Ground()`.
            time_step: Of one step of time [s].
            substeps: Steps of time in a control period.
            actuators: What the controls drive; by default those of the model. Without any, controls are torques of all
                velocities of joints, a free base left out.
            contacts: A `ContactSelection`: what may touch, and how many rows a state has.
            solver: A method, or `StepSolver(method, tolerance)`.
            **shortcuts: touching, colliding, self_collision, max_contacts, max_limits, joint_friction (contacts);
                method, tolerance (solver).
        """
        contacts, how = _SHORTCUTS.fill(shortcuts, contacts=contacts, solver=solver)
        if isinstance(robot, Parametric):
            raise SimulationError(
                "the robot has parameters, and simulations on the ground take none: give the model with its numbers.",
                code="not-supported",
            )
        if isinstance(robot, Model):
            robot = Mechanism(robot)
        expect("the robot", robot, Mechanism, 'load("quadruped")')
        if not robot.nv:
            raise SimulationError(
                f"the robot {robot.model.name!r} has no joint that moves: nothing can be simulated.",
                code="nothing-to-do",
            )
        max_contacts = contacts.max_contacts
        meeting = meeting_shapes(robot.model, contacts) if max_contacts else Meeting()
        if max_contacts:
            warn_of_scenery(robot.model, ground is not None, meeting.geometries)
        ground = Ground() if ground is None else ground
        expect("the ground", ground, Ground, "Ground(friction=0.7)")
        time_step = number_in_range("time_step", time_step, TIME_STEPS)
        substeps = whole_number("substeps", substeps)
        model = robot.model
        if actuators is not None and (not isinstance(actuators, Iterable) or isinstance(actuators, np.ndarray)):
            raise SimulationError(
                f"actuators is {actuators!r}; they are several, such as position_servos(model, 40.0, 1.0).",
                code="wrong-type",
            )
        chosen = tuple(model.actuators if actuators is None else actuators)
        check_actuators(model, chosen)
        check_tendons(model)
        self.mechanism, self.ground, self.time_step = robot, ground, time_step
        self.tolerance = how.tolerance
        shapes = shapes_of(model, contacts.touching, ground.field) if max_contacts else ()
        warn_of_ridges(shapes, ground)
        friction = friction_of(model, ground, shapes, meeting)
        self.scene = Scene(
            robot,
            max_limits=contacts.max_limits,
            joint_friction=contacts.joint_friction,
            shapes=shapes,
            collisions=meeting.collisions,
            pair_classes=meeting.classes,
            field=ground.field,
            max_contacts=max_contacts,
            contact_rows=friction.rows,
            own_friction=friction.own,
            bounces=bool(np.any(ground.restitution)),
            actuators=chosen,
            substeps=substeps,
            method=find_solver(how.method, COMPILED).name,
        )
        self.freeze()

    def __repr__(self) -> str:
        scene = self.scene
        return (
            f"Simulation({self.model.name!r}: {scene.candidates} candidates for {scene.slots} contacts, {scene.m} "
            f"rows, {scene.nu} controls, steps of {self.time_step:g} s)"
        )

    # --- states ---------------------------------------------------------------------------------------------------

    def start(
        self,
        q0: Any,
        v0: Any = None,
        *,
        time: float = 0.0,
        seed: int = 0,
        repair: bool = True,
        activation: Any = None,
    ) -> State:
        """The state of one item or a batch to begin with.

        Args:
            q0: (…, nq) configurations [rad, m]; quaternions are normalised.
            v0: (…, nv) velocities [rad/s, m/s], by default none.
            time: [s], at which constraints that move in time are met.
            seed: Of random numbers.
            repair: Whether open loops are closed, and robots moved out of the ground: those with a free base lifted,
                others as far as their joints can move; else both are refused.
            activation: (…, na) of the actuators that have a state, by default zero.
        """
        scene, repair = self.scene, boolean("repair", repair)
        time = number_in_range("time", time, FINITE)
        q = array_of_shape("q0", reject_moment(q0), (..., scene.nq), "the coordinates of the robot")
        v = np.zeros(scene.nv) if v0 is None else array_of_shape("v0", v0, (..., scene.nv), "the velocities")
        try:
            batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], self.ground.batch)
        except ValueError:
            raise SimulationError(
                f"q0, v0 and the ground have batch axes that do not fit: {q.shape[:-1]}, {v.shape[:-1]} and "
                f"{self.ground.batch}.",
                code="batch-mismatch",
            ) from None
        q, v = np.broadcast_to(q, (*batch, scene.nq)), np.broadcast_to(v, (*batch, scene.nv))
        with np.errstate(invalid="ignore"):
            unit = normalize(self.model, q)  # a quaternion of zeros is none
        finite = np.isfinite(unit).all(-1) & np.isfinite(v).all(-1)
        q1, v1 = q, v
        if finite.any():  # what is no configuration is frozen as it is: another item stands in for it
            safe = np.where(finite[..., None], unit, unit[finite][0])
            q1, v1 = repaired(scene, self.ground, safe, np.where(finite[..., None], v, 0.0), repair, time)
        return State(
            q=np.where(finite[..., None], q1, q),
            v=np.where(finite[..., None], v1, v),
            time=time,
            impulse=np.zeros((*batch, scene.m)),
            contact=np.broadcast_to(np.arange(float(scene.slots)), (*batch, scene.slots)).copy(),
            residual=np.zeros(batch),
            status=np.where(finite, 0, int(Mark.FROZEN)),
            seed=whole_number("seed", seed, 0),
            activation=first_activation(scene.na, activation, batch),
        )

    def step(self, state: State, control: Any = None) -> State:
        """The state after one control period; `control` (…, nu), or None for none."""
        own = self.__dict__.get("_alone")
        if own is None or own[0] != threading.get_ident() or not own[1].takes(state, control):
            u = self._taken(state, control)
            runner = Runner(self, state, Control(1, simulate, lambda *_: (u,)))
            if runner.alone:  # arrays that are bound once serve all steps of this thread
                self.__dict__["_alone"] = (threading.get_ident(), runner)
            runner.step(0)
            return runner.state()
        stepped: State = own[1].once(state, control)
        return stepped

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_alone"}

    # --- runs -----------------------------------------------------------------------------------------------------

    def run(
        self,
        q0: Any,
        v0: Any = None,
        control: Any = None,
        steps: int | None = None,
        *,
        every: int = 1,
        repair: bool = True,
        progress: Callable[[int, State], None] | None = None,
    ) -> Trajectory:
        """Simulate some control periods and keep what happened.

        Ctrl-C ends it; what was simulated is given, and its last state has `Mark.INTERRUPTED`.

        Args:
            q0: (…, nq) configurations to start from [rad, m], or a `State` to go on with.
            v0: (…, nv) velocities [rad/s, m/s], by default none.
            control: None; an array (nu,), (steps, nu) for all items or (steps, …, nu), refused where it could as well
                be one for each item; a function control(time, q, v) of the whole batch; or a kernel
                (model, time, q, v) -> (nu,), compiled into the step.
            steps: Control periods; by default as many as the array of controls has.
            every: Of so many states one is kept, the first and the last among them.
            repair: As for `start`.
            progress: Called after each period with its number and the state.

        Raises:
            RunError: If `control` or `progress` fails; its `log` is what was simulated until then.
        """
        if progress is not None and not callable(progress):
            raise SimulationError(
                f"progress is {progress!r}; it is a function of a period's number and the state.", code="wrong-type"
            )
        if isinstance(q0, State) and v0 is not None:
            raise SimulationError(
                "v0 is given with a State, which has velocities of its own: leave v0 out.", code="conflicting-arguments"
            )
        state = q0 if isinstance(q0, State) else self.start(q0, v0, repair=repair)
        self._taken(state, None)
        given: Control = control_of(self, control, steps, state.q.shape[:-1])
        every = whole_number("every", every)
        log, runner = Recorder(state, 1 + -(-given.steps // every)), Runner(self, state, given)
        stretch = Stretch(runner)
        try:
            k = 0
            while k < given.steps:
                made = 0 if progress is not None else stretch.advance(k, given.steps - k)
                if made:
                    log.keep_stretch(stretch, k, made, every, given.steps)
                else:
                    runner.step(k)
                    made = 1
                    if (k + 1) % every == 0 or k + 1 == given.steps:
                        log.keep(runner)
                    if progress is not None:
                        report_progress(progress, k, runner)
                k += made
        except KeyboardInterrupt:
            if runner.consistent:
                log.keep_last(runner)
            return log.trajectory(self, interrupted=True)
        except RunError as error:
            log.keep_last(runner)
            error.log = log.trajectory(self, interrupted=True)
            error.add_note("What was simulated until then is the `log` of this error.")
            raise
        return log.trajectory(self)

    def _taken(self, state: Any, control: Any) -> Array:
        """The control (…, nu) of a period, if it and the state can be."""
        expect("the state", reject_moment(state), State, "sim.start(q0)")
        scene = self.scene
        parts = {"q": scene.nq, "v": scene.nv, "impulse": scene.m, "contact": scene.slots, "activation": scene.na}
        if any(getattr(state, name).shape[-1:] != (n,) for name, n in parts.items()):
            raise SimulationError(
                f"the state is one of another simulation: its q has shape {state.q.shape} and its impulses "
                f"{state.impulse.shape}; here they have {scene.nq} and {scene.m} elements.",
                code="other-system",
            )
        number_in_range("the state's time", state.time, FINITE)
        batch = state.q.shape[:-1]
        if not fits(self.ground.batch, batch):
            raise SimulationError(
                f"the ground is one of items {self.ground.batch}, and the state has {batch}.", code="batch-mismatch"
            )
        u = np.zeros(self.nu) if control is None else array_of_shape("the control", control, (..., self.nu))
        if not fits(u.shape[:-1], batch):
            raise SimulationError(f"the control is {u.shape}, and there are items {batch}.", code="batch-mismatch")
        return u

    # --- looking inside -------------------------------------------------------------------------------------------

    def contacts(self, q: Any) -> GroundContacts:
        """Where the robot may touch the ground in configurations (…, nq), all candidates."""
        if not self.scene.candidates:
            raise SimulationError("no shape of the robot may touch anything.", code="not-recorded")
        q = array_of_shape("q", q, (..., self.scene.nq), "the coordinates of the robot")
        gap, point, normal = candidate_geometry(self.scene, q, ground=self.ground.shape)
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
        u = self._taken(state, control)
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
        return run_stages(self.scene, now, inputs)

    def problem(self, state: State, control: Any = None) -> ContactProblem:
        """The contact problem of the next step of time; rows as in `State.impulse`.

        It is the one that the step solves: where restitution would add energy, with the share of it that does not.
        """
        scene = self.scene
        if not scene.m:
            raise SimulationError("there are no contacts, constraints or limits to solve for.", code="nothing-to-do")
        u = self._taken(state, control)
        rows, places = some(state.rows), some(state.contact)
        ground = structures(self.ground.inputs)
        G, g = assemble_step(scene, state.q, state.v, rows, places, some(u), state.time, self.time_step, **ground)
        numbers: dict[str, Any] = {}
        if scene.slots:
            numbers |= self._friction(state)
        if scene.friction_bounds:
            bounds = self.time_step * np.array(scene.friction_bounds)
            numbers |= {"lower": -bounds, "upper": bounds}
        return ContactProblem(G, g, scene.layout.cones, **numbers, check=False)

    def _friction(self, state: State) -> dict[str, Any]:
        """Coefficients (…, slots) of the contacts that the next step solves for."""
        scene, given = self.scene, self.ground.inputs
        ground = [given.get(name, np.zeros(()))[..., None] + np.zeros(scene.slots) for name in COEFFICIENTS]
        number = None
        if scene.own_friction and not scene.has_fixed_slots:
            number = contact_candidates(scene, state.q, state.v, self.time_step, ground=self.ground.shape)
        return contact_coefficients(scene, number, (ground[0], ground[1], ground[2]))
