"""Robots in motion that several tests follow."""

import math

import numpy as np

import delassus as dl
from delassus.model.bundled.build import Assembly, ball, box
from delassus.model.joints import Revolute, Spherical


def top() -> dl.Model:
    """A heavy body on a ball joint, which carries a pendulum: rotations that do not commute."""
    a = Assembly("top")
    a.body("body", Spherical(), None, parts=[box((0.1, 0.2, 0.4), 2.0, (0.0, 0.05, 0.3))])
    a.body("arm", Revolute((1.0, 0.0, 0.0)), "body", (0.0, 0.0, 0.5), [ball(0.05, 0.5, (0.0, 0.2, -0.1))])
    return a.model()


TOP = top()
TOP_START = np.array([0.1, -0.3, 0.2, 0.0, 0.4])
TOP_START[3] = math.sqrt(1.0 - TOP_START[:3] @ TOP_START[:3])
TOP_SPEED = np.array([0.5, -1.0, 3.0, 1.0])
