"""Whatever users give by mistake, they are told in a sentence of this package: no error of Python or NumPy gets out."""

import traceback
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import delassus as dl
from bodies import BALL
from delassus.contact import Relaxation, Softness, contact_kinematics, primal_impulses
from delassus.model import Frame, Helical, Inertia, Joint, Model, Placement, Posture, Revolute
from delassus.simulation import motors, position_servos, velocity_servos, with_lag

SOURCE = str(Path(dl.__file__).parent)

STRANGE = [
    None, "x", "", b"x", "\0", np.nan, np.inf, 1e308, -1, 0, 1.5, True, 1j, 2**70, 10**400, [10**400], [], [[]],
    [1, [2]], {}, {"a": 1}, object(), np.zeros(0), np.zeros((0, 3)), np.zeros((2, 3, 4)), np.full(3, np.nan),
    np.array("x"), np.array([None]), np.zeros(3, complex), np.array(["a", "b"]), slice(None), ...,
]  # fmt: skip

CART = dl.load("cart_pole")
SIM = dl.Simulation(CART, max_contacts=0)
BODY = replace(BALL, frame_list=(Frame("base", 0),))
TOUCH = dl.Contact("base", radius=0.1, friction=0.5)
Q, Z, Q0, V0 = np.array([0.0, 0.1]), np.zeros(2), np.array([0, 0, 0.1, 0, 0, 0, 1.0]), np.zeros(6)
LOG = dl.Simulation(BODY).run([0, 0, 0.1, 0, 0, 0, 1], steps=3)
BATCH = SIM.run(np.tile(Q, (2, 3, 1)), steps=3)
PROBLEM = dl.ContactProblem(np.eye(3), -np.ones(3), friction=0.5)
QP_SIGNATURE = dl.control.QP(np.eye(2), np.ones(2), C=np.eye(2), lower=-1.0, upper=1.0)
PLANNER = dl.control.Sampling(SIM, lambda time, q, v, u: q[..., 0], 5, noise=1.0, samples=8)
LINEAR = dl.control.linearize(CART, Q)


def joint(**numbers):
    return Model("m", (Joint("j", Revolute(), **{"inertia": Inertia(mass=1.0)} | numbers),))


def contact(frame="base", **numbers):
    return contact_kinematics(BODY, Q0, contacts=[dl.Contact(frame, **numbers)])


def model(**parts):
    return replace(CART, **parts)


CALLS = {
    "ground": (dl.Ground, {"friction": 0.5, "restitution": 0.1, "normal": (0, 0, 1), "height": 0.1, "rolling": 0.1}),
    "heights": (dl.Ground, {"heights": np.zeros((3, 3)), "spacing": 0.1, "origin": (0, 0)}),
    "simulation": (
        dl.Simulation,
        {"robot": CART, "ground": None, "time_step": 1e-3, "substeps": 1, "actuators": None, "touching": "*"}
        | {"colliding": (), "max_contacts": 0, "max_limits": 4, "joint_friction": True, "tolerance": 1e-8}
        | {"tracked": ()},
    ),
    "start": (SIM.start, {"q0": Q, "v0": Q, "time": 0.0, "seed": 0, "repair": True}),
    "step": (SIM.step, {"state": SIM.start(Q), "control": Z}),
    "run": (SIM.run, {"q0": Q, "v0": Q, "control": Z, "steps": 2, "every": 1, "repair": True, "progress": None}),
    "servos": (position_servos, {"model": CART, "stiffness": 1.0, "damping": 1.0, "joints": "*"}),
    "dampers": (velocity_servos, {"model": CART, "damping": 1.0, "joints": "*"}),
    "lag": (with_lag, {"actuators": motors(CART), "time_constant": 0.1}),
    "motors": (motors, {"model": CART, "joints": "*"}),
    "at": (LOG.at, {"times": 0.001}),
    "normal force": (LOG.normal_force, {"shape": "sphere"}),
    "part": (lambda times, items: BATCH[times, items], {"times": slice(None), "items": 0}),
    "film": (lambda **given: BATCH.save_html("/dev/null", **given), {"items": [0], "frames_per_second": 50.0}),
    "load": (dl.Trajectory.load, {"path": "none.npz", "of": None}),
    "trajectory": (
        dl.Trajectory,
        {"time": LOG.time, "q": LOG.q, "v": LOG.v, "status": None, "ended": None, "steps": None, "residual": None}
        | {"events": {}, "mechanism": None, "contacts": None, "measures": {}, "parameters": None},
    ),
    "event": (dl.stepping.Event, {"function": lambda time, q, v: q[0], "name": "x", "direction": 0}),
    "motion": (
        dl.simulate_motion,
        {"mechanism": CART, "q": Q, "v": Q, "tau": Z, "times": [0.0, 0.01], "method": "rk4", "step": 0.01}
        | {"tolerance": 1e-8, "start": "project", "events": (), "max_steps": 100, "parameters": None},
    ),
    "planner": (
        dl.control.Sampling,
        {"sim": SIM, "cost": lambda *x: 0.0, "horizon": 5, "samples": 8, "method": "mppi", "knots": 3, "noise": 1.0}
        | {"spline": "linear", "narrowest": 1.0, "limits": None, "temperature": 0.1, "elites": 0.1, "iterations": 1},
    ),
    "knots": (PLANNER.controls, {"knots": np.zeros((5, 2))}),
    "contact": (contact, {"corners": ((0, 0, 0),), "radius": 0.1, "normal": (0, 0, 1), "height": 0.0, "name": ""}),
    "friction": (contact, {"frame": "base", "friction": 0.5, "torsional": 0.1, "rolling": 0.1, "restitution": 0.1}),
    "relaxation": (Relaxation, {"solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0), "weight": None}),
    "softness": (Softness, {"stiffness": 1e4, "damping": 1e2, "slip_speed": 1e-2}),
    "problem": (dl.ContactProblem, {"G": np.eye(3), "g": np.ones(3), "cones": None, "friction": 0.5, "check": True}),
    "solve": (PROBLEM.solve, {"law": "ncp", "method": "auto", "tolerance": 1e-8, "iterations": 20, "start": None}),
    "primal": (primal_impulses, {"cones": (), "M": np.eye(3), "J": np.eye(3), "free_velocity": np.ones(3)}),
    "point": (lambda **x: dl.Mechanism(CART, dl.Point("world", **x)), {"name": "", "position": Z, "rows": (0,)}),
    "mechanism": (dl.Mechanism, {"model": CART, "constraints": (), "step": 1e-3}),
    "qp": (
        dl.control.QP,
        {"H": np.eye(2), "g": np.ones(2), "C": np.eye(2), "lower": -1.0, "cones": (), "names": (), "unknowns": ()},
    ),
    "solve program": (QP_SIGNATURE.solve, {"method": "proximal", "start": None, "tolerance": 1e-9, "iterations": 9}),
    "row_violation": (QP_SIGNATURE.row_violation, {"x": Z}),
    "linearize": (dl.control.linearize, {"mechanism": CART, "q": Q, "v": Z, "tau": Z, "time_step": None}),
    "coordinates": (LINEAR.coordinates, {"q": Q, "v": Z}),
    "state": (LINEAR.state, {"x": np.zeros(4)}),
    "follow": (dl.control.FollowFrame, {"name": "a", "weight": 1.0, "stiffness": 1.0, "frame": "x", "rows": "all"}),
    "support": (dl.control.Support, {"frame": "x", "friction": 0.7, "size": None, "normal": (0, 0, 1), "gain": 1.0}),
    "frame task": (dl.control.FrameTask, {"frame": "x", "priority": 0, "weight": 1.0, "rows": ("x",)}),
    "posture task": (dl.control.PostureTask, {"joints": "*"}),
    "inertia": (Inertia.of, {"mass": 1.0, "com": (0, 0, 0), "rotational": np.eye(3)}),
    "body": (lambda **x: joint(inertia=Inertia(**x)), {"mass": 1.0, "com": (0, 0, 0), "rotational": np.eye(3)}),
    "configurations": (lambda size: CART.random_configuration(np.random.default_rng(0), size), {"size": 2}),
    "helix": (Helical, {"axis": (0, 0, 1), "pitch": 0.1}),
    "joint": (joint, {"lower": (-1.0,), "upper": (1.0,), "damping": (0.1,), "parent": -1, "mimic": None}),
    "frame": (lambda **x: model(frame_list=(Frame(**x),)), {"name": "f", "joint": 0, "placement": Placement()}),
    "posture": (lambda q: model(postures=(Posture("home", q),)), {"q": (0.0, 0.0)}),
    "model": (model, {"joints": CART.joints, "frame_list": (), "gravity": (0, 0, -9.81), "postures": ()}),
    "robot": (dl.load, {"source": "pendulum", "root": "fixed", "mimic": "reduce", "format": None}),
}  # fmt: skip


def is_foreign(error):
    """Whether an error is neither of this package nor raised by it with a sentence."""
    if isinstance(error, dl.DelassusError):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    return not (last.filename.startswith(SOURCE) and (last.line or "").startswith("raise"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_strange_arguments_are_told_in_sentences(name):
    function, arguments = CALLS[name]
    found = []
    for argument in arguments:
        for value in STRANGE:
            try:
                function(**arguments | {argument: value})
            except Exception as error:
                if is_foreign(error) and not _of_numpy_for_kernels(error):
                    found.append(f"{argument}={value!r}"[:60] + f": {type(error).__name__}: {error}"[:120])
    assert not found, "\n".join(found)


def _of_numpy_for_kernels(error):
    """Arrays that a kernel cannot take are told by NumPy, as for any of its functions."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return "compiler/host" in last.filename and isinstance(error, (TypeError, ValueError))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [dl.contact_dynamics, dl.contact_inverse_dynamics, dl.stepping.compliant_step])
def test_a_quaternion_of_zeros_is_no_configuration(function):
    q = np.array([Q0, np.where(np.arange(7) > 2, 0.0, Q0), 2.0 * Q0 - [0, 0, 0.1, 0, 0, 0, 0]])
    status = function(BODY, q, np.zeros((3, 6)), np.zeros((3, 6)), contacts=[TOUCH], time_step=1e-3).status
    assert status.tolist() == [0, int(dl.Status.NOT_FINITE), 0]


def test_drawings_of_strange_items_and_times_are_told():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    for value in STRANGE:
        for draw in (
            LOG.plot,
            lambda x: BATCH.plot("q", item=x),
            lambda x: BATCH.plot("q", ax=x),
            BATCH.draw,
            lambda x: BATCH.draw(1, item=x),
            lambda x: BATCH.draw(1, turn=x),
        ):
            try:
                draw(value)
            except Exception as error:
                assert not is_foreign(error), (value, error)
            matplotlib.pyplot.close("all")
