"""Mechanisms of any rank: random trees with contacts and locks, and robots on their feet; rows are often redundant."""

from functools import cache

import pytest
from hypothesis import strategies as st

import delassus as dl
from delassus.model.generators import random_tree
from mechanisms import CORNERS, Dense, dense, robot, state


@st.composite
def mechanisms(draw):
    """A tree of up to 12 links with up to 6 constraints, some of them repeated, often redundant or contradictory."""
    n = draw(st.integers(1, 12))
    tree = random_tree(n, seed=draw(st.integers(0, 10_000)))
    number = st.floats(-2.0, 2.0).map(lambda x: round(x, 3))
    constraints = []
    for _ in range(draw(st.integers(1, 4))):
        link, wanted = draw(st.integers(0, n - 1)), draw(number)
        kind = draw(st.sampled_from(["point", "weld", "lock"]))
        if kind == "lock":
            constraints.append(dl.JointLock(f"joint{link}", acceleration=wanted))
            continue
        most = 3 if kind == "point" else 6
        rows = draw(st.lists(st.integers(0, most - 1), min_size=1, max_size=most, unique=True))
        placement = dl.Placement.from_xyz_rpy([draw(number) / 5 for _ in range(3)], [draw(number) for _ in range(3)])
        make = dl.Point if kind == "point" else dl.Weld
        gain = draw(st.sampled_from([0.0, 5.0]))
        constraints.append(make(f"link{link}", rows=rows, placement=placement, acceleration=wanted, velocity_gain=gain))
    constraints += constraints[: draw(st.integers(0, 2))]
    return dl.Mechanism(tree, constraints)


def clear(system: Dense) -> bool:
    """Whether something moves the rows, and their rank is beyond doubt."""
    return system.scale > 1e-6 and system.is_clear()


def feet(model) -> list[str]:
    return [f.name for f in model.frames("*_FOOT") if "ADAPTER" not in f.name]


def quadruped(file: str, kind: str) -> dl.Mechanism:
    model = robot(file)
    points = [dl.Point(foot) for foot in feet(model)]
    pulled = [
        dl.Point(foot, position=(0.1 * k, 0.0, 0.0), position_gain=100.0, velocity_gain=20.0)
        for foot in feet(model)
        for k in range(2)
    ]
    sets = {"feet": points, "thrice": points * 3, "welds": [dl.Weld(f) for f in feet(model)], "contradiction": pulled}
    return dl.Mechanism(model, sets[kind])


def humanoid(file: str, kind: str) -> dl.Mechanism:
    model = robot(file)
    names = {"talos_full_v2.urdf": ("left_sole_link", "right_sole_link", "gripper_left_base_link")}
    left, right, hand = names.get(file, ("l_sole", "r_sole", "l_hand"))
    corners = [dl.Point(foot, placement=corner) for foot in (left, right) for corner in CORNERS]
    pulled = [
        dl.Point(foot, placement=corner, position=(0, 0, 0.1 * k), position_gain=25.0, velocity_gain=10.0)
        for foot in (left, right)
        for k, corner in enumerate(CORNERS)
    ]
    sets = {
        "feet": [dl.Weld(left), dl.Weld(right)],
        "hand": [dl.Weld(left), dl.Weld(right), dl.Weld(hand)],
        "corners": corners,
        "contradiction": pulled,
    }
    return dl.Mechanism(model, sets[kind])


QUADRUPEDS = [
    (f, k) for f in ("solo.urdf", "solo12.urdf", "anymal.urdf") for k in ("feet", "thrice", "welds", "contradiction")
]
HUMANOIDS = [
    (f, k)
    for f in ("icub.urdf", "icub_reduced.urdf", "talos_full_v2.urdf")
    for k in ("feet", "hand", "corners", "contradiction")
]


# The legs and arms of a robot are stretched in its neutral configuration, where Jacobians lose rank. There the mass
# matrix of icub.urdf is singular itself: a joint of its head turns a body without inertia about that axis.
CASES = [
    (*case, where)
    for case in QUADRUPEDS + HUMANOIDS
    for where in ("random", "stretched")
    if (case[0], where) != ("icub.urdf", "stretched")
]


REPRESENTATIVE = ("solo12.urdf", "talos_full_v2.urdf")
"""A quadruped and a humanoid with all kinds of rows and in both poses; other robots repeat these."""

MARKED_CASES = [case if case[0] in REPRESENTATIVE else pytest.param(case, marks=pytest.mark.slow) for case in CASES]


@cache
def mechanism_of(file: str, kind: str) -> dl.Mechanism:
    return quadruped(file, kind) if (file, kind) in QUADRUPEDS else humanoid(file, kind)


@cache
def problem(file: str, kind: str, where: str):
    mechanism = mechanism_of(file, kind)
    q, v, tau = state(mechanism.model, 3)
    q = mechanism.model.neutral() if where == "stretched" else q
    return mechanism, q, v, tau, dense(mechanism, q, v, tau)
