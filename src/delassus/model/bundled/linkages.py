"""Pendulums and planar linkages in the x-z plane; gravity acts along -z and all joint axes are along y."""

from __future__ import annotations

import math

from delassus.model.bundled.build import Assembly, Prismatic, Revolute, X, Y, ball, box, rod
from delassus.model.model import Model


def pendulum(length: float = 0.5) -> Model:
    """A bob of 1 kg on a light rod; hangs down at q = 0."""
    a = Assembly("pendulum")
    a.body("rod", Revolute(Y), None, parts=[rod((0, 0, 0), (0, 0, -length), 0.1), ball(0.05, 1.0, (0, 0, -length))])
    a.frame("tip", "rod", (0, 0, -length))
    return a.model()


def double_pendulum() -> Model:
    """Two rods of 0.5 m, 1 kg each, with bobs."""
    a = Assembly("double_pendulum")
    parts = [rod((0, 0, 0), (0, 0, -0.5), 0.2), ball(0.04, 0.8, (0, 0, -0.5))]
    a.body("upper", Revolute(Y), None, parts=parts)
    a.body("lower", Revolute(Y), "upper", (0, 0, -0.5), parts)
    a.frame("tip", "lower", (0, 0, -0.5))
    return a.model()


def cart_pole() -> Model:
    """A cart on a rail along x, and a pole that stands upright at q = 0."""
    a = Assembly("cart_pole")
    a.body("cart", Prismatic(X), None, parts=[box((0.3, 0.2, 0.15), 1.0)], limits=(-2.0, 2.0))
    a.body("pole", Revolute(Y), "cart", parts=[rod((0, 0, 0), (0, 0, 0.6), 0.1), ball(0.03, 0.1, (0, 0, 0.6))])
    a.frame("tip", "pole", (0, 0, 0.6))
    return a.model()


def slider_crank(crank: float = 0.1, connecting_rod: float = 0.3) -> Model:
    """A crank drives a piston along x through a connecting rod, whose end is tied to the piston's pin."""
    a = Assembly("slider_crank")
    a.body("crank", Revolute(Y), None, parts=[rod((0, 0, 0), (crank, 0, 0), 0.3), ball(0.05, 1.0)])
    a.body("rod", Revolute(Y), "crank", (crank, 0, 0), [rod((0, 0, 0), (connecting_rod, 0, 0), 0.2)])
    a.body("piston", Prismatic(X), None, (crank + connecting_rod, 0, 0), [box((0.06, 0.06, 0.06), 0.4)])
    a.frame("rod_end", "rod", (connecting_rod, 0, 0))
    a.frame("pin", "piston")
    a.connect("pin_joint", "rod_end", "pin")
    return a.model((0.0, 0.0, 0.0))


def four_bar(ground: float = 0.4, crank: float = 0.15, coupler: float = 0.35, rocker: float = 0.3) -> Model:
    """A crank and a rocker on the ground, joined by a coupler; closed in its posture "home", crank upright."""
    a = Assembly("four_bar")
    a.body("crank", Revolute(Y), None, parts=[rod((0, 0, 0), (crank, 0, 0), 0.2)])
    a.body("coupler", Revolute(Y), "crank", (crank, 0, 0), [rod((0, 0, 0), (coupler, 0, 0), 0.3)])
    a.body("rocker", Revolute(Y), None, (ground, 0, 0), [rod((0, 0, 0), (rocker, 0, 0), 0.3)])
    a.frame("coupler_end", "coupler", (coupler, 0, 0))
    a.frame("rocker_end", "rocker", (rocker, 0, 0))
    a.connect("closure", "coupler_end", "rocker_end")
    elbow = (0.0, crank)
    meet = _circles(elbow, coupler, (ground, 0.0), rocker)
    turn = _angle(elbow, meet)
    return a.model((-math.pi / 2, math.pi / 2 - turn, -_angle((ground, 0.0), meet)))


def five_bar(ground: float = 0.3, proximal: float = 0.25, distal: float = 0.35) -> Model:
    """Two driven links on the ground carry two more, which meet at the tool; closed in its posture "home"."""
    a = Assembly("five_bar")
    home = []
    tool = (ground / 2, 0.45)
    for side, x in (("left", 0.0), ("right", ground)):
        a.body(f"{side}_proximal", Revolute(Y), None, (x, 0, 0), [rod((0, 0, 0), (proximal, 0, 0), 0.3)])
        a.body(
            f"{side}_distal", Revolute(Y), f"{side}_proximal", (proximal, 0, 0), [rod((0, 0, 0), (distal, 0, 0), 0.2)]
        )
        a.frame(f"{side}_end", f"{side}_distal", (distal, 0, 0))
        first, second = ((x, 0.0), proximal), (tool, distal)
        elbow = _circles(*(first + second if side == "left" else second + first))
        shoulder = _angle((x, 0.0), elbow)
        home += [-shoulder, shoulder - _angle(elbow, tool)]
    a.connect("tool", "left_end", "right_end")
    return a.model(home)


def _angle(start: tuple[float, float], end: tuple[float, float]) -> float:
    """The direction from one point (x, z) to another, counted from x towards z."""
    return math.atan2(end[1] - start[1], end[0] - start[0])


def _circles(a: tuple[float, float], r: float, b: tuple[float, float], s: float) -> tuple[float, float]:
    """Where two circles meet, on the left of the way from a to b."""
    dx, dz = b[0] - a[0], b[1] - a[1]
    d = math.hypot(dx, dz)
    distance = (r**2 - s**2 + d**2) / (2 * d)
    offset = math.sqrt(r**2 - distance**2)
    return a[0] + (distance * dx - offset * dz) / d, a[1] + (distance * dz + offset * dx) / d
