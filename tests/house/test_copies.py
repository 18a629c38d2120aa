"""Data of the package can be pickled and copied, whatever has been asked of it before."""

import contextlib
import copy
import dataclasses
import pickle
from functools import cached_property
from inspect import getattr_static

import numpy as np
import pytest

import delassus as dl
from delassus.common.options import Options
from delassus.errors import DelassusError
from delassus.model.generators import random_tree

TREE = random_tree(4, seed=2)
BAR = dl.load("four_bar")
LOOP = dl.Mechanism(BAR)
KINDS = ["Revolute", "Prismatic", "Helical", "Universal", "Cylindrical", "Translation", "Planar", "Spherical", "Free"]

OPTIONS = {
    name: getattr(room, name)
    for room in (dl.constraints, dl.contact, dl.stepping, dl.simulation, dl.control, dl.particles)
    for name in room.__all__
    if isinstance(getattr(room, name), type) and issubclass(getattr(room, name), Options)
}


def height(kinematics, q):
    return kinematics.position("coupler_end")[2:]


def upwards(kinematics, q, v):
    return kinematics.velocity("coupler_end")[2:]


def held(*constraints):
    return dl.Mechanism(BAR, constraints)


TIP = dl.Contact("coupler_end", friction=0.3)
HOME, NONE = BAR.posture("home"), np.zeros(BAR.nv)
STEP = dl.contact_dynamics(LOOP, HOME, NONE, NONE, contacts=TIP, time_step=1e-3)

MOTION = dl.simulate_motion(LOOP, HOME, times=[0.0, 0.01], method="rk4", step=1e-2)
ON_GROUND = dl.Simulation(dl.load("pendulum"), max_contacts=0)
FALL = ON_GROUND.run(np.zeros(1), np.zeros(1), steps=2)


REACTIVE = dl.control.ReactiveControl(dl.load("pendulum"), [dl.control.FollowPosture(stiffness=1.0)])
QP_SIGNATURE = dl.QP(np.eye(1), np.ones(1), C=np.eye(1), lower=0.0)


ROPE = dl.particles.rope(segments=3)

BALANCING = dl.learning.Environments(dl.learning.find_task("cart-pole"), 2)
LEARNER = dl.learning.begin_learning(BALANCING, dl.learning.PPO(items=2))
NETWORK = dl.learning.Network(BALANCING.observations, 1)


def crossing(time, q, v):
    return q[0] - 1.0


EXAMPLES = {
    "Model": TREE,
    "Model of the package": dl.load("biped"),
    "ParametricModel": TREE.parametric("gravity", "inertia", "armature"),
    "Mechanism": LOOP,
    "Mechanism with a function": held(dl.Implicit(height, rows=1)),
    "Mechanism with a function of velocities": held(dl.Nonholonomic(upwards, rows=1)),
    "Placement": dl.Placement.from_xyz_rpy((1.0, 2.0, 3.0), (0.1, 0.2, 0.3)),
    "Inertia": dl.Inertia.of(2.0, (0.1, 0.2, 0.3), np.eye(3)),
    "Joint": TREE.joints[0],
    "Frame": TREE.frame_list[0],
    "Mimic": dl.model.Mimic(0),
    "Posture": dl.model.Posture("home", (0.0,)),
    **{kind: getattr(dl.model, kind)() for kind in KINDS},
    "BodyRows": dl.constraints.BodyRows(0, np.eye(6)),
    "JointRow": dl.constraints.JointRow(0, 1),
    "Point": dl.Point("a", "b"),
    "Weld": dl.Weld("a"),
    "Hinge": dl.Hinge("a", "b", axis="y"),
    "Distance": dl.Distance("a", "b", length=0.5),
    "Coupling": dl.Coupling("a", "b", coefficients=(0.0, 2.0)),
    "JointLock": dl.JointLock("a"),
    "Implicit": dl.Implicit(height, rows=1),
    "Kinematics": dl.Kinematics(TREE, TREE.neutral()),
    "Nonholonomic": dl.Nonholonomic(upwards, rows=1),
    "Velocities": dl.Velocities(TREE, TREE.neutral(), np.zeros(TREE.nv)),
    "Solution": dl.constrained_dynamics(LOOP, BAR.posture("home"), np.zeros(BAR.nv), np.zeros(BAR.nv)),
    "Assembly": dl.assemble(LOOP, BAR.posture("home")),
    "ParameterCheck": dl.check_parameters(TREE.parametric("inertia"), TREE.parametric("inertia").parameters()),
    "MassReport": dl.mass_report(TREE),
    "Difference": dl.compare(TREE, BAR)[0],
    "Contact": TIP,
    "ContactProblem": STEP.problem,
    "ContactSolution": STEP.solution,
    "ContactStep": STEP,
    "DelassusOperator": dl.contact.DelassusOperator(LOOP, HOME),
    "ContactForces": dl.contact_dynamics(LOOP, HOME, NONE, NONE, contacts=TIP, time_step=None, law="relaxed"),
    "ShapeContacts": dl.contact.ShapeContacts(
        ("sole",), np.zeros(1, int), np.zeros((1, 3)), np.zeros((1, 3)), np.array(False)
    ),
    "ContactExplanation": dl.contact_inverse_dynamics(LOOP, HOME, NONE, NONE, contacts=TIP, law="relaxed"),
    "Event": dl.stepping.Event(crossing),
    "Trajectory": MOTION,
    "CompliantStep": dl.stepping.compliant_step(LOOP, HOME, NONE, NONE, time_step=1e-3),
    "CompliantSystem": dl.stepping.compliant_system(LOOP, HOME, NONE, NONE, time_step=1e-3),
    "Ground": dl.Ground(),
    "RowsOnVelocities": dl.contact.RowsOnVelocities((dl.cones.Friction(),), 6),
    "State": ON_GROUND.start(np.zeros(1), np.zeros(1)),
    "Trajectory of a simulation": dataclasses.replace(FALL, simulation=None),
    "ContactRecord": FALL.contacts,
    "Relaxation": dl.contact.Relaxation(),
    "Particles": ROPE,
    "Elements": ROPE.elements[0],
    "ElementKind": dl.particles.stretch,
    "Bricks": dl.particles.tower(2, 1).bricks,
    "Plane": dl.particles.Plane(),
    "Sphere": dl.particles.Sphere((0.0, 0.0, 0.0), 1.0),
    "Box": dl.particles.Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "Motion": dl.particles.Motion(np.array([0]), np.zeros(3)),
    "ParticleState": dl.particles.initial_state(ROPE),
    "ParticleStep": dl.particles.particle_step(ROPE, dl.particles.initial_state(ROPE), time_step=1e-2),
    "Rest": dl.particles.at_rest(ROPE),
    "Grip": dl.particles.Grip("hand", 0),
    "ParticleTrajectory": dl.particles.simulate_particles(ROPE, steps=2),
    "Softness": dl.contact.Softness(),
    **{name: kind() for name, kind in OPTIONS.items()},
    "ActuatedMechanism": dl.control.ActuatedMechanism(LOOP, ["crank*"]),
    "InverseDynamics": dl.inverse_dynamics(LOOP, HOME, NONE, NONE, actuation=["crank*"]),
    "FrameTask": dl.control.FrameTask("tool", rows="x y"),
    "CenterOfMassTask": dl.control.CenterOfMassTask(priority=1),
    "CompiledPolicy": dl.simulation.CompiledPolicy(crossing, memory={"clock": 0.0}),
    "Delayed": dl.simulation.Delayed(None, 2),
    "Push": dl.simulation.Push({"trunk": (0.0, 50.0, 0.0, 0.0, 0.0, 0.0)}),
    "Sensor": dl.simulation.Sensor("gyro", "trunk"),
    "MomentumTask": dl.control.MomentumTask(weight=2.0),
    "PostureTask": dl.control.PostureTask("crank*"),
    "Task": dl.control.Task(),
    "Tasks": dl.control.Tasks(LOOP, dl.control.PostureTask("crank*")),
    "Linearization": dl.control.linearize(LOOP, HOME, actuation=["crank*"]),
    "Regulator": dl.control.lqr(dl.control.linearize(LOOP, HOME, actuation=["crank*"])),
    "Equilibrium": dl.control.equilibrium(LOOP, HOME, actuation=["crank*"]),
    "ReactiveControl": REACTIVE,
    "Reaction": REACTIVE(np.zeros(1), np.zeros(1), REACTIVE.reference(np.zeros(1))),
    "Unilateral": dl.constraints.at_most(dl.Distance("foot", length=1.0)),
    "Support": dl.control.Support("foot", size=(0.2, 0.1)),
    "FollowCenterOfMass": dl.control.FollowCenterOfMass(),
    "FollowForce": dl.control.FollowForce(support="foot"),
    "FollowFrame": dl.control.FollowFrame(frame="hand"),
    "FollowMomentum": dl.control.FollowMomentum(),
    "Nominal": dl.control.Nominal(force=np.eye(3)),
    "FollowPosture": dl.control.FollowPosture(),
    "Plan": dl.control.Plan(np.zeros((2, 1)), np.zeros((5, 1)), cost=1.0),
    "QP": QP_SIGNATURE,
    "QPSolution": QP_SIGNATURE.solve(),
    "Budget": dl.learning.Budget(),
    "EnvironmentState": LEARNER.environment,
    "Learner": LEARNER,
    "Network": NETWORK,
    "Normalizer": LEARNER.normalizer,
    "PPO": dl.learning.PPO(),
    "PPO's architecture": dl.learning.PPO().networks,
    "PPO's objective": dl.learning.PPO().objective,
    "Policy": dl.learning.Policy("cart-pole", "", NETWORK, LEARNER.theta, LEARNER.normalizer),
}


def touch(x):
    """Ask for all that an object computes without arguments."""
    for name in dir(type(x)):
        if isinstance(getattr_static(type(x), name), property | cached_property):
            with contextlib.suppress(DelassusError):
                getattr(x, name)


def same(a, b):
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return np.array_equal(a, b)


def pickled(x):
    return pickle.loads(pickle.dumps(x))


@pytest.mark.parametrize("duplicate", [pickled, copy.copy, copy.deepcopy], ids=lambda duplicate: duplicate.__name__)
@pytest.mark.parametrize("case", EXAMPLES)
def test_data_can_be_copied_after_all_was_asked_of_it(case, duplicate):
    touch(EXAMPLES[case])
    assert same(duplicate(EXAMPLES[case]), EXAMPLES[case])


def test_every_public_data_class_has_an_example():
    rooms = [getattr(dl, room) for room in (*dl.NAMESPACES, *dl.OWN_NAMES)]
    found = [getattr(room, name) for room in rooms for name in room.__all__]
    public = {x for x in found if dataclasses.is_dataclass(x) and isinstance(x, type)} - {
        dl.constraints.Constraint,
        dl.model.JointMotion,
        dl.learning.LearningTask,
        dl.learning.Moment,  # lives in a trace
    }
    assert public <= {type(x) for x in EXAMPLES.values()}


@pytest.mark.parametrize("slices", [LOOP.slices, TREE.parametric("gravity").slices], ids=["rows", "parameters"])
def test_slices_cannot_be_changed(slices):
    with pytest.raises(TypeError):
        slices["other"] = slice(0)
