"""Films of large systems: a rod for each line, a box for each brick."""

from __future__ import annotations

import os
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.contact.cones.tangents import contact_axes
from delassus.output.film import packed, write_page
from delassus.particles.description.bodies import rotations
from delassus.particles.description.checks import positive
from delassus.particles.description.obstacles import Box, Plane, Sphere
from delassus.particles.description.particles import Particles
from delassus.particles.motion.lines import lines_of

Array = NDArray[np.float64]

MOST_LINES: Final = 3000
"""Maximum number of lines that a browser draws in real time; of more, a subset is shown."""


class Places(NamedTuple):
    """Times (times,) [s], positions (times, n + b, 3) [m], and quaternions (times, b, 4) of bricks."""

    time: Array
    x: Array
    orientations: Array


def save_film(p: Particles, motion: Places, path: str | os.PathLike[str], frames_per_second: float) -> None:
    """Write the film."""
    positive(frames_per_second=frames_per_second)
    write_page(film_of(p, motion, frames_per_second), path)


def film_of(p: Particles, motion: Places, frames_per_second: float) -> dict[str, Any]:
    """The data of the page: shapes, and their poses in each frame."""
    time = motion.time
    count = min(int((time[-1] - time[0]) * frames_per_second + 1.5), len(time))  # at most one frame per state
    even = np.linspace(time[0], time[-1], max(count, 2))
    times = np.unique(np.clip(np.searchsorted(time, even - 1e-12), 0, len(time) - 1))
    times = times[np.isfinite(motion.x[times]).all((1, 2))]
    x = motion.x[times]
    edges, loose = (items[:: max(1, -(-len(items) // MOST_LINES))] for items in lines_of(p))
    size = float(np.ptp(x.reshape(-1, 3), axis=0).max()) or 1.0
    shapes: list[dict[str, Any]] = []
    poses = []
    if len(edges):
        direction = x[:, edges[:, 1]] - x[:, edges[:, 0]]
        long = np.linalg.norm(direction, axis=-1)
        thick = 0.12 * float(np.median(long))
        R = np.asarray(contact_axes(np.where(long[..., None] > 0.0, direction, [0.0, 0.0, 1.0])))
        middle = 0.5 * (x[:, edges[:, 1]] + x[:, edges[:, 0]])
        poses.append(_pose(middle, R))
        shapes += [_shape("cylinder", (thick, float(size), 0.0)) for size in long[0]]
    if len(loose):
        poses.append(_pose(x[:, loose], np.broadcast_to(np.eye(3), (len(times), len(loose), 3, 3))))
        shapes += [_shape("sphere", (float(r),) * 3) for r in np.maximum(p.radius[loose], 0.01 * size)]
    if p.bricks is not None:
        R = np.asarray(rotations(None, motion.orientations[times]))
        poses.append(_pose(x[:, p.n :], R))
        shapes += [_shape("box", tuple(2.0 * half)) for half in p.bricks.half]
    planes = [o for o in p.obstacles if isinstance(o, Plane)]
    for obstacle in p.obstacles:
        if isinstance(obstacle, Sphere | Box):
            box = isinstance(obstacle, Box)
            R = np.asarray(obstacle.rotation) if isinstance(obstacle, Box) else np.eye(3)
            sides = tuple(2.0 * np.asarray(obstacle.half)) if isinstance(obstacle, Box) else (obstacle.radius,) * 3
            pose = _pose(np.asarray(obstacle.center, float), R)
            poses.append(np.broadcast_to(pose, (len(times), 1, 9)))
            shapes.append(_shape("box" if box else "sphere", sides) | {"color": [0.7, 0.72, 0.76]})
    for number, shape in enumerate(shapes):
        shape["body"] = number
    plane = planes[0] if planes else Plane(height=float(motion.x[..., 2].min()) - 0.1)
    poses_by_time = np.concatenate(poses, 1)[:, None]
    return {
        "name": p.name,
        "time": time[times].tolist(),
        "items": 1,
        "bodies": len(shapes),
        "slots": 0,
        "depths": [0 if shape["kind"] == "cylinder" else 1 for shape in shapes],
        "moving": [True] * len(shapes),
        "size": 0.2 * size,
        "shapes": shapes,
        "ground": {"axes": np.asarray(contact_axes(plane.normal)).reshape(-1).tolist(), "height": float(plane.height)},
        "poses": packed(poses_by_time),
        "forces": packed(np.zeros((len(times), 1, 0, 6))),
        "weight": 1.0,
    }


def _pose(p: Array, R: Array) -> Array:
    """(…, 9) for the page: the position and two axes, which define the third."""
    return np.concatenate([p, R[..., 0], R[..., 1]], -1)


def _shape(kind: str, size: tuple[float, ...]) -> dict[str, Any]:
    return {
        "kind": kind,
        "size": [float(s) for s in size],
        "rotation": np.eye(3).reshape(-1).tolist(),
        "position": [0.0, 0.0, 0.0],
        "color": [],
    }
