"""Robots that hold particles: what both feel, contacts, blends, grips that contradict each other."""

import numpy as np
import pytest

import delassus as dl
import delassus.particles as P
from delassus.model.bundled.build import Assembly, Prismatic, ball
from delassus.model.joints import Free, Translation
from refusals import refuses

HOOK = [P.Grip("hook", 0)]


def robot(joint, mass=2.0, gravity=True):
    made = Assembly("hand")
    made.body("hand", joint, None, (0, 0, 0), [ball(0.1, mass)])
    for name, place in (("hook", (0, 0, 0)), ("thumb", (0, 0, 0.1))):
        made.frame(name, "hand", dl.Placement.of(p=place))
    model = made.model()
    return model if gravity else model.with_gravity((0, 0, 0))


def pulled(model, stepper, tau, steps, grips=HOOK, state=None, q=None, v=None):
    """After some steps of a robot that starts at rest, the last step; and all of them."""
    q = np.zeros(model.nq) if q is None else q
    v = np.zeros(model.nv) if v is None else v
    state, all_of_them = P.initial_state(stepper.particles) if state is None else state, []
    for _ in range(steps):
        made = P.coupled_step(model, q, v, tau, stepper, state, grips)
        q, v, state = made.q, made.v, made.particles.state
        all_of_them.append(made)
    return made, all_of_them


@pytest.mark.parametrize("options", [{"stabilization": "post"}, {"stabilization": "pre"}, {"alpha": 0.5, "beta": 0.5}])
def test_a_robot_pulls_a_chain_whatever_the_scheme_is(options):
    chain = P.chain((0, 0, 0), (-1, 0, 0), 5, pinned="none", gravity=0.0)
    made, _ = pulled(robot(Prismatic((1, 0, 0))), P.Stepper(chain, 1e-2, **options), np.array([6.0]), 20)
    whole = 2.0 + chain.masses.sum()
    assert made.v[0] == pytest.approx(6.0 / whole * 0.2, rel=1e-6)
    assert made.particles.status is dl.Status.CONVERGED and made.apart < 1e-9
    assert np.allclose(made.particles.state.x[0, 0], made.q[0], atol=1e-9)


def test_a_hand_that_presses_a_rope_onto_the_ground_feels_the_ground():
    """The force on the ground is that of the hand and all weights; no particle is below it."""
    rope = P.rope((0, 0, 0), (0.5, 0, 0), 5, pinned="none", stiffness=1e3, obstacles=[P.Plane()], friction=0.3)
    stepper = P.Stepper(rope, 1e-2, contact_tolerance=1e-8)
    made, way = pulled(robot(Translation()), stepper, np.array([0.0, 0.0, -20.0]), 10)
    assert min(step.particles.state.x[:, 2].min() for step in way) > -1e-6
    weights = (2.0 + rope.masses.sum()) * 9.81 + 20.0
    assert made.particles.state.contact[:, 2].sum() / 1e-2 == pytest.approx(weights, rel=1e-4)
    assert made.force[0, 2] == pytest.approx(2.0 * 9.81 + 20.0, rel=1e-4)


def test_a_hand_lifts_a_soft_block_off_the_ground():
    """It holds the corners of the top; at rest in the air it carries the weight, and the block hangs longer."""
    soft = P.block((0.1, 0.1, 0.1), (2, 2, 2), center=(0, 0, 0.05), young=2e4, obstacles=[P.Plane()], drag=0.05)
    corners = np.flatnonzero((soft.positions[:, 2] > 0.099) & (np.abs(soft.positions[:, :2]) > 0.049).all(1))
    made = Assembly("gantry")
    made.body("hand", Translation(), None, (0, 0, 0.1), [ball(0.1, 2.0)])
    for k in corners:
        made.frame(f"finger {k}", "hand", dl.Placement.of(p=soft.positions[k] - [0, 0, 0.1]))
    model, stepper, state = made.model(), P.Stepper(soft, 1e-2), P.initial_state(soft)
    grips, weight = [P.Grip(f"finger {k}", int(k)) for k in corners], (2.0 + soft.masses.sum()) * 9.81
    q, v = np.zeros(3), np.zeros(3)
    for _ in range(120):  # a servo that lifts it by 5 cm
        tau = np.array([0, 0, weight]) + 400.0 * (np.array([0, 0, 0.05]) - q) - 60.0 * v
        held = P.coupled_step(model, q, v, tau, stepper, state, grips)
        q, v, state = held.q, held.v, held.particles.state
    assert held.particles.status is dl.Status.CONVERGED and state.x[:, 2].min() > 0.02
    assert held.force.sum(0)[2] == pytest.approx(-soft.masses.sum() * 9.81, rel=0.05)
    assert np.ptp(state.x[:, 2]) > 0.1 and held.apart < 1e-6


def test_a_robot_that_flies_and_spins_shares_its_momentum():
    model = robot(Free(), gravity=False)
    one = P.Particles([[0.0, 0.0, 0.1]], 0.5, gravity=0.0)
    v = np.array([1.0, 0.0, 0.0, 0.0, 6.0, 0.0])
    state = P.initial_state(one, v=[[1.6, 0.0, 0.0]])
    made, way = pulled(model, P.Stepper(one, 1e-2), np.zeros(6), 50, [P.Grip("thumb", 0)], state, model.neutral(), v)
    turns, velocity = dl.forward_kinematics(model, made.q)[0][-1], made.v[:3]
    total = 2.0 * turns @ velocity + 0.5 * made.particles.state.v[0]
    assert np.allclose(total, [2.0 * 1.0 + 0.5 * 1.6, 0.0, 0.0], atol=1e-9)
    assert max(step.apart for step in way) < 5e-3


@pytest.mark.parametrize(
    "grips",
    [
        [P.Grip("hook", 0), P.Grip("thumb", 0)],
        [P.Grip("hook", 0), P.Grip("hook", 1)],
    ],
)
def test_grips_that_contradict_each_other_are_told_and_give_numbers(grips):
    chain = P.chain((0, 0, 0), (-1, 0, 0), 5, pinned="none", gravity=0.0)
    made, _ = pulled(robot(Prismatic((1, 0, 0))), P.Stepper(chain, 1e-2), np.array([6.0]), 1, grips)
    assert made.particles.status is dl.Status.ITERATIONS and made.particles.residual > 1e-6
    assert np.isfinite(made.particles.state.x).all() and np.isfinite(made.v).all()


def test_the_same_grip_twice_is_one_grip():
    chain = P.chain((0, 0, 0), (-1, 0, 0), 5, pinned="none", gravity=0.0)
    model, stepper = robot(Prismatic((1, 0, 0))), P.Stepper(chain, 1e-2)
    once, twice = (pulled(model, stepper, np.array([6.0]), 5, grips)[0] for grips in (HOOK, HOOK * 2))
    assert np.allclose(once.v, twice.v, rtol=1e-9) and np.allclose(once.force.sum(0), twice.force.sum(0), rtol=1e-6)


BAD = {
    ("nothing-to-do",): ({"grips": []}, ("nothing-to-do",)),
    "a particle that is not there": ({"grips": [P.Grip("hook", 9)]}, ("index-out-of-range", "9")),
    "half a particle": ({"grips": [P.Grip("hook", 0.5)]}, ("index-out-of-range", "0.5")),
    "a particle that is pinned": ({"grips": [P.Grip("hook", 5)]}, ("conflicting-arguments", "5")),
    "a frame that is not there": ({"grips": [P.Grip("hok", 0)]}, ("unknown-frame", "hook")),
    "a batch": ({"q": np.zeros((2, 1)), "v": np.zeros((2, 1))}, ("wrong-shape",)),
    "limits": ({"limits": True}, ("wrong-shape",)),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_coupled_is_told_in_a_sentence(case):
    changed, message = BAD[case]
    chain = P.chain((0, 0, 0), (-1, 0, 0), 5, pinned="end")
    made = Assembly("hand")
    made.body("hand", Prismatic((1, 0, 0)), None, (0, 0, 0), [ball(0.1, 2.0)], limits=(-1.0, 1.0))
    made.frame("hook", "hand", dl.Placement.of(p=(0, 0, 0)))
    asked = {"q": np.zeros(1), "v": np.zeros(1), "grips": HOOK} | changed
    q, v, grips = asked.pop("q"), asked.pop("v"), asked.pop("grips")
    with refuses(*message):
        P.coupled_step(made.model(), q, v, np.zeros(1), P.Stepper(chain, 1e-2), P.initial_state(chain), grips, **asked)
