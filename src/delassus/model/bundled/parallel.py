"""Parallel robots: a platform on several legs that form closed loops."""

from __future__ import annotations

import math

import numpy as np

from delassus.model.bundled.build import Assembly, Free, Prismatic, Revolute, Universal, Y, Z, box, rod
from delassus.model.model import Model
from delassus.model.placement import Placement

_UPRIGHT = [0.0, 0.0, 0.0, 1.0]


def delta(base: float = 0.2, platform: float = 0.06, arm: float = 0.25, forearm: float = 0.5) -> Model:
    """Three driven arms carry a platform by pairs of rods, so that it moves without turning; it hangs below the base.

    Every rod hangs by a universal joint and is tied to the platform: 21 velocities, 18 rows, 3 degrees of freedom.
    """
    a = Assembly("delta")
    home: list[float] = []
    # Arms are horizontal in "home": the platform's depth follows from the length of the rods.
    depth = math.sqrt(forearm**2 - (base + arm - platform) ** 2)
    closures = []
    for k in range(3):
        about = Placement.from_xyz_rpy(rpy=(0.0, 0.0, 2 * math.pi * k / 3))
        a.body(
            f"arm{k}",
            Revolute(Y),
            None,
            about * Placement.of(p=(base, 0, 0)),
            [rod((0, 0, 0), (arm, 0, 0), 0.15)],
            limits=(-1.0, 1.2),
        )
        home.append(0.0)
        for side, y in (("a", 0.04), ("b", -0.04)):
            name = f"rod{k}{side}"
            a.body(
                name,
                Universal((1, 0, 0), (0, 1, 0)),
                f"arm{k}",
                (arm, y, 0),
                [rod((0, 0, 0), (0, 0, -forearm), 0.03, 0.005)],
            )
            a.frame(f"{name}_end", name, (0, 0, -forearm))
            home += [0.0, math.asin((base + arm - platform) / forearm)]
            closures.append((name, about * Placement.of(p=(platform, y, 0.0))))
    a.body("platform", Free(), None, parts=[box((0.1, 0.1, 0.02), 0.1)])
    for name, socket in closures:
        a.frame(f"{name}_socket", "platform", socket)
        a.connect(f"{name}_tie", f"{name}_end", f"{name}_socket")
    a.frame("tool", "platform", (0, 0, -0.02))
    return a.model([*home, 0.0, 0.0, -depth, *_UPRIGHT])


def stewart(base: float = 0.4, platform: float = 0.25, height: float = 0.5) -> Model:
    """A platform on six legs that grow and shrink, each on a universal joint and tied to the platform.

    24 velocities, 18 rows, 6 degrees of freedom.
    """
    a = Assembly("stewart")
    home: list[float] = []
    sockets = []
    for k in range(6):
        foot_angle = math.radians(60 * (k // 2) * 2 + (12 if k % 2 else -12))
        head_angle = math.radians(60 * ((k + 1) // 2 * 2 - 1) + (12 if not k % 2 else -12))
        foot = base * np.array([math.cos(foot_angle), math.sin(foot_angle), 0.0])
        head = platform * np.array([math.cos(head_angle), math.sin(head_angle), 0.0])
        leg = head + np.array([0.0, 0.0, height]) - foot
        length = float(np.linalg.norm(leg))
        x, y, z = leg / length
        a.body(
            f"cylinder{k}",
            Universal((1, 0, 0), (0, 1, 0)),
            None,
            foot.tolist(),
            [rod((0, 0, 0), (0, 0, 0.3), 0.8, 0.02)],
        )
        a.body(f"piston{k}", Prismatic(Z), f"cylinder{k}", (0, 0, 0.05), [rod((0, 0, 0), (0, 0, 0.35), 0.4, 0.012)])
        a.frame(f"piston{k}_end", f"piston{k}", (0, 0, 0.35))
        home += [math.atan2(-y, z), math.asin(x), length - 0.4]
        sockets.append(head)
    a.body("platform", Free(), None, parts=[box((0.4, 0.4, 0.03), 3.0)])
    for k, head in enumerate(sockets):
        a.frame(f"socket{k}", "platform", head.tolist())
        a.connect(f"leg{k}", f"piston{k}_end", f"socket{k}")
    return a.model([*home, 0.0, 0.0, height, *_UPRIGHT])
