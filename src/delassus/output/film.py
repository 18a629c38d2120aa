"""Films of trajectories: self-contained HTML with shapes, ground and contact forces.

The page draws with its own WebGL code, in the folder `page`; arrays are embedded as base64 of float32.
"""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.archives import write
from delassus.compiler.graph.parameters import PARAMETERS
from delassus.contact.cones.tangents import contact_axes
from delassus.dynamics.kinematics.kinematics import forward_kinematics
from delassus.geometry.hulls.meshes import mesh_hull
from delassus.geometry.shapes.registry import SHAPES
from delassus.model.model import Model
from delassus.model.parts import Geometry
from delassus.model.readers.documents.meshes import MeshError
from delassus.output.arguments import item_numbers, real
from delassus.output.errors import TrajectoryError, TrajectoryFileError

if TYPE_CHECKING:
    from delassus.output.trajectory import Trajectory

PRIMITIVES: Final = ("box", "sphere", "cylinder", "capsule", "ellipsoid")
"""Shapes that the page draws itself; others are drawn as triangles."""

MOST_ITEMS: Final = 16
PAGE: Final = Path(__file__).with_name("page")
SCRIPTS: Final = ("numbers.js", "shapes.js", "scene.js", "play.js")


def save_html(log: Trajectory, path: str | os.PathLike[str], items: Any, frames_per_second: float) -> None:
    """Write the film of selected environments."""
    rate = real("frames_per_second", frames_per_second, 1e-6, 1e6, "positive, such as 50")
    write_page(film(log, items, rate), path)


def write_page(page_data: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page for the result of `film`, or similar data."""
    template = (PAGE / "page.html").read_text(encoding="utf-8")
    script = "\n".join((PAGE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    parts = {"data": f"const film = {_json_for_script(page_data)};", "script": script}
    page = re.sub(r"/\*(data|script)\*/", lambda mark: parts[mark[1]], template)  # once: names may have such marks
    write("the film", path, lambda file: file.write(page.encode()), TrajectoryFileError)


def _json_for_script(value: Any) -> str:
    """JSON in ASCII without <, > and &, so that no name can end its script or start another one."""
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:
        raise TrajectoryError(
            "a film needs finite numbers: times, sizes of shapes or masses are not finite.", code="not-finite"
        ) from None
    return text.translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&"})


def film(log: Trajectory, items: Any, frames_per_second: float) -> dict[str, Any]:
    """The data of the page: shapes, ground, and the poses of bodies and contact forces of each frame."""
    if log.mechanism is None:
        raise TrajectoryError(
            "the file contains no shapes: load it with its simulation or model, Trajectory.load(path, simulation).",
            code="not-recorded",
        )
    sim, model = log.simulation, log.mechanism.model
    times = _frames(log.time, frames_per_second)
    count = int(np.prod(log.q.shape[1:-1], dtype=int))
    indices = item_numbers(items, count, MOST_ITEMS)

    def select_frames(x: NDArray[Any], core: int) -> Any:
        return x[times].reshape(len(times), count, *x.shape[x.ndim - core :])[:, indices]

    q = select_frames(log.q, 1)
    parameters = (
        {} if log.parameters is None else {PARAMETERS: log.of_items(log.parameters).reshape(count, -1)[indices]}
    )
    R, p = forward_kinematics(log.mechanism, q, **parameters)
    poses = np.concatenate([p, R[..., 0], R[..., 1]], -1)  # the third axis follows
    forces = np.zeros((len(times), len(indices), 0, 6))
    if sim is not None and log.contacts is not None:
        forces = world_forces(sim, q, select_frames(log.contacts.contact, 1), select_frames(log.contact_force, 2))
    return {
        "name": model.name,
        "time": log.time[times].tolist(),
        "items": len(indices),
        "bodies": model.njoints,
        "slots": forces.shape[2],
        "depths": joint_depths(model),
        "moving": [bool(joint.kind.nv) for joint in model.joints],
        "size": _size(model),
        "shapes": [_shape(g, triangles) for g, triangles in visible_shapes(model)],
        "ground": None if sim is None else _ground(sim.ground),
        "poses": packed(poses),
        "forces": packed(forces),
        "weight": float(model.mass * np.linalg.norm(model.gravity)) or 1.0,
    }


def _frames(time: NDArray[np.float64], rate: float) -> NDArray[np.int64]:
    """The times of the film: the first of each frame of uniform duration, and the last if half a frame remains."""
    frame = (time - time[0] + 1e-12) * rate
    is_first = np.diff(np.floor(frame), prepend=-1.0) > 0.0
    is_first[-1] |= frame[-1] % 1.0 > 0.5
    return np.flatnonzero(is_first)


def visible_shapes(model: Model) -> list[tuple[Geometry, Any]]:
    """Visual shapes that can be drawn, meshes as triangles of their hulls; collision shapes for other bodies."""
    shapes: list[tuple[Geometry, Any]] = []
    for role in ("visual", "collision"):
        bodies = {g.joint for g, _ in shapes}
        for g in model.geometries:
            if g.role != role or g.joint < 0 or g.joint in bodies:
                continue
            if g.shape in PRIMITIVES:
                shapes.append((g, None))
            elif g.shape == "mesh":
                try:
                    hull = mesh_hull(g)
                    shapes.append((g, hull.points[hull.triangles]))
                except MeshError:  # the mesh is missing: show the collision shape
                    continue
    return shapes


def joint_depths(model: Model) -> list[int]:
    """The number of moving joints between each body and the root, which determines its color."""
    depths: list[int] = []
    for joint in model.joints:
        depths.append(depths[joint.parent] + 1 if joint.parent >= 0 else 0)
    return depths


def _size(model: Model) -> float:
    """Of the largest shape that is drawn [m]."""
    sizes = []
    for g, triangles in visible_shapes(model):
        points = SHAPES[g.shape].outline(g.size) if triangles is None else triangles.reshape(-1, 3)
        sizes.append(np.ptp(points, axis=0).max())
    return float(max(sizes, default=0.3))


def _shape(geometry: Geometry, triangles: Any) -> dict[str, Any]:
    placement = geometry.placement
    return {
        "body": geometry.joint,
        "kind": geometry.shape,
        "size": list(geometry.size),
        "rotation": placement.R.reshape(-1).tolist(),
        "position": placement.p.tolist(),
        "color": list(geometry.color[:3]),
    } | ({} if triangles is None else {"triangles": triangles.reshape(-1).round(6).tolist()})


def _ground(ground: Any) -> dict[str, Any]:
    if ground.heights is not None:
        rows, columns = ground.heights.shape
        shape = {"rows": rows, "columns": columns, "spacing": list(ground.field.spacing), "origin": list(ground.origin)}
        return {**shape, "heights": packed(ground.heights)}
    normal, height = np.reshape(ground.normal, (-1, 3))[0], np.reshape(ground.height, -1)[0]
    return {"axes": np.asarray(contact_axes(normal)).reshape(-1).tolist(), "height": float(height)}


def world_forces(sim: Any, q: Any, contact: Any, force: Any) -> Any:
    """(frames, items, slots, 6): the point and the force of each slot, in the world."""
    if not contact.shape[-1]:
        return np.zeros((*contact.shape, 6))
    contacts = sim.contacts(q)
    at = contact.astype(int)[..., None]
    point, normal = (np.take_along_axis(x, at, -2) for x in (contacts.point, contacts.normal))
    return np.concatenate([point, (contact_axes(normal) @ force[..., None])[..., 0]], -1)


def packed(x: NDArray[np.float64]) -> str:
    """An array for the page: base64 of float32, with zero in place of NaN."""
    return base64.b64encode(np.nan_to_num(x).astype("<f4").tobytes()).decode()
