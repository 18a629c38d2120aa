"""Drawings of large systems, with matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.geometry.shapes.registry import SHAPES
from delassus.output.plots import pyplot
from delassus.particles.description.bodies import rotations
from delassus.particles.description.checks import ParticlesError
from delassus.particles.description.obstacles import Box, Plane, Sphere
from delassus.particles.description.particles import Particles
from delassus.particles.motion.lines import lines_of
from delassus.particles.motion.state import ParticleState

Array = NDArray[np.float64]

LABELS: Final = {
    "energy": "energy [J]",
    "speed": "largest speed [m/s]",
    "residual": "residual of rows",
    "contacts": "contacts",
}
"""Quantities that can be plotted over time, with labels."""

_FACES: Final = np.asarray(SHAPES["box"].faces((2.0, 2.0, 2.0)))
_BLUE, _GREY, _ORANGE = "#4570a0", "#b8bcc4", "#d97b45"


def plot_curve(label: str, time: Array, values: Callable[[], Array], ax: Any) -> Any:
    """Axes with a plot over time; `values` are computed once the name has been checked."""
    if label not in LABELS:
        raise ParticlesError(f"{label!r} cannot be drawn; choose one of: {', '.join(LABELS)}.", code="unknown-option")
    if ax is None:
        _, ax = pyplot().subplots(layout="constrained")
    ax.plot(time, values())
    ax.set_xlabel("time [s]")
    ax.set_ylabel(LABELS[label])
    return ax


def draw_state(
    particles: Particles, state: ParticleState, ax: Any = None, *, view: tuple[float, float] = (18.0, -60.0)
) -> Any:
    """Axes with a drawing in space: faces, lines, bricks and obstacles."""
    if ax is None:
        ax = pyplot().figure(figsize=(4.5, 4.5), layout="constrained").add_subplot(projection="3d")
    from matplotlib.colors import LightSource
    from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

    x, n = state.x, particles.n
    shaded: dict[str, Any] = {"shade": True, "lightsource": LightSource(315, 55)}
    if len(particles.faces):
        ax.add_collection3d(
            Poly3DCollection(x[particles.faces], facecolors=_BLUE, edgecolors=_BLUE, linewidths=0.3, **shaded)
        )
    else:
        edges, loose = lines_of(particles)
        if len(edges):
            ax.add_collection3d(Line3DCollection(x[edges], colors=_BLUE, linewidths=1.2))
        ax.scatter(*x[loose].T, s=9, color=_BLUE, depthshade=False)
    if particles.bricks is not None:
        R = np.asarray(rotations(None, state.orientations))
        corners = (_FACES * particles.bricks.half[:, None, None, :]).reshape(-1, 24, 3)
        faces = (x[n:, None, :] + corners @ R.mT).reshape(-1, 4, 3)
        ax.add_collection3d(Poly3DCollection(faces, facecolors=_ORANGE, edgecolors="#7a4526", linewidths=0.3, **shaded))
    prescribed = np.flatnonzero(particles.is_prescribed)
    if len(prescribed):
        ax.scatter(*x[prescribed].T, s=6, color="#303030", depthshade=False)
    low, high = x.min(0), x.max(0)
    for obstacle in particles.obstacles:
        low, high = _draw_obstacle(ax, obstacle, low, high)
    middle, half = 0.5 * (low + high), 0.5 * max(float(np.max(high - low)), 1e-9) * 1.05
    for axis, center in zip("xyz", middle, strict=True):
        getattr(ax, f"set_{axis}lim")(center - half, center + half)
    ax.set_box_aspect((1, 1, 1), zoom=1.12)
    ax.view_init(*view)
    ax.set_axis_off()
    return ax


def _draw_obstacle(ax: Any, obstacle: Any, low: Array, high: Array) -> tuple[Array, Array]:
    """Draw an obstacle, and return the corners of its visible part."""
    if isinstance(obstacle, Sphere):
        u, w = np.meshgrid(np.linspace(0, 2 * np.pi, 40), np.linspace(0, np.pi, 24))
        c, r = np.asarray(obstacle.center), 0.99 * obstacle.radius
        ax.plot_surface(c[0] + r * np.cos(u) * np.sin(w), c[1] + r * np.sin(u) * np.sin(w), c[2] + r * np.cos(w),
                        color=_GREY, linewidth=0, alpha=0.6)  # fmt: skip
        return np.minimum(low, c - obstacle.radius), np.maximum(high, c + obstacle.radius)
    if isinstance(obstacle, Plane) and obstacle.normal[2] != 0.0:
        n = np.asarray(obstacle.normal, float) / np.linalg.norm(obstacle.normal)
        a, b = np.meshgrid(np.linspace(low[0], high[0], 2), np.linspace(low[1], high[1], 2))
        ax.plot_surface(a, b, (obstacle.height - n[0] * a - n[1] * b) / n[2], color=_GREY, alpha=0.4)
        return np.minimum(low, [np.inf, np.inf, obstacle.height]), high
    if isinstance(obstacle, Box):
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        R, half = np.asarray(obstacle.rotation), np.asarray(obstacle.half)
        faces = np.asarray(obstacle.center) + (_FACES * half) @ R.T
        ax.add_collection3d(Poly3DCollection(faces, facecolors=_GREY, alpha=0.6))
        return np.minimum(low, faces.min((0, 1))), np.maximum(high, faces.max((0, 1)))
    return low, high
