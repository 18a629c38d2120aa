"""SRDF beside a URDF: pairs of links that pass through each other, postures, and rotors.

    <disable_collisions link1="hip" link2="thigh"/>       their shapes are excluded from contact with each other
    <group_state name="half_sitting"><joint name="knee" value="1.2"/></group_state>     a posture
    <rotor_params><joint name="knee" mass="1e-5" gear_ratio="100"/></rotor_params>       armature: mass · gear ratio²

The `mass` of a rotor is its inertia [kg·m²], as Pinocchio reads it. Joints that a posture does not name
are neutral in it. Groups, chains and virtual joints say nothing of the dynamics.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from delassus.model.model import Model
from delassus.model.parts import Joint, Posture
from delassus.model.readers.documents.xml import Element, read_xml


def with_srdf(model: Model, data: str | bytes, file: str = "<string>") -> Model:
    """A model from URDF with what an SRDF document says of it."""
    robot = read_xml(data, file)
    if robot.tag != "robot":
        raise robot.error(f"the root element of SRDF is <robot>, not <{robot.tag}>.", code="bad-model-file")
    warnings = [*model.warnings]
    excluded = [*model.contact_rules.excluded]
    shapes: dict[str, list[str]] = {}
    for geometry in model.geometries:
        if geometry.role == "collision":
            shapes.setdefault(geometry.name.rpartition("_")[0], []).append(geometry.name)
    links = {frame.name for frame in model.frame_list if frame.role == "link"}
    for element in robot.all("disable_collisions"):
        pair = element.need("link1"), element.need("link2")
        unknown = [name for name in pair if name not in links]
        if unknown:
            warnings.append(f"{file}:{element.line}: the URDF has no link {unknown[0]!r}: the pair is left out.")
        excluded += product(shapes.get(pair[0], []), shapes.get(pair[1], []))
    postures = [_posture(model, element, warnings) for element in robot.all("group_state")]
    joints = list(model.joints)
    for element in (one for group in robot.all("rotor_params") for one in group.all("joint")):
        _add_rotor(joints, element, warnings)
    postures_by_name = {posture.name: posture for posture in (*model.postures, *postures)}
    return replace(
        model,
        joints=tuple(joints),
        contact_rules=replace(model.contact_rules, excluded=tuple(excluded)),
        postures=tuple(postures_by_name.values()),
        warnings=tuple(warnings),
    )


def _add_rotor(joints: list[Joint], element: Element, warnings: list[str]) -> None:
    """Give a joint the inertia that its rotor has at the joint; a joint that is not there is left out."""
    name = element.need("name")
    k = next((k for k, joint in enumerate(joints) if joint.name == name), None)
    if k is None or joints[k].kind.nv != 1:
        return  # fixed, or of another variant of the robot
    (inertia,), (ratio,) = element.measures("mass", 1), element.measures("gear_ratio", 1)
    if inertia < 0.0:
        warnings.append(
            f"{element.file}:{element.line}: the rotor of the joint {name!r} has the inertia {inertia:g} kg·m², which "
            "is negative: it is left out."
        )
        return
    joints[k] = replace(joints[k], armature=(inertia * ratio**2,))


def _posture(model: Model, state: Element, warnings: list[str]) -> Posture:
    """The configuration of a <group_state>; values that do not fit their joint are left out, with a warning."""
    q, indices = model.neutral(), {joint.name: k for k, joint in enumerate(model.joints)}
    for element in state.all("joint"):
        name, count = element.need("name"), len((element.get("value") or "").split())
        k = indices.get(name)
        if k is None or model.joints[k].mimic is not None:
            continue  # fixed, of another variant of the robot, or following another joint
        expected = model.joints[k].kind.nq
        if count != expected:
            warnings.append(
                f"{state.file}:{element.line}: the joint {name!r} has {expected} coordinates, and {count} in the group "
                f"state {state.need('name')!r}: there it keeps its neutral value."
            )
            continue
        q[model.q_starts[k] : model.q_starts[k] + expected] = element.numbers("value", expected)
    return Posture(state.need("name"), tuple(q.tolist()))
