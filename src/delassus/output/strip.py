"""Strips of drawings: a robot at several times side by side, with ground and contact forces; with matplotlib.

Shapes are drawn in orthographic projection. All of them are convex, so the outline of a shape is the hull of its
projected points; boxes and hulls of meshes show their faces. Nearer shapes are painted later.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.compiler.graph.parameters import PARAMETERS
from delassus.dynamics.kinematics.kinematics import forward_kinematics
from delassus.geometry.shapes.registry import SHAPES
from delassus.output.arguments import item_number, moments, real
from delassus.output.errors import TrajectoryError
from delassus.output.film import joint_depths, visible_shapes, world_forces
from delassus.output.plots import check_axes, pyplot

if TYPE_CHECKING:
    from delassus.output.trajectory import Trajectory

Array = NDArray[np.float64]
PALETTE: Final = ("#33598c", "#e08a3c", "#c9ced6", "#5c6675", "#9aa5b3")
"""Colors of bodies, by the number of joints to the root."""
INK: Final = "#2a3340"
FORCE: Final = "#d62839"


class Camera(NamedTuple):
    """Right, up and towards the viewer, (3, 3) by rows, in the world."""

    axes: Array

    @classmethod
    def at(cls, turn: float, rise: float) -> Camera:
        """From angles [rad] about the vertical and above the horizontal."""
        towards_viewer = np.array(
            [math.cos(rise) * math.cos(turn), math.cos(rise) * math.sin(turn), math.sin(rise)],
        )
        right = np.cross((0.0, 0.0, 1.0), towards_viewer)
        right /= np.linalg.norm(right)
        return cls(np.stack([right, np.cross(towards_viewer, right), towards_viewer]))

    def sees(self, points: Any) -> Array:
        """(…, 3): positions on the drawing, and depth."""
        return np.asarray(points) @ self.axes.T


class Patch(NamedTuple):
    """A polygon (n, 2) on the drawing, its depth, color and brightness."""

    outline: Array
    near: float
    color: Any
    light: float


def draw(log: Trajectory, times: int | ArrayLike, item: Any, turn: float, rise: float, axes: Any) -> Any:
    """Axes with drawings of one environment, side by side; see `Trajectory.draw`."""
    if log.mechanism is None:
        raise TrajectoryError(
            "the file contains no shapes: load it with its simulation or model, Trajectory.load(path, simulation).",
            code="not-recorded",
        )
    sim, model = log.simulation, log.mechanism.model
    batch = log.q.shape[1:-1]
    if batch:
        index = (int(k) for k in np.unravel_index(item_number(item, batch), batch))
        return draw(cast("Trajectory", log[(slice(None), *index)]), times, 0, turn, rise, axes)
    item_number(item, batch)
    frames = _frames(log, times)
    camera = Camera.at(*(real(name, x, -1e3, 1e3, "an angle [rad]") for name, x in (("turn", turn), ("rise", rise))))
    q, parameters = log.q[frames], {} if log.parameters is None else {PARAMETERS: log.parameters}
    R, p = forward_kinematics(log.mechanism, q, **parameters)
    forces = np.zeros((len(frames), 0, 6))
    if sim is not None and log.contacts is not None:
        forces = world_forces(sim, q, log.contacts.contact[frames], log.contact_force[frames])
    if axes is None:
        _, axes = pyplot().subplots(
            1, len(frames), squeeze=False, layout="constrained", figsize=(max(4.0, 2.6 * len(frames)), 3.2)
        )
    axes = np.atleast_1d(np.asarray(axes, object)).reshape(-1)
    check_axes(*axes)
    if len(axes) != len(frames):
        raise TrajectoryError(f"there are {len(axes)} axes for {len(frames)} times.", code="wrong-shape")
    pictures = [list(_patches(model, R[k], p[k], camera)) for k in range(len(frames))]
    outline_points = np.concatenate([patch.outline for picture in pictures for patch in picture] or [np.zeros((1, 2))])
    low, high = outline_points.min(0), outline_points.max(0)
    room = 0.12 * max(high - low) + 0.02
    weight = model.mass * float(np.linalg.norm(model.gravity)) or 1.0
    tall = 0.5 * max(high - low)
    for k, ax in enumerate(axes):
        if sim is not None:
            _ground(ax, sim.ground, camera, p[k].mean(0), max(high - low))
        for patch in sorted(pictures[k], key=lambda patch: patch.near):
            shade = 0.62 + 0.38 * patch.light
            ax.fill(*patch.outline.T, facecolor=_shade(patch.color, shade), edgecolor=INK, linewidth=0.4)
        _arrows(ax, camera, forces[k], tall / weight, 1.2 * tall)
        ax.set_title(f"{log.time[frames[k]]:.2f} s", fontsize="medium", color=INK)
        ax.set(aspect="equal", xlim=(low[0] - room, high[0] + room), ylim=(low[1] - room, high[1] + room))
        ax.axis("off")
    return axes


def _frames(log: Trajectory, times: Any) -> list[int]:
    if isinstance(times, (int, np.integer)):
        if times < 1:
            raise TrajectoryError(
                f"times is {times}; it must be a number of drawings, one or more, or an array of times.",
                code="out-of-range",
            )
        return [int(k) for k in np.unique(np.linspace(0, len(log) - 1, int(min(times, len(log)))).round())]
    requested = np.atleast_1d(moments("times", times, log.time[0], log.time[-1], 1e-9))
    if not requested.size or requested.ndim != 1:
        raise TrajectoryError(
            f"times has shape {requested.shape}; it must be the number of drawings, one or more, or a list of "
            "their times.",
            code="wrong-shape",
        )
    return [int(np.argmin(np.abs(log.time - moment))) for moment in requested]


# --- shapes -----------------------------------------------------------------------------------------------------------

_LIGHT: Final = np.array([0.35, 0.25, 0.9]) / np.linalg.norm([0.35, 0.25, 0.9])


def _patches(model: Any, R: Array, p: Array, camera: Camera) -> Iterator[Patch]:
    depths = joint_depths(model)
    for geometry, triangles in visible_shapes(model):
        color = geometry.color[:3] or PALETTE[min(depths[geometry.joint], len(PALETTE) - 1)]
        turn = R[geometry.joint] @ geometry.placement.R
        center = p[geometry.joint] + R[geometry.joint] @ geometry.placement.p
        depth = float(camera.sees(center)[2])
        kind = SHAPES[geometry.shape]
        faces = kind.faces(geometry.size) if triangles is None else triangles
        if faces is not None:
            for face in faces:
                corners = center + face @ turn.T
                normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
                normal /= np.linalg.norm(normal)
                if normal @ camera.axes[2] > 0.0:
                    yield Patch(camera.sees(corners)[:, :2], depth, color, max(0.0, float(normal @ _LIGHT)))
        else:
            points = camera.sees(center + kind.outline(geometry.size) @ turn.T)[:, :2]
            yield Patch(outline(points), depth, color, 0.6)


def outline(points: Array) -> Array:
    """The convex hull (n, 2) of points (m, 2), counterclockwise: the lower side from left to right, then the upper."""
    ordered = sorted(map(tuple, points.tolist()))

    def side(along: Any) -> list[Any]:
        chain: list[Any] = []
        for x, y in along:
            while len(chain) > 1:
                (a, b), (c, d) = chain[-2:]
                if (c - a) * (y - b) - (d - b) * (x - a) > 0.0:
                    break
                chain.pop()
            chain.append((x, y))
        return chain[:-1]

    return np.array(side(ordered) + side(reversed(ordered)))


def _shade(color: Any, shade: float) -> Any:
    from matplotlib.colors import to_rgb

    return tuple(shade * np.array(to_rgb(color)))


# --- ground and forces ------------------------------------------------------------------------------------------------


def _ground(ax: Any, ground: Any, camera: Camera, below: Array, wide: float) -> None:
    """A grid on the ground below a robot."""
    cell = 0.25 * wide
    first = np.floor(below[:2] / cell) * cell
    steps = np.arange(-4, 6) * cell
    x, y = np.meshgrid(first[0] + steps, first[1] + steps, indexing="ij")
    z = _heights(ground, x, y)
    grid = camera.sees(np.stack([x, y, z], -1))[..., :2]
    border = np.concatenate([grid[0], grid[1:, -1], grid[-1, -2::-1], grid[-2:0:-1, 0]])
    ax.fill(*border.T, facecolor="#e9edf2", edgecolor="none", zorder=0)
    for line in (*grid, *np.swapaxes(grid, 0, 1)):
        ax.plot(*line.T, color="#cdd5df", linewidth=0.6, zorder=0)


def _heights(ground: Any, x: Array, y: Array) -> Array:
    """Heights of the ground [m] at points (…)."""
    if ground.heights is None:
        (a, b, c), height = np.reshape(ground.normal, (-1, 3))[0], np.reshape(ground.height, -1)[0]
        return (height - a * x - b * y) / (c if abs(c) > 1e-3 else math.inf)
    (rows, columns), spacing = ground.heights.shape, ground.field.spacing
    i = np.clip(np.round((x - ground.origin[0]) / spacing[0]), 0, rows - 1).astype(int)
    j = np.clip(np.round((y - ground.origin[1]) / spacing[1]), 0, columns - 1).astype(int)
    heights: Array = ground.heights[i, j]
    return heights


def _arrows(ax: Any, camera: Camera, forces: Array, scale: float, most: float) -> None:
    """Contact forces (slots, 6), a point and a force each, as long as the weight is tall."""
    for row in forces:
        size = float(np.linalg.norm(row[3:]))
        if size * scale < 0.02 * most:
            continue
        length = min(size * scale, most)
        start = camera.sees(row[:3])[:2]
        end = start + camera.sees(row[3:] / size)[:2] * length
        ax.annotate(
            "",
            end,
            start,
            arrowprops={"arrowstyle": "-|>", "color": FORCE, "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0},
            annotation_clip=False,
        )
