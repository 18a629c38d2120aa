"""`Simulation`: robots on the ground, one or thousands, a control period in one kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

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
from delassus.contact.solvers.registry import find_solver
from delassus.contact.systems.scaled import CAPABILITIES as COMPILED
from delassus.dynamics.forces.tendons import check_tendons
from delassus.dynamics.kinematics.manifold import normalize
from delassus.errors import expect
from delassus.model.model import Model
from delassus.model.transmission import Actuator
from delassus.output.trajectory import Trajectory
from delassus.simulation.checks import SimulationError
from delassus.simulation.coefficients import friction_of
from delassus.simulation.controls import Control, control_of
from delassus.simulation.ground import Ground
from delassus.simulation.inspection import Inspection
from delassus.simulation.options import ContactSelection, StepSolver
from delassus.simulation.recorder import record_run
from delassus.simulation.runner import Runner
from delassus.simulation.scenery import choose_ground, warn_of_scenery
from delassus.simulation.shapes import colliding as shapes_colliding
from delassus.simulation.shapes import shapes_of
from delassus.simulation.starting import first_activation, repaired
from delassus.simulation.state import State, reject_moment
from delassus.step.actuators.checks import check_actuators
from delassus.step.marks import Mark
from delassus.step.scene import Scene
from delassus.step.stages.kernels import simulate

_SHORTCUTS: Final = Shortcuts(
    "Simulation", "robot ground time_step substeps actuators", contacts=ContactSelection(), solver=StepSolver()
)


class Simulation(Inspection):
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
            ground: What it stands on; None for the planes of the model's file. A file that describes a world without a
                plane has no ground; a robot alone (URDF) stands on `Ground()`, level and at height zero.
            time_step: Of one step of time [s].
            substeps: Steps of time in a control period.
            actuators: What the controls drive; by default those of the model. Without any, controls are torques of all
                velocities of joints, a free base left out.
            contacts: A `ContactSelection`: what may touch, and how many rows a state has.
            solver: A method, or `StepSolver(method, tolerance)`.
            **shortcuts: touching, colliding, max_contacts, max_limits, joint_friction (contacts); method, tolerance
                (solver).
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
        meeting = shapes_colliding(robot.model, contacts.colliding) if max_contacts else ()
        if max_contacts:
            met = frozenset(shape.geometry for c in meeting for shape in (c.shape, c.other))
            warn_of_scenery(robot.model, ground is not None, met)
        ground, contacts = choose_ground(robot.model, ground, contacts)
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
        friction = friction_of(model, ground, shapes, meeting)
        self.scene = Scene(
            robot,
            max_limits=contacts.max_limits,
            joint_friction=contacts.joint_friction,
            shapes=shapes,
            collisions=meeting,
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
            u = self.check(state, control)
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
        self.check(state, None)
        given: Control = control_of(self, control, steps, state.q.shape[:-1])
        return record_run(self, state, given, whole_number("every", every), progress)
