"""Reads a robot from URDF.

Joints come depth first from the root link, the joints below a link in the order of their names, as Pinocchio has
them. What hangs on a fixed joint becomes part of the body above it; on the root link of a fixed robot, part of the
world (joint -1), whose inertia is of no effect.

Frames come in the same order: of every joint, then of the link below it. Their roles are "link", "joint", and "frame"
for fixed joints. A joint with the name of a link keeps it, but its frame is called name_joint, or name_joint2,
name_joint3 and so on if there is such a link or joint, too. A link named "world" is the world where it is fixed there,
as the root link of many files is; that of a link which is elsewhere is called world_link, that of a joint world_joint.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from itertools import count
from typing import Literal, TypeAlias, get_args

from delassus.common.checks import one_of
from delassus.errors import DelassusError, short
from delassus.model.formats import register_format
from delassus.model.joints import Free, JointKind
from delassus.model.model import Model
from delassus.model.moments import negative_moment
from delassus.model.parts import WORLD, WORLD_FRAME, ContactRules, Frame, Geometry, Joint, is_world
from delassus.model.placement import Inertia, Placement
from delassus.model.readers.documents.xml import Element, read_xml
from delassus.model.readers.srdf import with_srdf
from delassus.model.readers.urdf_geometry import Packages, PathName, Shapes, expanded
from delassus.model.readers.urdf_parts import Limits, inertia, joint_kind, limits, origin, triangle_warning
from delassus.model.readers.urdf_tree import UrdfTree, read_tree, resolved_mimics

Root: TypeAlias = Literal["fixed", "free"]
MimicMode: TypeAlias = Literal["reduce", "ignore"]
ROOT_JOINT = "root_joint"


@register_format("urdf", suffixes=(".urdf",), root_tag="robot", options=("root", "mimic", "packages", "srdf"))
def read_urdf(
    data: str | bytes,
    file: str = "<string>",
    *,
    root: Root = "fixed",
    mimic: MimicMode = "reduce",
    packages: Packages = (),
    srdf: PathName | None = None,
) -> Model:
    """The robot that a URDF document describes.

    `root="free"` puts a free joint "root_joint" under the root link, unless that link has no mass and carries but a
    floating joint: such a robot is free already. `mimic="ignore"` gives joints that mimic others coordinates of their
    own. `packages` says where meshes are, see `urdf_geometry`; `file` is the name in messages.
    `srdf` is the path of an SRDF file, or its text: pairs of links that do not touch, and postures.
    """
    for name, value, allowed in (("root", root, get_args(Root)), ("mimic", mimic, get_args(MimicMode))):
        one_of(name, value, allowed)
    robot = read_xml(data, file)
    warnings: list[str] = []
    tree = read_tree(robot, warnings)
    builder = _Builder(robot, tree, packages, warnings)
    builder.walk(free=root == "free")
    model = builder.model(mimic)
    if srdf is None:
        return model
    text = os.fspath(srdf)
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        return with_srdf(model, text)
    try:
        return with_srdf(model, expanded(text).read_bytes(), text)
    except OSError as error:
        raise DelassusError(f"the SRDF {text!r} cannot be read: {error.strerror}.", code="missing-file") from None


class _Builder:
    """Collects joints, frames and shapes along the tree."""

    def __init__(self, robot: Element, tree: UrdfTree, packages: Packages, warnings: list[str]) -> None:
        self.robot = robot
        self.tree = tree
        self.warnings = warnings
        self.shapes = Shapes(robot, packages, warnings)
        self.frame_names = _frame_names(tree)
        self.joints: list[tuple[str, JointKind, int, Placement, Limits]] = []
        self.bodies: list[tuple[Element, Inertia]] = []  # the link that the joint carries, and all that is fixed to it
        self.suspects: list[tuple[Element, int, float]] = []  # links with a negative moment, and their bodies
        self.base = Inertia()  # of all that is fixed to the world
        self.frames: list[Frame] = []
        self.geometries: list[Geometry] = []

    def walk(self, free: bool) -> None:
        """Visits the tree depth first, without recursion, as chains may be longer than Python's stack."""
        root = self.tree.root
        body = WORLD
        if free and not self._is_free_already(root):
            if ROOT_JOINT in self.tree.joints:
                raise self.tree.joints[ROOT_JOINT].error(
                    f'the name {ROOT_JOINT!r} is taken by root="free"; rename this joint or use root="fixed".',
                    code="duplicate-name",
                )
            body = self._add_joint(ROOT_JOINT, Free(), WORLD, Placement(), {}, root)
        self._add_link(root, body, Placement())
        stack = [(joint, body, Placement()) for joint in self._below(root)]
        while stack:
            joint, parent, offset = stack.pop()
            name, child = joint.need("name"), self.tree.child(joint)
            kind, placement = joint_kind(joint), offset * origin(joint)
            if kind is None:
                self.frames.append(Frame(self.frame_names[name], parent, placement, "frame"))
                body = parent
            else:
                body = self._add_joint(name, kind, parent, placement, limits(joint, kind, self.warnings), child)
                placement = Placement()
            self._add_link(child, body, placement)
            stack.extend((below, body, placement) for below in self._below(child))

    def _below(self, link: Element) -> list[Element]:
        # A stack returns the last first. Strings compare by code points, which is how UTF-8 compares as bytes.
        return sorted(self.tree.below(link), key=lambda joint: joint.need("name"), reverse=True)

    def _is_free_already(self, root: Element) -> bool:
        below = self.tree.below(root)
        if len(below) != 1 or not isinstance(joint_kind(below[0]), Free) or inertia(root) != Inertia():
            return False
        self.warnings.append(
            f"{below[0].file}:{below[0].line}: joint {short(below[0].need('name'))!r} lets the robot move freely "
            f"already, so {ROOT_JOINT!r} is not added."
        )
        return True

    def _add_joint(
        self, name: str, kind: JointKind, parent: int, placement: Placement, limits: Limits, link: Element
    ) -> int:
        index = len(self.joints)
        self.joints.append((name, kind, parent, placement, limits))
        self.bodies.append((link, Inertia()))
        self.frames.append(Frame(self.frame_names[name], index, Placement(), "joint"))
        return index

    def _add_link(self, link: Element, body: int, placement: Placement) -> None:
        self.frames.append(Frame(self._link_name(link, body, placement), body, placement, "link"))
        self.geometries.extend(self.shapes.of(link, body, placement))
        link_inertia = inertia(link)
        self.warnings.extend(triangle_warning(link, link_inertia))
        moment = negative_moment(link_inertia)
        if moment is not None:
            self.suspects.append((link, body, moment))
        if body == WORLD:
            self.base += link_inertia.transform(placement)
        else:
            moving_link, total = self.bodies[body]
            self.bodies[body] = (moving_link, total + link_inertia.transform(placement))

    def _link_name(self, link: Element, body: int, placement: Placement) -> str:
        """The name of a link's frame: the link's own, unless it is that of the world and the link is elsewhere."""
        name = link.need("name")
        if name != WORLD_FRAME.name or is_world(body, placement):
            return name
        other = _other_name(f"{name}_link", {*self.tree.links, *self.frame_names.values()})
        self.warnings.append(
            f"{link.file}:{link.line}: link {name!r} is not where the world is, which has this name in every model; "
            f"its frame is called {other!r}."
        )
        return other

    def _warn_of_moments(self) -> None:
        """A negative moment is no body's, but files have them and other readers take them: a warning, not an error."""
        for link, body, moment in self.suspects:
            inertial = link.child("inertial") or link
            at = inertial.child("inertia") or inertial
            name = short(link.need("name"))
            text = f"{at.file}:{at.line}: link {name!r} has the principal moment {moment:.6g} kg·m², which is negative."
            body_inertia = self.base if body == WORLD else self.bodies[body][1]
            if negative_moment(body_inertia) is None:
                self.warnings.append(f"{text} What it is fixed to outweighs it.")
            else:
                self.warnings.append(
                    f"{text} No body has one, so motions can gain energy from nowhere; check the signs of ixy, ixz, "
                    "iyz and the order of the moments."
                )

    def model(self, mimic: MimicMode) -> Model:
        """All of it."""
        self._warn_of_moments()
        indices = {name: k for k, (name, *_) in enumerate(self.joints)}
        kinds = {name: kind for name, kind, *_ in self.joints}
        followers = resolved_mimics(self.tree.joints, kinds, indices) if mimic == "reduce" else {}
        joints = []
        for (name, kind, parent, placement, bounds), (link, body) in zip(self.joints, self.bodies, strict=True):
            if body.mass == 0.0:
                self.warnings.append(
                    f"{link.file}:{link.line}: link {short(link.need('name'))!r} moves and has no mass, nor has what "
                    "is fixed to it; forward dynamics fails unless bodies further out have some."
                )
            follows = followers.get(name)
            joints.append(Joint(name, kind, parent, placement, body, mimic=follows, **bounds))
        powerless = [joint.name for joint in joints if joint.effort_limit == (0.0,)]
        if powerless:
            self.warnings.append(
                f"{self.robot.file}: the effort limit of {len(powerless)} joints is 0, so torques have no effect on "
                f"them: {short(', '.join(powerless))}."
            )
        self.shapes.finish()
        return Model(
            self.robot.get("name") or "robot",
            tuple(joints),
            tuple(self.frames),
            geometries=tuple(self.geometries),
            contact_rules=ContactRules(world_is_parent=True),
            base_inertia=self.base,
            warnings=tuple(self.warnings),
        )


def _frame_names(tree: UrdfTree) -> Mapping[str, str]:
    """The names of the joints' frames, by those of the joints."""
    names, taken = {}, {*tree.links, *tree.joints}
    for joint in (ROOT_JOINT, *sorted(tree.joints)):
        shared = joint in tree.links or joint == WORLD_FRAME.name
        names[joint] = _other_name(f"{joint}_joint", taken) if shared else joint
        taken.add(names[joint])
    return names


def _other_name(name: str, taken: Set[str]) -> str:
    """A name that is not taken: itself, or with the first number from 2 that makes it so."""
    return next(c for k in count(1) if (c := f"{name}{k if k > 1 else ''}") not in taken)
