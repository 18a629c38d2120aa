"""Cassie, of example-robot-data's SDF: a biped whose legs have springs and closed loops, which URDF cannot say.

Pinocchio's wheels are built without SDF, so this reads as much of it as that file needs: links with poses in the
model's frame, joints with poses in their child's, revolute joints for the tree, ball joints where a link has a parent
already.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

import delassus as dl
from delassus.model import WORLD, Frame, Free, Joint, Posture, Revolute
from delassus.model.equality import Connect

Element = ElementTree.Element


def load_cassie(folder: Path) -> dl.Model:
    """Cassie on a free pelvis: 28 velocities and four balls that close loops, closed in the posture "home"."""
    sdf = ElementTree.parse(folder / "cassie_description/robots/cassie_v2.sdf").getroot().find("model")
    assert sdf is not None
    reader = _Reader(sdf)
    pelvis = reader.links["pelvis"]
    reader.joints.append(Joint("root_joint", Free(), WORLD, inertia=_inertia(pelvis)))
    reader.frames.append(Frame("pelvis", 0, role="link"))
    reader.carry("pelvis", 0, dl.Placement())
    reader.tie()
    start = (*_pose(pelvis).translation, 0.0, 0.0, 0.0, 1.0)
    home = Posture("home", (*start, *[0.0] * (len(reader.joints) - 1)))
    return dl.Model(
        "cassie", tuple(reader.joints), tuple(reader.frames), constraints=tuple(reader.ties), postures=(home,)
    )


@dataclass
class _Reader:
    """The tree as it grows; `bodies` are the joint that carries each link, and the link's frame on its body."""

    sdf: Element
    joints: list[Joint] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    ties: list[Connect] = field(default_factory=list)
    bodies: dict[str, tuple[int, dl.Placement]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.links = {link.get("name", ""): link for link in self.sdf.findall("link")}

    def carry(self, link: str, joint: int, placement: dl.Placement) -> None:
        """All that hangs on a link, depth first, as Pinocchio wants it."""
        self.bodies[link] = (joint, placement)
        for element in self.sdf.findall("joint"):
            if element.findtext("parent") != link or element.get("type") != "revolute":
                continue
            child = element.findtext("child", "")
            in_child = _pose(element)
            inside = in_child.inverse()  # the child's frame on the body, whose frame is the joint's
            between = _pose(self.links[link]).inverse() * _pose(self.links[child]) * in_child
            axis = np.array(element.findtext("axis/xyz", "").split(), float)
            self.joints.append(
                Joint(
                    element.get("name", ""),
                    Revolute(tuple(axis.tolist())),
                    joint,
                    placement * between,
                    _inertia(self.links[child]).transform(inside),
                )
            )
            self.frames.append(Frame(child, len(self.joints) - 1, inside, role="link"))
            self.carry(child, len(self.joints) - 1, inside)

    def tie(self) -> None:
        """Balls between links that hang on others: a point of the child, and where the parent has it at first."""
        for element in self.sdf.findall("joint"):
            if element.get("type") != "ball":
                continue
            name, parent, child = element.get("name", ""), element.findtext("parent", ""), element.findtext("child", "")
            at_child = _pose(element)
            at_parent = _pose(self.links[parent]).inverse() * _pose(self.links[child]) * at_child
            for end, link, place in (("parent", parent, at_parent), ("child", child, at_child)):
                joint, placement = self.bodies[link]
                self.frames.append(Frame(f"{name}_{end}", joint, placement * place))
            self.ties.append(Connect(name, f"{name}_parent", f"{name}_child"))


def _pose(element: Element) -> dl.Placement:
    numbers = [float(x) for x in element.findtext("pose", "0 0 0 0 0 0").split()]
    return dl.Placement.from_xyz_rpy(numbers[:3], numbers[3:])


def _inertia(link: Element) -> dl.model.Inertia:
    inertial = link.find("inertial")
    assert inertial is not None
    xx, yy, zz, xy, xz, yz = (
        float(inertial.findtext(f"inertia/i{k}", "0")) for k in ("xx", "yy", "zz", "xy", "xz", "yz")
    )
    moments = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    return dl.model.Inertia.of(float(inertial.findtext("mass", "0")), rotational=moments).transform(_pose(inertial))
