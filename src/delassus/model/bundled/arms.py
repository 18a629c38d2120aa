"""A seven-joint arm and a gripper."""

from __future__ import annotations

from dataclasses import replace

from delassus.model.bundled.build import Assembly, Prismatic, Revolute, X, Y, Z, box, rod
from delassus.model.model import Model
from delassus.model.parts import Mimic


def arm7() -> Model:
    """An arm like those of light industrial robots, 1.2 m high: shoulder of three joints, elbow, wrist of three."""
    a = Assembly("arm7")
    lengths, masses = (0.16, 0.18, 0.22, 0.2, 0.18, 0.12, 0.08), (3.5, 3.4, 3.0, 2.7, 1.7, 1.6, 0.5)
    axes = (Z, Y, Z, Y, Z, Y, Z)
    limits, efforts = (2.9, 2.0, 2.9, 2.0, 2.9, 2.0, 3.0), (180, 180, 100, 100, 60, 40, 40)
    on, height = None, 0.12
    for k, (axis, length) in enumerate(zip(axes, lengths, strict=True)):
        name = f"link{k + 1}"
        part = rod((0, 0, 0), (0, 0, length), masses[k], 0.06 - 0.004 * k)
        a.body(name, Revolute(axis), on, (0, 0, height), [part], (-limits[k], limits[k]), float(efforts[k]))
        on, height = name, length
    a.frame("tool", "link7", (0, 0, 0.08))
    return a.model((0.0, 0.5, 0.0, -1.2, 0.0, 0.9, 0.0))


def gripper() -> Model:
    """Two parallel fingers that open to 80 mm; the second one mimics the first."""
    a = Assembly("gripper")
    finger = [box((0.01, 0.02, 0.06), 0.05, (0, 0, 0.03))]
    a.body("left_finger", Prismatic(X), None, (0, 0, 0.08), finger, (0.0, 0.04), 40.0)
    a.body("right_finger", Prismatic((-1.0, 0.0, 0.0)), None, (0, 0, 0.08), finger, (0.0, 0.04), 40.0)
    a.joints[1] = replace(a.joints[1], mimic=Mimic(0))
    a.frame("left_tip", "left_finger", (0, 0, 0.06))
    a.frame("right_tip", "right_finger", (0, 0, 0.06))
    a.frame("grasp", None, (0, 0, 0.13))
    return a.model()
