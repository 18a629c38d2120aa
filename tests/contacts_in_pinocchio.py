"""Robots held by contacts, here and in Pinocchio: the same equations, signs, frames and proximal parameter."""

from functools import cache
from typing import Any

import pinocchio as pin

import delassus as dl
from in_pinocchio import rigid_contacts
from mechanisms import CORNERS, robot
from robots import file, pinocchio_model

FEET = {
    "ur5_robot.urdf": ["tool0"],
    "solo12.urdf": ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"],
    "talos_full_v2.urdf": ["left_sole_link", "right_sole_link"],
}
CASES = [
    ("ur5_robot.urdf", "points"),
    ("ur5_robot.urdf", "welds"),
    ("solo12.urdf", "points"),
    ("talos_full_v2.urdf", "welds"),
    ("talos_full_v2.urdf", "corners"),
]


@cache
def mechanism_of(name: str, kind: str) -> dl.Mechanism:
    model = robot(name, "fixed" if name.startswith("ur5") else "free")
    turned = dl.Placement.from_xyz_rpy((0.02, -0.03, 0.01), (0.4, 0.2, -0.3))
    make: dict[str, Any] = {
        "points": lambda foot: [dl.Point(foot, placement=turned)],
        "welds": lambda foot: [dl.Weld(foot, placement=turned)],
        "corners": lambda foot: [dl.Point(foot, placement=corner) for corner in CORNERS],
    }
    return dl.Mechanism(model, [c for foot in FEET[name] for c in make[kind](foot)])


def constraint_dynamics(mechanism, theirs, q, v, tau, mu, iterations):
    models, datas = rigid_contacts(mechanism, theirs)
    data = theirs.createData()
    pin.initConstraintDynamics(theirs, data, models, datas)
    prox = pin.ProximalSettings(0.0, 0.0, mu, iterations)
    a = pin.constraintDynamics(theirs, data, dl.q_to_pinocchio(mechanism.model, q), v, tau, models, datas, prox)
    return a.copy(), data.lambda_c.copy()


def lcaba(mechanism, theirs, q, v, tau, mu, iterations):
    models, datas = rigid_contacts(mechanism, theirs)
    data = theirs.createData()
    pin.computeJointMinimalOrdering(theirs, data, models)
    prox = pin.ProximalSettings(0.0, 0.0, mu, iterations)
    return pin.lcaba(theirs, data, dl.q_to_pinocchio(mechanism.model, q), v, tau, models, datas, prox).copy()


def pinocchio(name: str) -> pin.Model:
    return pinocchio_model(file(name), "fixed" if name.startswith("ur5") else "free")
