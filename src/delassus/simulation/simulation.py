"""`Simulation`: robots on the ground, one or thousands at a time; a control period is one kernel call."""

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
    MOST_ITERATIONS,
    TIME_STEPS,
    array_of_shape,
    boolean,
    check_integer,
    number_in_range,
    real_array,
)
from delassus.common.options import Shortcuts
from delassus.compiler.backends.background import finish_optimizing
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
from delassus.simulation.checks import SimulationError, fits
from delassus.simulation.controls import Control, control_of, with_policy
from delassus.simulation.ground import Ground
from delassus.simulation.initial_states import (
    are_admissible_for,
    check_parameters,
    first_activation,
    ground_of_items,
    parameter_array,
    repaired,
    values_of_items,
)
from delassus.simulation.inspection import Inspection
from delassus.simulation.options import Recording, StepSolver
from delassus.simulation.policies.policy import CompiledPolicy
from delassus.simulation.pushes import Push, Pushes, check_push
from delassus.simulation.recorder import record_run
from delassus.simulation.runner import Runner
from delassus.simulation.setup import MORE_SLOTS, choose_step, refuse_restitution, refuse_single_precision
from delassus.simulation.state import State, item_numbers, reject_moment, resume
from delassus.simulation.world_shapes import choose_ground, warn_of_untouchable_shapes
from delassus.step.actuators.checks import check_actuators
from delassus.step.actuators.joint_ranges import limited_by_joints
from delassus.step.bodies.kernels import period_kernel
from delassus.step.flags import Mark
from delassus.step.laws.softening import soften
from delassus.step.laws.static_penetration import warn_of_softness
from delassus.step.points.statistics import expand_targets
from delassus.step.scene import Scene
from delassus.step.selection.collision_pairs import CollisionPairs, count_slots, friction_of, select_collision_pairs
from delassus.step.selection.options import ContactSelection
from delassus.step.selection.shapes import shapes_of
from delassus.step.selection.world_shapes import ground_shape
from delassus.step.sources.limits import with_model_limits

if TYPE_CHECKING:
    from delassus.simulation.replays.replay import Replay
    from delassus.simulation.sensors.readout import Sensor
    from delassus.simulation.sensors.sensors import Sensors

_OF_LOAD: Final = ("root", "mimic", "packages", "srdf")
"""Options of `load` that `Simulation.from_file` passes on."""

_CACHES: Final = ("_alone", "_prepared", "compiled", "_with_memory")
"""Attributes that copies in other processes begin without."""

_SHORTCUTS: Final = Shortcuts(
    "Simulation", "robot ground time_step substeps actuators", contacts=ContactSelection(), solver=StepSolver()
)

_RUN_SHORTCUTS: Final = Shortcuts("Simulation.run", "q0 v0 control steps repair progress push", recording=Recording())


class Simulation(Inspection):
    """A robot, its ground, and the time stepping of both.

        sim = dl.Simulation(robot, ground=dl.Ground(friction=0.7), time_step=1e-3)
        log = sim.run(q0, v0, steps=2000)

    The first step compiles everything into one kernel. Contacts, closed loops, joint limits and joint friction are
    solved together, to a residual of 1e-8 of the velocities involved. Damping, springs and servos are implicit. A
    simulation is immutable: create another one for another time step, ground or robot.

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
        """Create a simulation. Nothing is compiled yet.

        Args:
            robot: A model, whose own constraints close its loops, or a mechanism. The parameters of a robot such as
                robot.parametric("mass:trunk", "servo") may differ between environments; see `start`.
            ground: The ground; None for the ground of the model's file. An MJCF file without a plane has no ground. A
                URDF describes only a robot, which stands on `Ground()`, level and at height zero.
            time_step: Length of a time step [s].
            substeps: Number of time steps in a control period.
            actuators: The actuators that the controls drive; by default those of the model. If there are none, controls
                are forces on all joints except a free base.
            contacts: A `ContactSelection`: which shapes may touch, and how many contacts a state has.
            solver: A method, or `StepSolver(method, tolerance)`.
            **shortcuts: touching, colliding, self_collision, max_contacts, max_limits, joint_friction, hull_error,
                tracked (contacts); method, tolerance, law, dtype (solver): law="mujoco" selects MuJoCo's contact law,
                dtype=np.float32 computes steps in single precision.
        """
        contacts, how = _SHORTCUTS.fill(shortcuts, contacts=contacts, solver=solver)
        if isinstance(robot, (Model, ParametricModel)):
            robot = Mechanism(robot)
        expect("the robot", robot, Mechanism, 'Mechanism(load("quadruped"))')
        if not robot.nv:
            raise SimulationError(
                f"the robot {robot.model.name!r} has no movable joint, so there is nothing to simulate.",
                code="nothing-to-do",
            )
        max_contacts = contacts.max_contacts
        collision_pairs = select_collision_pairs(robot.model, contacts) if max_contacts != 0 else CollisionPairs()
        if max_contacts != 0:
            warn_of_untouchable_shapes(robot.model, ground is not None, collision_pairs.geometries)
        file_ground = ground is None
        ground, contacts = choose_ground(robot.model, ground, contacts)
        time_step = number_in_range("time_step", time_step, TIME_STEPS)
        substeps = check_integer("substeps", substeps, most=MOST_ITERATIONS)
        model = robot.model
        if actuators is not None and (not isinstance(actuators, Iterable) or isinstance(actuators, np.ndarray)):
            raise SimulationError(
                f"actuators is {actuators!r}; it must be a sequence of actuators, such as position_servos(model, 40.0, "
                "1.0).",
                code="wrong-type",
            )
        chosen = tuple(model.actuators if actuators is None else actuators)
        check_parameters(robot, chosen)
        check_actuators(model, chosen)
        chosen = limited_by_joints(model, chosen)
        robot = with_model_limits(robot) if contacts.max_limits else robot
        check_tendons(model)
        warn_of_omissions(model)
        self.mechanism, self.ground, self.time_step = robot, ground, time_step
        self.tolerance, self.dtype = how.effective_tolerance, how.dtype
        shapes = shapes_of(model, contacts.touching, ground.field, contacts.hull_error) if max_contacts != 0 else ()
        friction = friction_of(model, ground.coefficients, shapes, collision_pairs)
        scene = Scene(
            robot,
            max_limits=contacts.max_limits,
            joint_friction=contacts.joint_friction,
            shapes=shapes,
            collisions=collision_pairs.collisions,
            pair_classes=collision_pairs.classes,
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
            scene = soften(scene, ground_shape(model))
        elif file_ground:
            warn_of_softness(scene, ground_shape(model), time_step)
        slots = count_slots(model, collision_pairs)
        scene = choose_step(scene, how.method, slots + MORE_SLOTS if scene.is_soft else slots)
        if self.dtype == np.float32:
            refuse_single_precision(scene)
        self.scene = replace(scene, tracked=expand_targets(scene, tuple(contacts.tracked)))
        self.freeze()

    @classmethod
    def from_file(cls, source: Any, **options: Any) -> Simulation:
        """Create the simulation that a file describes: time step, actuators, ground, and the first keyframe as start.

            log = dl.Simulation.from_file("scene.xml").run(steps=1000)

        `options` are those of `Simulation`; they replace values of the file. For URDF, those of `load` are accepted as
        well, such as root="free".
        """
        model = load(source, **{name: options.pop(name) for name in _OF_LOAD if name in options})
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
        """The largest Hausdorff distance [m] between a simplified hull and the full hull of its mesh."""
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
        memory: ArrayLike | None = None,
    ) -> State:
        """Create the initial state of one environment or a batch.

        Args:
            q0: (…, nq) configurations [rad, m]; quaternions are normalized. None for all values of `keyframe`.
            v0: (…, nv) velocities [rad/s, m/s], by default zero.
            time: Initial time [s], by default zero. Constraints that depend on time are met at this time.
            seed: Seed of the random numbers.
            repair: If true, close open loops and move robots out of the ground: lift those with a free base, and move
                the others as far as their joints allow. If false, raise an error for such states.
            activation: (…, na) activations of the actuators that have a state, by default zero.
            parameters: (…, nparameters) of a parametric robot, as `robot.pack` builds them; by default its nominal
                values. Impossible values, such as a negative mass, freeze their environment.
            memory: (…, n) memory of a `CompiledPolicy`, as its `pack` builds it; by default its initial values.
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
                f"q0, v0, the ground and the parameters have the batch axes {q.shape[:-1]}, {v.shape[:-1]}, "
                f"{self.ground.batch} and {p.shape[:-1]}, which do not broadcast.",
                code="batch-mismatch",
            ) from None
        q, v = np.broadcast_to(q, (*batch, scene.nq)), np.broadcast_to(v, (*batch, scene.nv))
        activation = first_activation(scene.na, activation, batch)
        p = np.broadcast_to(p, (*batch, p.shape[-1]))
        parts = self._begin(self.ground, q, v, time, boolean("repair", repair), are_admissible_for(self.parametric, p))
        memory = np.zeros(0) if memory is None else real_array("the memory", memory)
        if not fits(memory.shape[:-1], batch) or not memory.ndim:
            raise SimulationError(
                f"the memory has shape {memory.shape}; it must be (n,) or ({', '.join(map(str, batch))}, n).",
                code="batch-mismatch",
            )
        memory = np.broadcast_to(memory, (*batch, memory.shape[-1])).copy()
        seed = check_integer("seed", seed, 0)
        return State(**parts, activation=activation, seed=seed, parameters=p.copy(), memory=memory)

    def _begin(self, ground: Ground, q: Any, v: Any, time: float, repair: bool, usable: Any) -> dict[str, Any]:
        """Parts of the initial state of environments on a ground, frozen unless `usable` (…). All arrays have the batch
        axes."""
        scene, batch = self.scene, q.shape[:-1]
        with np.errstate(invalid="ignore"):
            unit = normalize(self.model, q)  # a quaternion of zeros becomes NaN
        finite = np.isfinite(unit).all(-1) & np.isfinite(v).all(-1) & usable
        q1, v1 = unit, v
        # Frozen environments keep their values; the repair replaces them by a valid configuration. Soft contacts need
        # no repair.
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
        """Restart selected environments. The others, and all streams of random numbers, continue.

        Resetting clears the impulses, unfreezes frozen environments, and sets the memory of a `CompiledPolicy` to NaN,
        which stands for its initial values.

        Args:
            state: A state of one environment or a batch.
            items: A mask (…), or indices of environments.
            q: (nq,) for all of them, (n, nq) for n environments, or (…, nq) for the whole batch [rad, m].
            v: (nv,), (n, nv) or (…, nv) [rad/s, m/s], by default zero.
            time: The new time of these environments [s].
            repair: As for `start`.
            activation: (na,), (n, na) or (…, na), by default zero.
            parameters: (nparameters,), (n, nparameters) or (…, nparameters), by default unchanged.
        """
        self.check(state)
        scene, batch, repair = self.scene, state.batch, boolean("repair", repair)
        numbers, time = item_numbers(items, batch), number_in_range("time", time, FINITE)
        inputs = {"q": reject_moment(q), "v": np.zeros(scene.nv) if v is None else v}
        inputs["activation"] = np.zeros(scene.na) if activation is None else activation
        inputs["parameters"] = state.parameters if parameters is None else parameter_array(self.parametric, parameters)
        sizes = {"q": scene.nq, "v": scene.nv, "activation": scene.na, "parameters": self.nparameters}
        values = {name: values_of_items(name, x, batch, numbers, sizes[name]) for name, x in inputs.items()}
        if not len(numbers):
            return state
        ground, parts = ground_of_items(self.ground, batch, numbers), state.flat()
        usable = are_admissible_for(self.parametric, values["parameters"])
        start = self._begin(ground, values["q"], values["v"], time, repair, usable)
        fresh = {**start, "activation": values["activation"], "parameters": values["parameters"], "memory": np.nan}
        for name in (*start, "activation", "parameters", "memory"):
            parts[name] = parts[name].copy()
            parts[name][numbers] = fresh[name]
        parts = {name: x.reshape((*batch, *x.shape[1:])) for name, x in parts.items()}
        return State.unchecked(**parts) if batch else State(**parts)

    def resume(self, log: Trajectory, k: int, items: tuple[Any, ...] = ()) -> State:
        """The state at the k-th time of a log, like `log[k]`; `run` continues from it bit for bit."""
        return resume(log, k, items)

    def step(self, state: State, control: Any = None, *, push: Push | None = None) -> State:
        """Advance a state by one control period with a control (…, nu), by default zero, or a `CompiledPolicy`, and
        optionally a `Push`."""
        if push is not None:
            constant = self._constant(state, control)
            check_push(self, push, state.batch)
            runner = Runner(self, state, constant, pushes=push)
            runner.step(0)
            return runner.state()
        cached = self.__dict__.get("_alone")
        if cached is None or cached[0] != threading.get_ident() or not cached[1].takes(state, control):
            runner = Runner(self, state, self._constant(state, control))
            if state.batch != self.__dict__.get("_prepared"):
                self.__dict__["_prepared"] = state.batch
                runner.compile_ahead(1)
            if runner.alone or runner.small:  # its bound arrays are reused by later steps of this thread
                self.__dict__["_alone"] = (threading.get_ident(), runner)
            runner.step(0)
            return runner.state()
        next_state: State = cached[1].once(state, control)
        return next_state

    def _constant(self, state: State, control: Any) -> Control:
        """The control of one period: an array, or a policy."""
        policy = control if isinstance(control, CompiledPolicy) else None
        u = self.check(state, control if policy is None else policy.reference)
        constant = Control(1, period_kernel(self.scene), lambda *_: (u,))
        return constant if policy is None else with_policy(self, constant, policy)

    def compile(self, items: int = 1, control: CompiledPolicy | None = None) -> None:
        """Compile all kernels that steps of one or several environments may need, optionally with a policy.

        It returns when the kernels are optimized, so that no step waits for the compiler. Long runs and steps of at
        least 16 environments do this when they start. Call it before the first step of a real-time controller.
        """
        count = check_integer("items", items)
        batch = () if items == 1 or self.ground.batch else (count,)
        state = self.start(np.full((*batch, self.scene.nq), np.nan))  # frozen: no configuration needs to be legal
        Runner(self, state, self._constant(state, control), bound=False).compile()
        finish_optimizing()

    def bind(self, state: State, control: Any = None) -> BoundRobot:
        """Bind one robot for a control loop in Python: its arrays change in place, with next to no overhead per step.

        Args:
            state: A state of one environment.
            control: (nu,) control of the first period, by default zero; or a `CompiledPolicy`.
        """
        constant = self._constant(state, control)
        runner = Runner(self, state, constant)
        if not runner.bound:
            raise SimulationError(
                f"the state has the batch axes {state.batch}, or parameters; bind takes one robot without parameters, "
                "such as state[0]. sim.step takes batches.",
                code="wrong-shape",
            )
        (u,) = constant.at(0, state.time, state.q, state.v)
        return bind_robot(runner, u)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _CACHES}

    def sensors(self, *sensors: str | Sensor) -> Sensors:
        """Compile sensors into one kernel: names such as "gyro:trunk" or "touch:*_calf_1", or `Sensor`s; by default all
        sensors of the model's file."""
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
        """Simulate a number of control periods and return a log of the states.

        Ctrl-C ends a run early. The log then ends at that time, and its last state has the flag `Mark.INTERRUPTED`.

        Args:
            q0: (…, nq) initial configurations [rad, m], or a `State` to continue from; None for `keyframe`, whose
                control is then the default.
            v0: (…, nv) initial velocities [rad/s, m/s], by default zero.
            control: None; an array (nu,), (steps, nu) for all environments, or (steps, …, nu), an error if its first
                axis could also be that of environments; a function control(time, q, v) of the whole batch with times
                (…); one of these `Delayed`; or a `CompiledPolicy` or a kernel (model, time, q, v) -> (nu,), which are
                compiled into the step.
            steps: Number of control periods, by default the number of rows in the array of controls.
            repair: As for `start`.
            progress: Function of the period's index and the state, called after each period. If it returns a state,
                such as `sim.reset(state, fallen, home)`, the run continues from that state.
            push: A `Push`, whose wrenches act in the whole run and whose kick acts in the first period; or a function
                push(time, q, v) of the whole batch that returns the push of a period, or None.
            recording: A `Recording`: the contents of the log.
            **shortcuts: record, every (recording): record="replay" records controls, pushes and resets of all periods.

        Raises:
            RunError: If `control` or `progress` fails; its attribute `log` has the trajectory up to that time.
        """
        (record,) = _RUN_SHORTCUTS.fill(shortcuts, recording=recording)
        if progress is not None and not callable(progress):
            raise SimulationError(
                f"progress is {progress!r}; it must be a function of the period's index and the state.",
                code="wrong-type",
            )
        if isinstance(q0, State) and v0 is not None:
            raise SimulationError(
                "v0 and a State are both given, and a State includes velocities: omit v0.", code="conflicting-arguments"
            )
        if q0 is None and control is None and len(self.keyframe.control) == self.nu:
            control = self.keyframe.control
        state = q0 if isinstance(q0, State) else self.start(q0, v0, repair=repair)
        self.check(state, None)
        if push is not None and not callable(push):
            check_push(self, push, state.batch)
        controller: Control = control_of(self, control, steps, state.q.shape[:-1])
        inputs = None
        if record.record == "replay":
            from delassus.simulation.replays.inputs import InputRecorder

            inputs = partial(InputRecorder, controller)
        return record_run(self, state, controller, record.interval, progress, push, inputs)

    def replay(self, log: Trajectory, at: tuple[int, ...], period: int) -> Replay:
        """Replay an environment of a log of this simulation up to the beginning of a control period; see `replay`."""
        from delassus.simulation.replays.replay import replay

        return replay(log, at, period)

    def replayed_log(self, log: Trajectory, at: tuple[int, ...], first: int, last: int) -> Trajectory:
        """Replay the states of an environment of a log from one control period to another."""
        from delassus.simulation.replays.replay import replayed_log

        return replayed_log(log, at, first, last)
