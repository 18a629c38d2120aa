"""A robot as readable text: the tree of joints, and tables of joints, frames, postures and masses."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from rich.tree import Tree

from delassus.constrained.rows.references import constraint_error
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.errors import DelassusError
from delassus.model.bundled import robots
from delassus.model.model import Model
from delassus.model.parts import WORLD, WORLD_FRAME, Joint
from delassus.model.reports.mass_report import MassReport
from delassus.spatial.quaternions import quaternion_from_rotation
from delassus.terminal import escape_text, format_table


def robot_table() -> list[str]:
    """The robots that come with the package."""
    return format_table(("robot", "what it is"), robots().items())


def tree(model: Model) -> Tree:
    """The joints as a tree, each with its kind, coordinates, mass and limits."""
    branches = {WORLD: Tree(f"[bold]{escape_text(model.name)}[/]")}
    for i, joint in enumerate(model.joints):
        branches[i] = branches[joint.parent].add(_line(model, i, joint), highlight=False)
    return branches[WORLD]


def _line(model: Model, i: int, joint: Joint) -> str:
    kind = "continuous" if getattr(joint.kind, "continuous", False) else joint.kind.label
    axis = getattr(joint.kind, "axis", None)
    about = "" if axis is None else " " + _numbers(axis, ".3g")
    dofs = f"v[{_range(model.v_starts[i], joint.kind.nv)}]"
    if joint.mimic:
        dofs = f"{joint.mimic.ratio:g}·{model.joints[joint.mimic.source].name} + {joint.mimic.offset:g}"
    limits = f"  [{joint.lower[0]:.3g}, {joint.upper[0]:.3g}]" if joint.lower and joint.upper else ""
    return (
        f"{escape_text(joint.name)}  [dim]{kind}{about}  {escape_text(dofs + limits)}  {joint.inertia.mass:.4g} kg[/]"
    )


def joint_table(model: Model) -> list[str]:
    """Where the coordinates and velocities of every joint are, and its limits."""
    rows = []
    for i, joint in enumerate(model.joints):
        q, v = _range(model.q_starts[i], joint.kind.nq), _range(model.v_starts[i], joint.kind.nv)
        limits = (joint.lower, joint.upper, joint.velocity_limit, joint.effort_limit)
        follows = f"mimics {model.joints[joint.mimic.source].name}" if joint.mimic else ""
        rows.append((joint.name, q, v, *map(_limits, limits), follows))
    titles = ("joint", "q", "v", "lower [rad, m]", "upper", "speed [rad/s, m/s]", "effort [N·m, N]", "")
    return format_table(titles, rows)


def frame_table(model: Model) -> list[str]:
    """On which body every frame is, and where."""
    rows = []
    for frame in model.frame_list:
        on = WORLD_FRAME.name if frame.joint == WORLD else model.joints[frame.joint].name
        turned = quaternion_from_rotation(frame.placement.R)
        rows.append((frame.name, frame.role, on, _numbers(frame.placement.p), _numbers(turned)))
    return format_table(("frame", "role", "on the body of", "at [m]", "turned, x y z w"), rows)


def posture_table(model: Model) -> list[str]:
    """The configurations that the robot comes with."""
    return format_table(("posture", "q"), [(posture.name, _numbers(posture.q)) for posture in model.postures])


def mass_table(report: MassReport) -> list[str]:
    """Masses, centers and moments of the moving bodies."""
    rows = [
        (body.joint, f"{body.mass:.6g}", _numbers(body.com), _numbers(body.moments), _numbers(body.radii))
        for body in report.bodies
    ]
    titles = ("body of", "mass [kg]", "center [m]", "principal moments [kg·m²]", "radii of gyration [m]")
    return format_table(titles, rows)


def closures(model: Model) -> list[str]:
    """How well the constraints of a model are met, a line for the neutral configuration and one for each posture."""
    if not model.constraints:
        return []
    try:
        mechanism = Mechanism(model)
    except DelassusError as error:
        return [f"the constraints cannot be solved: {error}"]
    names = [name for name, at in mechanism.slices.items() for _ in range(at.start, at.stop)]
    places = [("the neutral configuration", model.neutral())]
    places += [(f"posture {posture.name!r}", model.posture(posture.name)) for posture in model.postures]
    lines = []
    for place, q in places:
        size = np.abs(constraint_error.python(mechanism, q))
        worst = int(np.argmax(size))
        lines.append(f"in {place}, constraints are off by {size[worst]:.3g} m or rad at most ({names[worst]})")
    return lines


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start}:{start + count}"


def _limits(values: tuple[float, ...]) -> str:
    """The limits of a joint; a dash where there is none."""
    return " ".join(f"{x:.4g}" if math.isfinite(x) else "-" for x in values) or "-"


def _numbers(values: Iterable[float], form: str = ".4g") -> str:
    return " ".join(f"{x + 0.0:{form}}" for x in values)
