"""`Simulation`: robots on the ground, one or thousands, a control period in one kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from delassus.common.checks import (
    FINITE,
    TIME_STEPS,
    array_of_shape,
    boolean,
    check_integer,
    number_in_range,
)
from delassus.common.options import Shortcuts
from delassus.compiler.host.kernel import Kernel
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.tendons import check_tendons
from delassus.dynamics.kinematics.manifold import normalize
from delassus.errors import expect
from delassus.model.checks import warn_of_omissions
from delassus.model.model import Model, ParametricModel
from delassus.model.readers.load import load
from delassus.model.transmission import Actuator
from delassus.output.trajectory import Trajectory
from delassus.simulation.bound.robot import BoundRobot, bind_robot
from delassus.simulation.checks import SimulationError
from delassus.simulation.controls import Control, control_of
from delassus.simulation.ground import Ground
from delassus.simulation.inspection import Inspection
from delassus.simulation.meeting import Meeting, count_slots, friction_of, meeting_shapes
from delassus.simulation.options import ContactSelection, Recording, StepSolver
from delassus.simulation.pushes import Push, Pushes, check_push
from delassus.simulation.recorder import record_run
from delassus.simulation.runner import Runner
from delassus.simulation.scenery import choose_ground, ground_plane, warn_of_scenery
from delassus.simulation.setup import MORE_SLOTS, choose_step, refuse_restitution
from delassus.simulation.shapes import shapes_of
from delassus.simulation.starting import (
    are_admissible_for,
    check_parameters,
    first_activation,
    ground_of_items,
    parameter_array,
    repaired,
    values_of_items,
)
from delassus.simulation.state import State, item_numbers, reject_moment, resume
from delassus.step.actuators.checks import check_actuators
from delassus.step.actuators.joint_ranges import limited_by_joints
from delassus.step.bodies.kernels import period_kernel
from delassus.step.laws.softening import soften
from delassus.step.marks import Mark
from delassus.step.points.tally import expand_targets
from delassus.step.scene import Scene
from delassus.step.sources.limits import with_tendon_limits

if TYPE_CHECKING:
    from delassus.simulation.replays.replay import Replay
    from delassus.simulation.sensors.readout import Sensor
    from delassus.simulation.sensors.sensors import Sensors

_SHORTCUTS: Final = Shortcuts(
    "Simulation", "robot ground time_step substeps actuators", contacts=ContactSelection(), solver=StepSolver()
)

_RUN_SHORTCUTS: Final = Shortcuts("Simulation.run", "q0 v0 control steps repair progress push", recording=Recording())


class Simulation(Inspection):
    """A robot on the ground, and how it is stepped through time.

        sim = dl.Simulation(robot, ground=dl.Ground(friction=0.7), time_step=1e-3)
        log = sim.run(q0, v0, steps=2000)

    Everything is compiled into one kernel when the first step is made. Contacts, closed loops, joint limits and dry
    friction are solved for together, to a residual of 1e-8 of the velocities involved; damping, springs and servos are
    implicit. It cannot be changed: another time step, ground or robot is another simulation.

    >>> sim = dl.Simulation(dl.load("pendulum"), time_step=1e-2, touching=())
    >>> sim.run([1.0], steps=10).q.shape
    (11, 1)
    """

    def __init__(
        self,
        robot: Model | ParametricModel | Mechanism,
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
            robot: A model, whose own constraints close its loops, or a mechanism. One with parameters, such as
                robot.parametric("mass:trunk", "servo"), has them per item (`start`).
            ground: What it stands on; None for the planes of the model's file. A file that describes a world without a
                plane has no ground; a robot alone (URDF) stands on `Ground()`, level and at height zero.
            time_step: Of one step of time [s].
            substeps: Steps of time in a control period.
            actuators: What the controls drive; by default those of the model. Without any, controls are torques of all
                velocities of joints, a free base left out.
            contacts: A `ContactSelection`: what may touch, and how many rows a state has.
            solver: A method, or `StepSolver(method, tolerance)`.
            **shortcuts: touching, colliding, self_collision, max_contacts, max_limits, joint_friction, hull_error,
                tracked (contacts); method, tolerance, law (solver): law="mujoco" is MuJoCo's law of contact.
        """
        contacts, how = _SHORTCUTS.fill(shortcuts, contacts=contacts, solver=solver)
        if isinstance(robot, (Model, ParametricModel)):
            robot = Mechanism(robot)
        expect("the robot", robot, Mechanism, 'load("quadruped")')
        if not robot.nv:
            raise SimulationError(
                f"the robot {robot.model.name!r} has no joint that moves: nothing can be simulated.",
                code="nothing-to-do",
            )
        max_contacts = contacts.max_contacts
        meeting = meeting_shapes(robot.model, contacts) if max_contacts != 0 else Meeting()
        if max_contacts != 0:
            warn_of_scenery(robot.model, ground is not None, meeting.geometries)
        ground, contacts = choose_ground(robot.model, ground, contacts)
        time_step = number_in_range("time_step", time_step, TIME_STEPS)
        substeps = check_integer("substeps", substeps)
        model = robot.model
        if actuators is not None and (not isinstance(actuators, Iterable) or isinstance(actuators, np.ndarray)):
            raise SimulationError(
                f"actuators is {actuators!r}; they are several, such as position_servos(model, 40.0, 1.0).",
                code="wrong-type",
            )
        chosen = tuple(model.actuators if actuators is None else actuators)
        check_parameters(robot, chosen)
        check_actuators(model, chosen)
        chosen = limited_by_joints(model, chosen)
        robot = with_tendon_limits(robot) if contacts.max_limits else robot
        check_tendons(model)
        warn_of_omissions(model)
        self.mechanism, self.ground, self.time_step = robot, ground, time_step
        self.tolerance = how.tolerance
        shapes = shapes_of(model, contacts.touching, ground.field, contacts.hull_error) if max_contacts != 0 else ()
        friction = friction_of(model, ground, shapes, meeting)
        scene = Scene(
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
        )
        if how.law == "mujoco":
            refuse_restitution(ground)
            scene = soften(scene, ground_plane(model))
        slots = count_slots(model, meeting)
        scene = choose_step(scene, how.method, slots + MORE_SLOTS if scene.is_soft else slots)
        self.scene = replace(scene, tracked=expand_targets(scene, tuple(contacts.tracked)))
        self.freeze()

    @classmethod
    def from_file(cls, source: Any, **options: Any) -> Simulation:
        """The simulation that a file describes: its time step, actuators and ground, its first keyframe as the start.

            log = dl.Simulation.from_file("scene.xml").run(steps=1000)

        `options` are those of `Simulation`, in place of the file's.
        """
        model = load(source)
        options = {"time_step": model.time_step} | options if model.time_step else options
        return cls(model, **options)

    def __repr__(self) -> str:
        scene, error = self.scene, self.hull_error
        hulls = f"hulls within {1e3 * error:.2g} mm, " if error else ""
        return (
            f"Simulation({self.model.name!r}: {scene.candidates} candidates for {scene.slots} contacts, {scene.m} "
            f"rows, {scene.nu} controls, {hulls}steps of {self.time_step:g} s)"
        )

    @property
    def hull_error(self) -> float:
        """The largest Hausdorff distance [m] of a hull that may touch to that of all vertices of its mesh."""
        scene = self.scene
        pairs = [(c.shape, c.other) for c in scene.collisions] + [p for c in scene.pair_classes for p in c.pairs]
        shapes = [*scene.shapes, *(shape for pair in pairs for shape in pair)]
        return max((shape.hull_error for shape in shapes), default=0.0)

    # --- states ---------------------------------------------------------------------------------------------------

    def start(
        self,
        q0: Any = None,
        v0: ArrayLike | None = None,
        *,
        time: float | None = None,
        seed: int = 0,
        repair: bool = True,
        activation: ArrayLike | None = None,
        parameters: ArrayLike | None = None,
    ) -> State:
        """The state of one item or a batch to begin with.

        Args:
            q0: (…, nq) configurations [rad, m]; quaternions are normalised. None for `keyframe`, all of it.
            v0: (…, nv) velocities [rad/s, m/s], by default none.
            time: [s], at which constraints that move in time are met; by default zero.
            seed: Of random numbers.
            repair: Whether open loops are closed, and robots moved out of the ground: those with a free base lifted,
                others as far as their joints can move; else both are refused.
            activation: (…, na) of the actuators that have a state, by default zero.
            parameters: (…, nparameters) of a robot that has some, as `robot.pack` gives them; by default its own
                numbers. An item whose parameters no robot can have is frozen.
        """
        scene = self.scene
        if q0 is None:
            key = self.keyframe
            q0, v0, time = key.q, key.v if v0 is None else v0, key.time if time is None else time
            activation = key.activation if activation is None and len(key.activation) == scene.na else activation
        time = 0.0 if time is None else time
        time = number_in_range("time", time, FINITE)
        q = array_of_shape("q0", reject_moment(q0), (..., scene.nq), "the coordinates of the robot")
        v = np.zeros(scene.nv) if v0 is None else array_of_shape("v0", v0, (..., scene.nv), "the velocities")
        p = parameter_array(self.parametric, parameters)
        try:
            batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], self.ground.batch, p.shape[:-1])
        except ValueError:
            raise SimulationError(
                f"q0, v0, the ground and the parameters have batch axes that do not fit: {q.shape[:-1]}, "
                f"{v.shape[:-1]}, {self.ground.batch} and {p.shape[:-1]}.",
                code="batch-mismatch",
            ) from None
        q, v = np.broadcast_to(q, (*batch, scene.nq)), np.broadcast_to(v, (*batch, scene.nv))
        activation = first_activation(scene.na, activation, batch)
        p = np.broadcast_to(p, (*batch, p.shape[-1]))
        parts = self._begin(self.ground, q, v, time, boolean("repair", repair), are_admissible_for(self.parametric, p))
        return State(**parts, activation=activation, seed=check_integer("seed", seed, 0), parameters=p.copy())

    def _begin(self, ground: Ground, q: Any, v: Any, time: float, repair: bool, usable: Any) -> dict[str, Any]:
        """Parts of the first state of items on a ground, frozen unless it is `usable` (…); arrays have the axes of the
        items."""
        scene, batch = self.scene, q.shape[:-1]
        with np.errstate(invalid="ignore"):
            unit = normalize(self.model, q)  # a quaternion of zeros is none
        finite = np.isfinite(unit).all(-1) & np.isfinite(v).all(-1) & usable
        q1, v1 = unit, v
        # What is no configuration is frozen as it is: another item stands in for it. A soft law repairs itself.
        if finite.any() and not scene.is_soft:
            safe = np.where(finite[..., None], unit, unit[finite][0])
            q1, v1 = repaired(
                self.plain_scene,
                self.starting_scene,
                ground,
                safe,
                np.where(finite[..., None], v, 0.0),
                repair,
                time,
            )
        parts: dict[str, Any] = {
            "q": np.where(finite[..., None], q1, q),
            "v": np.where(finite[..., None], v1, v),
            "time": time,
            "impulse": np.zeros((*batch, scene.m)),
            "contact": np.broadcast_to(np.arange(float(scene.slots)), (*batch, scene.slots)).copy(),
            "residual": np.zeros(batch),
            "status": np.where(finite, 0, int(Mark.FROZEN)),
            "tally": np.zeros((*batch, scene.tally_size)),
        }
        return parts

    def reset(
        self,
        state: State,
        items: ArrayLike,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        time: float = 0.0,
        repair: bool = True,
        activation: ArrayLike | None = None,
        parameters: ArrayLike | None = None,
    ) -> State:
        """A state in which some items start again; the others, and all streams of random numbers, go on.

        Items that were frozen are so no longer, and their impulses are zero.

        Args:
            state: Of a batch, or of one item.
            items: A mask (…), or numbers of items.
            q: (nq,) for all of them, (n, nq) for n items, or (…, nq) for the whole batch [rad, m].
            v: (nv,), (n, nv) or (…, nv) [rad/s, m/s], by default none.
            time: Of these items [s].
            repair: As for `start`.
            activation: (na,), (n, na) or (…, na), by default zero.
            parameters: (nparameters,), (n, nparameters) or (…, nparameters), by default those that the items had.
        """
        self.check(state)
        scene, batch, repair = self.scene, state.batch, boolean("repair", repair)
        numbers, time = item_numbers(items, batch), number_in_range("time", time, FINITE)
        given = {"q": reject_moment(q), "v": np.zeros(scene.nv) if v is None else v}
        given["activation"] = np.zeros(scene.na) if activation is None else activation
        given["parameters"] = state.parameters if parameters is None else parameter_array(self.parametric, parameters)
        sizes = {"q": scene.nq, "v": scene.nv, "activation": scene.na, "parameters": self.nparameters}
        values = {name: values_of_items(name, x, batch, numbers, sizes[name]) for name, x in given.items()}
        if not len(numbers):
            return state
        ground, parts = ground_of_items(self.ground, batch, numbers), state.flat()
        usable = are_admissible_for(self.parametric, values["parameters"])
        start = self._begin(ground, values["q"], values["v"], time, repair, usable)
        fresh = {**start, "activation": values["activation"], "parameters": values["parameters"]}
        changed = ("q", "v", "time", "impulse", "contact", "residual", "status", "activation", "parameters", "tally")
        for name in changed:
            parts[name] = parts[name].copy()
            parts[name][numbers] = fresh[name]
        parts = {name: x.reshape((*batch, *x.shape[1:])) for name, x in parts.items()}
        return State.unchecked(**parts) if batch else State(**parts)

    def resume(self, log: Trajectory, k: int, items: tuple[Any, ...] = ()) -> State:
        """The state at the k-th time of a log, as `log[k]` gives it: `run` goes on from it, to the bit."""
        return resume(log, k, items)

    def step(self, state: State, control: Any = None, *, push: Push | None = None) -> State:
        """The state after one control period; `control` (…, nu), or None for none; what a `Push` does besides."""
        if push is not None:
            u = self.check(state, control)
            check_push(self, push, state.batch)
            runner = Runner(self, state, Control(1, period_kernel(self.scene), lambda *_: (u,)), pushes=push)
            runner.step(0)
            return runner.state()
        own = self.__dict__.get("_alone")
        if own is None or own[0] != threading.get_ident() or not own[1].takes(state, control):
            u = self.check(state, control)
            runner = Runner(self, state, Control(1, period_kernel(self.scene), lambda *_: (u,)))
            if state.batch != self.__dict__.get("_prepared"):
                self.__dict__["_prepared"] = state.batch
                runner.compile_ahead(1)
            if runner.alone or runner.small:  # arrays that are bound once serve all steps of this thread
                self.__dict__["_alone"] = (threading.get_ident(), runner)
            runner.step(0)
            return runner.state()
        stepped: State = own[1].once(state, control)
        return stepped

    def compile(self, items: int = 1) -> None:
        """Compile all that steps of one item, or of several, may need, so that no step waits for a compiler.

        Long runs and steps of 16 items or more do so by themselves when they begin; a controller of one robot in real
        time calls it before.
        """
        q = self.keyframe.q if items == 1 else np.tile(self.keyframe.q, (check_integer("items", items), 1))
        state = self.start(q, repair=False) if not self.ground.batch else self.start(self.keyframe.q, repair=False)
        Runner(self, state, Control(1, period_kernel(self.scene), lambda *_: ()), bound=False).compile()

    def bind(self, state: State, control: Any = None) -> BoundRobot:
        """One robot for a control loop in Python: arrays that change in place, with next to no overhead a step.

        Args:
            state: Of one item, on a ground that is the same for all.
            control: (nu,) of the first period, by default none.
        """
        u = self.check(state, control)
        runner = Runner(self, state, Control(1, period_kernel(self.scene), lambda *_: (u,)))
        if not runner.bound:
            raise SimulationError(
                f"the state has the items {state.batch}, or parameters of its own; bind takes one robot, such as "
                "state[0]. sim.step takes batches.",
                code="wrong-shape",
            )
        return bind_robot(runner, u)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_alone", "_prepared", "compiled")}

    def sensors(self, *sensors: str | Sensor) -> Sensors:
        """Sensors of the robot by name, such as "gyro:trunk", "touch:*_calf_1" or a `Sensor`, in one kernel; without a
        name, all of the model's file."""
        from delassus.simulation.sensors.sensors import Sensors

        return Sensors(self, sensors) if sensors else Sensors.of_file(self)

    # --- runs -----------------------------------------------------------------------------------------------------

    def run(
        self,
        q0: Any = None,
        v0: Any = None,
        control: Any = None,
        steps: int | None = None,
        *,
        repair: bool = True,
        progress: Callable[[int, State], State | None] | None = None,
        push: Pushes | None = None,
        recording: str | Recording | None = None,
        **shortcuts: Any,
    ) -> Trajectory:
        """Simulate some control periods and keep what happened.

        Ctrl-C ends it; what was simulated is given, and its last state has `Mark.INTERRUPTED`.

        Args:
            q0: (…, nq) configurations to start from [rad, m], or a `State` to go on with; None for `keyframe`, with its
                control where none is given.
            v0: (…, nv) velocities [rad/s, m/s], by default none.
            control: None; an array (nu,), (steps, nu) for all items or (steps, …, nu), refused where it could as well
                be one for each item; a function control(time, q, v) of the whole batch, times (…); one of these
                `Delayed`; or a kernel (model, time, q, v) -> (nu,), compiled into the step.
            steps: Control periods; by default as many as the array of controls has.
            repair: As for `start`.
            progress: Called after each period with its number and the state. If it gives a state, such as
                `sim.reset(state, fallen, home)`, the run goes on from there.
            push: A `Push`, whose wrenches last for the whole run and whose kick comes first; or a function
                push(time, q, v) of the whole batch that gives that of a period, or None.
            recording: A `Recording`: what the log keeps.
            **shortcuts: record, every (recording): record="replay" keeps controls, pushes and resets of all periods.

        Raises:
            RunError: If `control` or `progress` fails; its `log` is what was simulated until then.
        """
        (kept,) = _RUN_SHORTCUTS.fill(shortcuts, recording=recording)
        if progress is not None and not callable(progress):
            raise SimulationError(
                f"progress is {progress!r}; it is a function of a period's number and the state.", code="wrong-type"
            )
        if isinstance(q0, State) and v0 is not None:
            raise SimulationError(
                "v0 is given with a State, which has velocities of its own: leave v0 out.", code="conflicting-arguments"
            )
        if q0 is None and control is None and len(self.keyframe.control) == self.nu:
            control = self.keyframe.control
        state = q0 if isinstance(q0, State) else self.start(q0, v0, repair=repair)
        self.check(state, None)
        if push is not None and not callable(push):
            check_push(self, push, state.batch)
        given: Control = control_of(self, control, steps, state.q.shape[:-1])
        inputs = None
        if kept.record == "replay":
            from delassus.simulation.replays.inputs import InputRecorder

            inputs = partial(InputRecorder, given, policy=control if isinstance(control, Kernel) else None)
        return record_run(self, state, given, kept.interval, progress, push, inputs)

    def replay(self, log: Trajectory, at: tuple[int, ...], period: int) -> Replay:
        """An item of a log of this simulation, made again up to the beginning of a control period; see `replay`."""
        from delassus.simulation.replays.replay import replay

        return replay(log, at, period)

    def replayed_log(self, log: Trajectory, at: tuple[int, ...], first: int, last: int) -> Trajectory:
        """The states of an item of a log from one control period to another, made again."""
        from delassus.simulation.replays.replay import replayed_log

        return replayed_log(log, at, first, last)
