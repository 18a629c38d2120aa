"""Models and loops of ours in Pinocchio: the same joints, bodies, frames and coordinates, closed by the same ties."""

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

import delassus as dl
from delassus.model.joints import Free, Planar, Prismatic, Revolute, Spherical, Translation, Universal
from delassus.model.model import Model
from delassus.model.parts import Joint
from delassus.model.placement import Inertia, Placement

ROWS = ("x", "y", "z", "rx", "ry", "rz")


class Loop(NamedTuple):
    """Two frames tied together, as plain data; without `frame2`, a frame is held where it is in the world.

    `kind` is "point" (origins coincide), "weld" (frames do) or "hinge" (frames may turn about `axis` of the first).
    `rows` are the names of those that act, all of the kind if it is None.
    """

    kind: str
    frame1: str
    frame2: str | None
    rows: tuple[str, ...] | None = None
    axis: str = "z"

    @property
    def chosen(self) -> list[int]:
        """The rows that act: 0, 1, 2 along the axes of the first frame, 3, 4, 5 about them."""
        all_rows = {"point": ROWS[:3], "weld": ROWS, "hinge": tuple(row for row in ROWS if row != f"r{self.axis}")}
        return [ROWS.index(row) for row in (self.rows or all_rows[self.kind])]


def to_pinocchio(model: Model) -> pin.Model:
    """Pinocchio's model of ours; no joint mimics another. `q_to_pinocchio` translates configurations."""
    theirs = pin.Model()
    theirs.name = model.name
    theirs.gravity = pin.Motion(np.array(model.gravity), np.zeros(3))
    for joint in model.joints:
        i = theirs.addJoint(joint.parent + 1, _kind(joint), se3(joint.placement), joint.name)
        theirs.appendBodyToJoint(i, _inertia(joint.inertia), pin.SE3.Identity())
        if joint.armature:
            start = theirs.joints[i].idx_v
            theirs.armature[start : start + joint.kind.nv] = joint.armature
    for frame in (frame for frame in model.frame_list if frame.name != "universe"):  # theirs has one
        theirs.addFrame(pin.Frame(frame.name, frame.joint + 1, 0, se3(frame.placement), pin.FrameType.OP_FRAME))
    return theirs


def se3(placement: Placement) -> pin.SE3:
    """A placement as theirs."""
    return pin.SE3(placement.R, placement.p)


def _inertia(body: Inertia) -> pin.Inertia:
    return pin.Inertia(body.mass, np.array(body.com), np.array(body.rotational))


def _kind(joint: Joint) -> Any:
    kind = joint.kind
    assert joint.mimic is None, f"{joint.name} mimics another joint"
    if isinstance(kind, Revolute):
        return _about(kind) or pin.JointModelRevoluteUnaligned(np.array(kind.axis))
    if isinstance(kind, Prismatic):
        return pin.JointModelPrismaticUnaligned(np.array(kind.axis))
    if isinstance(kind, Universal):
        return pin.JointModelUniversal(np.array(kind.first), np.array(kind.second))
    simple = {
        Free: pin.JointModelFreeFlyer,
        Spherical: pin.JointModelSpherical,
        Translation: pin.JointModelTranslation,
        Planar: pin.JointModelPlanar,
    }
    return simple[type(kind)]()


def _about(kind: Revolute) -> Any:
    """Their joint about x, y or z, which is faster than one about any axis; a continuous one has no other here."""
    axes = np.eye(3).tolist()
    if list(kind.axis) not in axes:
        assert not kind.continuous, f"no continuous joint about {kind.axis} can be made from Python"
        return None
    letter = "XYZ"[axes.index(list(kind.axis))]
    return getattr(pin, f"JointModelR{'UB' if kind.continuous else ''}{letter}")()


def rigid_constraints(theirs: pin.Model, loops: tuple[Loop, ...]) -> tuple[Any, Any]:
    """Their constraint models and data, which know all rows of a point or a weld, and nothing else."""
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in loops:
        complete = {"point": [0, 1, 2], "weld": [0, 1, 2, 3, 4, 5]}
        if loop.chosen != complete.get(loop.kind):
            raise ValueError(f"Pinocchio has no constraint like {loop}: it knows complete points and welds.")
        kind = pin.ContactType.CONTACT_3D if loop.kind == "point" else pin.ContactType.CONTACT_6D
        models.append(pin.RigidConstraintModel(kind, theirs, *_end(theirs, loop.frame1), *_other(theirs, loop)))
        datas.append(models[-1].createData())
    return models, datas


def _end(theirs: pin.Model, name: str) -> tuple[int, pin.SE3]:
    frame = theirs.frames[theirs.getFrameId(name)]
    return frame.parentJoint, frame.placement


def _other(theirs: pin.Model, loop: Loop) -> tuple[Any, ...]:
    return (pin.LOCAL,) if loop.frame2 is None else (*_end(theirs, loop.frame2), pin.LOCAL)


def rigid_contacts(mechanism: dl.Mechanism, theirs: pin.Model) -> tuple[Any, Any]:
    """The contacts of a mechanism with the world in Pinocchio, and their data."""
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for c in mechanism.constraints:
        frame = theirs.frames[theirs.getFrameId(c.frame)]
        placement = frame.placement * pin.SE3(c.placement.R, c.placement.p)
        kind = pin.ContactType.CONTACT_3D if c.most == 3 else pin.ContactType.CONTACT_6D
        models.append(pin.RigidConstraintModel(kind, theirs, frame.parentJoint, placement, pin.LOCAL))
        datas.append(models[-1].createData())
    return models, datas
