"""Legged robots: a quadruped, a biped with knees driven by closed loops, a humanoid. x is forward, y left."""

from __future__ import annotations

from delassus.model.bundled.build import Assembly, Free, Revolute, X, Y, Z, ball, box, rod
from delassus.model.model import Model

_UPRIGHT = [0.0, 0.0, 0.0, 1.0]
_LEFT_RIGHT = (("left", 1.0), ("right", -1.0))


def quadruped() -> Model:
    """A trunk of 6 kg on four legs of three joints: 18 velocities. Stands in its posture "home", feet on z = 0."""
    a = Assembly("quadruped")
    a.body("trunk", Free(), None, parts=[box((0.4, 0.2, 0.1), 6.0)])
    for end, x in (("front", 0.2), ("hind", -0.2)):
        for side, y in _LEFT_RIGHT:
            leg = f"{end}_{side}"
            a.body(
                f"{leg}_hip",
                Revolute(X),
                "trunk",
                (x, 0.06 * y, 0),
                [ball(0.045, 0.6, (0, 0.03 * y, 0))],
                (-0.8, 0.8),
                24.0,
            )
            thigh = [rod((0, 0, 0), (0, 0, -0.2), 0.7, 0.02)]
            a.body(f"{leg}_thigh", Revolute(Y), f"{leg}_hip", (0, 0.08 * y, 0), thigh, (-1.5, 3.0), 24.0)
            calf = [rod((0, 0, 0), (0, 0, -0.2), 0.15, 0.012), ball(0.02, 0.05, (0, 0, -0.2))]
            a.body(f"{leg}_calf", Revolute(Y), f"{leg}_thigh", (0, 0, -0.2), calf, (-2.7, -0.5), 36.0)
            a.frame(f"{leg}_foot", f"{leg}_calf", (0, 0, -0.2))
    height = 2 * 0.2 * 0.7071067811865476 + 0.02
    return a.model([0.0, 0.0, height, *_UPRIGHT, *[0.0, 0.7853981633974483, -1.5707963267948966] * 4])


def _leg(a: Assembly, side: str, y: float, on: str) -> None:
    """A leg of six joints under a hip: yaw, roll, pitch, knee, and an ankle of two."""
    a.body(f"{side}_hip_yaw", Revolute(Z), on, (0, 0.09 * y, -0.08), [ball(0.05, 1.0)], (-0.8, 0.8), 80.0)
    a.body(f"{side}_hip_roll", Revolute(X), f"{side}_hip_yaw", (0, 0, -0.05), [ball(0.05, 1.0)], (-0.6, 0.6), 120.0)
    a.body(
        f"{side}_thigh",
        Revolute(Y),
        f"{side}_hip_roll",
        parts=[rod((0, 0, 0), (0, 0, -0.4), 4.0, 0.05)],
        limits=(-2.0, 1.0),
        effort=150.0,
    )
    a.body(
        f"{side}_shin",
        Revolute(Y),
        f"{side}_thigh",
        (0, 0, -0.4),
        [rod((0, 0, 0), (0, 0, -0.4), 2.5, 0.04)],
        (0.0, 2.2),
        150.0,
    )
    a.body(f"{side}_ankle", Revolute(Y), f"{side}_shin", (0, 0, -0.4), [ball(0.03, 0.3)], (-0.9, 0.6), 80.0)
    a.body(
        f"{side}_foot",
        Revolute(X),
        f"{side}_ankle",
        parts=[box((0.22, 0.1, 0.03), 0.9, (0.04, 0, -0.055))],
        limits=(-0.4, 0.4),
        effort=60.0,
    )
    a.frame(f"{side}_sole", f"{side}_foot", (0.04, 0, -0.07))


def biped() -> Model:
    """A pelvis of 12 kg on two legs whose knees are driven from the hip: by a crank, a rod, and a tie to the shin.

    Crank and rod are parallel to shin and thigh, so the loops are closed if each crank turns with its knee. A tie has
    three rows for a planar loop, of which one is redundant, as in many descriptions of such legs. 22 velocities.
    """
    a = Assembly("biped")
    a.body("pelvis", Free(), None, parts=[box((0.2, 0.3, 0.16), 12.0)])
    for side, y in _LEFT_RIGHT:
        _leg(a, side, y, "pelvis")
        a.body(f"{side}_crank", Revolute(Y), f"{side}_thigh", parts=[rod((0, 0, 0), (-0.06, 0, 0), 0.2)])
        a.body(f"{side}_rod", Revolute(Y), f"{side}_crank", (-0.06, 0, 0), [rod((0, 0, 0), (0, 0, -0.4), 0.25)])
        a.frame(f"{side}_rod_end", f"{side}_rod", (0, 0, -0.4))
        a.frame(f"{side}_lever", f"{side}_shin", (-0.06, 0, 0))
        a.connect(f"{side}_knee_drive", f"{side}_rod_end", f"{side}_lever")
    bend = 0.5
    # Thigh back, shin forward, the crank with the knee, the rod parallel to the thigh.
    leg = [0.0, 0.0, -bend, 2 * bend, -bend, 0.0, 2 * bend, -2 * bend]
    height = 0.08 + 0.05 + 0.8 * 0.8775825618903728 + 0.07
    return a.model([0.0, 0.0, height, *_UPRIGHT, *leg, *leg])


def humanoid() -> Model:
    """A humanoid of 1.6 m: legs of six joints, arms of seven, waist and neck of two: 36 velocities."""
    a = Assembly("humanoid")
    a.body("pelvis", Free(), None, parts=[box((0.18, 0.3, 0.16), 8.0)])
    for side, y in _LEFT_RIGHT:
        _leg(a, side, y, "pelvis")
    a.body("waist", Revolute(Z), "pelvis", (0, 0, 0.08), [ball(0.06, 1.0)], (-1.0, 1.0), 100.0)
    a.body("torso", Revolute(Y), "waist", (0, 0, 0.05), [box((0.2, 0.32, 0.4), 16.0, (0, 0, 0.22))], (-0.4, 1.2), 150.0)
    a.body("neck", Revolute(Z), "torso", (0, 0, 0.45), [ball(0.04, 0.5)], (-1.2, 1.2), 10.0)
    a.body("head", Revolute(Y), "neck", (0, 0, 0.05), [ball(0.09, 2.5, (0, 0, 0.09))], (-0.5, 0.7), 10.0)
    for side, y in _LEFT_RIGHT:
        a.body(f"{side}_shoulder", Revolute(Y), "torso", (0, 0.2 * y, 0.36), [ball(0.05, 0.8)], (-3.0, 1.5), 60.0)
        a.body(
            f"{side}_shoulder_roll",
            Revolute(X),
            f"{side}_shoulder",
            parts=[ball(0.05, 0.8)],
            limits=(-2.0, 2.0),
            effort=60.0,
        )
        a.body(
            f"{side}_upper_arm",
            Revolute(Z),
            f"{side}_shoulder_roll",
            parts=[rod((0, 0, 0), (0, 0, -0.28), 1.6, 0.04)],
            limits=(-1.5, 1.5),
            effort=40.0,
        )
        a.body(
            f"{side}_forearm",
            Revolute(Y),
            f"{side}_upper_arm",
            (0, 0, -0.28),
            [rod((0, 0, 0), (0, 0, -0.24), 1.0, 0.035)],
            (-2.3, 0.0),
            40.0,
        )
        a.body(f"{side}_wrist_yaw", Revolute(Z), f"{side}_forearm", (0, 0, -0.24), [ball(0.03, 0.2)], (-1.5, 1.5), 15.0)
        a.body(
            f"{side}_wrist_roll",
            Revolute(X),
            f"{side}_wrist_yaw",
            parts=[ball(0.03, 0.2)],
            limits=(-0.8, 0.8),
            effort=15.0,
        )
        a.body(
            f"{side}_hand",
            Revolute(Y),
            f"{side}_wrist_roll",
            parts=[box((0.08, 0.03, 0.12), 0.4, (0, 0, -0.07))],
            limits=(-0.8, 0.8),
            effort=15.0,
        )
        a.frame(f"{side}_palm", f"{side}_hand", (0, 0, -0.07))
    bend = 0.3
    leg = [0.0, 0.0, -bend, 2 * bend, -bend, 0.0]
    arm = [0.2, 0.0, 0.0, -0.6, 0.0, 0.0, 0.0]
    height = 0.08 + 0.05 + 0.8 * 0.955336489125606 + 0.07
    return a.model([0.0, 0.0, height, *_UPRIGHT, *leg, *leg, 0.0, 0.0, 0.0, 0.0, *arm, *arm])
