"""The bundled robots as MJCF with servos and a floor, so that every simulator reads the same text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatch

import delassus as dl


def _numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(x)) for x in values)


def _inertial(inertia: dl.model.Inertia) -> str:
    I = inertia.rotational
    full = (I[0][0], I[1][1], I[2][2], I[0][1], I[0][2], I[1][2])
    return f'<inertial pos="{_numbers(inertia.com)}" mass="{inertia.mass!r}" fullinertia="{_numbers(full)}"/>'


def _geometry(shape: dl.model.Geometry) -> str:
    sizes = {
        "sphere": shape.size,
        "box": [0.5 * x for x in shape.size],
        "cylinder": [shape.size[0], 0.5 * shape.size[-1]],
    }[shape.shape]
    x, y, _ = zip(*shape.placement.rotation, strict=True)
    return (
        f'<geom name="{shape.name}" type="{shape.shape}" size="{_numbers(sizes)}" mass="0" contype="1" conaffinity="0" '
        f'pos="{_numbers(shape.placement.translation)}" xyaxes="{_numbers((*x, *y))}"/>'
    )


def mjcf(
    robot: dl.Model,
    touching: Sequence[str],
    stiffness: float,
    damping: float,
    friction: float = 0.7,
    step: float = 1e-3,
    armature: float = 0.01,
    undriven: Sequence[str] = (),
) -> str:
    """The robot in MJCF; shapes named by patterns touch the floor and nothing else, and joints have position servos.

    Args:
        robot: One of the bundled robots: a free base and hinges, and points that are connected.
        touching: Patterns of names of collision shapes.
        stiffness: Of the servos [N m/rad].
        damping: Of the servos [N m s/rad].
        friction: Of the floor.
        step: Of time [s].
        armature: Of driven joints [kg m²].
        undriven: Patterns of names of joints without servos.
    """
    children: dict[int, list[int]] = {}
    for k, joint in enumerate(robot.joints):
        children.setdefault(joint.parent, []).append(k)

    def driven(name: str) -> bool:
        return not any(fnmatch(name, pattern) for pattern in undriven)

    def body(k: int) -> str:
        joint = robot.joints[k]
        inside = [_inertial(joint.inertia)]
        if k == 0:
            inside.append("<freejoint/>")
        else:
            own = f'armature="{armature}"' if driven(joint.name) else ""
            inside.append(
                f'<joint name="{joint.name}" axis="{_numbers(joint.kind.axis)}" {own} limited="true" '
                f'range="{joint.lower[0]!r} {joint.upper[0]!r}"/>'
                if joint.lower
                else f'<joint name="{joint.name}" axis="{_numbers(joint.kind.axis)}" {own}/>'
            )
        inside += [
            _geometry(shape)
            for shape in robot.geometries
            if shape.joint == k and shape.role == "collision" and any(fnmatch(shape.name, one) for one in touching)
        ]
        inside += [
            f'<site name="{frame.name}" pos="{_numbers(frame.placement.translation)}"/>'
            for frame in robot.frame_list
            if frame.joint == k
        ]
        inside += [body(child) for child in children.get(k, ())]
        place = _numbers(joint.placement.translation)
        return f'<body name="{joint.name}_body" pos="{place}">{"".join(inside)}</body>'

    servos = "".join(
        f'<position joint="{joint.name}" kp="{stiffness}" kv="{damping}"/>'
        for joint in robot.joints[1:]
        if driven(joint.name)
    )
    loops = "".join(f'<connect site1="{loop.frame1}" site2="{loop.frame2}"/>' for loop in robot.constraints)
    return f"""<mujoco model="{robot.name}"><compiler angle="radian"/><option timestep="{step}"/>
<worldbody><geom name="floor" type="plane" size="0 0 1" friction="{friction}" contype="0" conaffinity="1"/>
{body(0)}</worldbody><equality>{loops}</equality><actuator>{servos}</actuator></mujoco>"""
