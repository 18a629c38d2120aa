"""How the links and joints of a URDF file hang together, and which joints follow others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from delassus.errors import short
from delassus.model.joints import JointKind
from delassus.model.parts import Mimic
from delassus.model.readers.documents.xml import Element

_SDF = " This looks like SDF, which is not read; convert it to URDF."
_OTHER_FORMATS = {"mujoco": ' This is MJCF; load it with format="mjcf", or none.', "sdf": _SDF, "gazebo": _SDF}


@dataclass(frozen=True)
class UrdfTree:
    """Links and joints by their names; the joints below each link, in the order of the file; the root link."""

    links: Mapping[str, Element]
    joints: Mapping[str, Element]
    children: Mapping[str, tuple[Element, ...]]
    root: Element

    def below(self, link: Element) -> tuple[Element, ...]:
        """The joints that a link carries."""
        return self.children.get(link.need("name"), ())

    def child(self, joint: Element) -> Element:
        """The link that a joint carries."""
        return self.links[_link_name(joint, "child")]


def read_tree(robot: Element, warnings: list[str]) -> UrdfTree:
    """The tree of a <robot> element; anything but one tree with one root is an error."""
    if robot.tag != "robot":
        raise robot.error(
            f"the root element of a URDF file is <robot>.{_OTHER_FORMATS.get(robot.tag, '')}", code="bad-model-file"
        )
    if robot.get("name") is None:
        warnings.append(f'{robot.file}:{robot.line}: <robot> has no name, so the model is called "robot".')
    for element in robot.children:
        if element.tag.startswith("xacro:"):
            raise element.error(
                "this is xacro, not URDF yet; run `xacro file.xacro > file.urdf` first.", code="not-supported"
            )
    links, joints = _by_name(robot, "link"), _by_name(robot, "joint")
    if not links:
        raise robot.error("the robot has no <link>; it needs at least one.", code="bad-model-file")
    children: dict[str, list[Element]] = {}
    carried: dict[str, Element] = {}
    for name, joint in joints.items():
        parent, child = (_link_name(joint, side) for side in ("parent", "child"))
        for side, link in (("parent", parent), ("child", child)):
            if link not in links:
                raise joint.error(
                    f"the {side} of joint {short(name)!r} is the link {short(link)!r}, but there is no such link.",
                    code="unknown-link",
                )
        if child in carried:
            other = carried[child].need("name")
            raise joint.error(
                f"the link {short(child)!r} is the child of this joint {short(name)!r} and of joint {short(other)!r} "
                f"(line {carried[child].line}); a link has one parent.",
                code="not-a-tree",
            )
        children.setdefault(parent, []).append(joint)
        carried[child] = joint
    root = _root(links, carried, children)
    return UrdfTree(links, joints, {name: tuple(below) for name, below in children.items()}, root)


def _by_name(robot: Element, tag: str) -> dict[str, Element]:
    elements: dict[str, Element] = {}
    for element in robot.all(tag):
        name = element.need("name")
        if name in elements:
            raise element.error(
                f"a {tag} {short(name)!r} is there already, on line {elements[name].line}; rename one.",
                code="duplicate-name",
            )
        elements[name] = element
    return elements


def _link_name(joint: Element, side: str) -> str:
    element = joint.child(side)
    if element is None:
        raise joint.error(
            f'<{side} link="..."/> of joint {short(joint.need("name"))!r} is missing.', code="missing-element"
        )
    return element.need("link")


def _root(
    links: Mapping[str, Element], carried: Mapping[str, Element], children: Mapping[str, list[Element]]
) -> Element:
    """The link that no joint carries, if every other link hangs on it."""
    roots = [name for name in links if name not in carried]
    if len(roots) > 1:
        raise links[roots[1]].error(
            f"the links {short(roots[0])!r} (line {links[roots[0]].line}) and {short(roots[1])!r} are both without a "
            "parent joint, but a robot must have one root link; add a fixed joint between them.",
            code="not-a-tree",
        )
    visited, stack = set(roots), list(roots)
    while stack:
        below = [_link_name(joint, "child") for joint in children.get(stack.pop(), ())]
        visited.update(below)
        stack.extend(below)
    # Every link has at most one parent: one that the root does not reach hangs on a circle, or is part of it.
    for name, joint in carried.items():
        if name not in visited:
            raise joint.error(
                f"joint {short(joint.need('name'))!r} is part of a circle of links, or hangs on one; URDF describes "
                "trees only, so cut the loop here.",
                code="not-a-tree",
            )
    return links[roots[0]]


def resolved_mimics(
    joints: Mapping[str, Element], kinds: Mapping[str, JointKind], indices: Mapping[str, int]
) -> dict[str, Mimic]:
    """What every joint with <mimic> follows in the end: chains lead to the first joint that moves on its own.

    `kinds` and `indices` have the joints that move, by name; <mimic> of a fixed joint has no meaning and is skipped.
    """
    mimics = {name: joints[name].child("mimic") for name in kinds if name in joints}
    found: dict[str, Mimic] = {}
    for name in kinds:
        chain: dict[str, Element] = {}
        at, element = name, mimics.get(name)
        while element is not None and at not in found:
            if at in chain:
                raise element.error(
                    f"joint {short(at)!r} mimics itself in a circle; one joint of it must be free.", code="bad-mimicry"
                )
            source = element.need("joint")
            _check_source(element, at, source, joints, kinds)
            chain[at] = element
            at, element = source, mimics.get(source)
        for follower in reversed(chain):
            found[follower] = _composed(chain[follower], found, indices)
    return found


def _composed(element: Element, mimics: Mapping[str, Mimic], indices: Mapping[str, int]) -> Mimic:
    source, ratio, offset = element.need("joint"), element.number("multiplier", 1.0), element.number("offset", 0.0)
    if source not in mimics:
        return Mimic(indices[source], ratio, offset)
    first = mimics[source]
    ratio, offset = ratio * first.ratio, ratio * first.offset + offset
    if not (math.isfinite(ratio) and math.isfinite(offset)):
        raise element.error(
            "the product of the multipliers in this chain of mimic joints is beyond all floating-point numbers.",
            code="bad-mimicry",
        )
    return Mimic(first.source, ratio, offset)


def _check_source(
    element: Element, name: str, source: str, joints: Mapping[str, Element], kinds: Mapping[str, JointKind]
) -> None:
    if source not in joints:
        raise element.error(
            f"joint {short(name)!r} mimics the joint {short(source)!r}, but there is no such joint; correct the name, "
            'or read with mimic="ignore".',
            code="bad-mimicry",
        )
    dofs, other = kinds[name].nv, kinds[source].nv if source in kinds else 0
    if dofs != 1 or other != 1:
        raise element.error(
            f"joint {short(name)!r} has {dofs} degrees of freedom and mimics {short(source)!r}, which has {other}; "
            "both need exactly 1.",
            code="bad-mimicry",
        )
