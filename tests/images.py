"""The same physics described otherwise: mirror images, other orders, links that are split, other names.

An `Image` is a robot that moves as another does, and says how its numbers follow from those of the other: q' = Q q,
v' = V v, and so for accelerations and torques, with V orthogonal; points of the world are at p' = P p, with P the
identity or a reflection, and rotations are P R P. Rotation vectors and torques of a mirror image are turned round, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.linalg import block_diag

import delassus as dl
from delassus.constraints.basis.frame_constraint import FrameConstraint
from delassus.model.joints import rotation_to_axis
from delassus.model.model import Model
from delassus.model.parts import WORLD, Frame, Joint
from delassus.model.placement import HERE, Inertia, Placement


@dataclass(frozen=True, eq=False)
class Image:
    """A model, how its numbers follow from those of another, and where each of its bodies is found there."""

    model: Model
    Q: Any
    V: Any
    P: Any
    bodies: tuple[int, ...]
    constraint: Callable[[Any], Any] = lambda c: c

    @classmethod
    def like(cls, original: Model, model: Model, **fields: Any) -> "Image":
        """One with the same coordinates, but for what is said otherwise."""
        same = {"Q": np.eye(original.nq), "V": np.eye(original.nv), "P": np.eye(3)}
        return cls(model, **same | {"bodies": tuple(range(original.njoints))} | fields)

    def turned(self, R: Any) -> Any:
        """Rotations (…, 3, 3) of the original."""
        return self.P @ R @ self.P

    def mechanism(self, mechanism: dl.Mechanism) -> tuple[dl.Mechanism, Any]:
        """The image of a mechanism, and W (m, m) that takes its rows."""
        image = dl.Mechanism(self.model, [self.constraint(c) for c in mechanism.constraints], model_constraints=False)
        return image, block_diag(*(self._rows(mechanism.model, c) for c in mechanism.constraints))

    def _rows(self, model: Model, c: Any) -> Any:
        """What takes the rows of a constraint."""
        if isinstance(c, dl.Distance):
            return np.eye(1)
        if isinstance(c, FrameConstraint):
            rows = list(c.rows)
            return block_diag(self.P, np.linalg.det(self.P) * self.P)[np.ix_(rows, rows)]
        if isinstance(c, dl.JointLock):
            start = model.v_starts[model.joint_index(c.joint)]
            there = self.model.v_starts[self.bodies.index(model.joint_index(c.joint))]
            rows = np.array(c.velocities(model)) - start
            return self.V[np.ix_(there + rows, start + rows)]
        return np.eye(c.count(model))


# --- mirror images ----------------------------------------------------------------------------------------------------


def mirror(model: Model, normal: Any) -> Image:
    """The image behind a mirror through the origin, across a unit vector (3,)."""
    P = np.eye(3) - 2.0 * np.outer(normal, normal)
    parts = [_mirrored_joint(joint, P) for joint in model.joints]
    own = [(Q, V) for (joint, Q, V) in parts if joint.mimic is None]
    image = replace(
        model,
        joints=tuple(joint for joint, _, _ in parts),
        frame_list=tuple(replace(f, placement=mirrored_placement(f.placement, P)) for f in model.frame_list),
        gravity=tuple((P @ model.gravity).tolist()),
    )
    maps = {"Q": block_diag(*(Q for Q, _ in own)), "V": block_diag(*(V for _, V in own))}
    return Image.like(model, image, P=P, constraint=lambda c: _mirrored_constraint(c, P, maps["V"], model), **maps)


def mirrored_placement(placement: Placement, P: Any) -> Placement:
    """The image of a frame."""
    return Placement.of(P @ placement.R @ P, P @ placement.p)


def _mirrored_joint(joint: Joint, P: Any) -> tuple[Joint, Any, Any]:
    """The image of a joint, and what takes its coordinates and velocities. Turns go the other way round -P a."""
    kind, Q, V = _mirrored_kind(joint.kind, P)
    body = joint.inertia
    inertia = Inertia.of(body.mass, P @ body.com, P @ body.rotational @ P)
    image = replace(joint, kind=kind, placement=mirrored_placement(joint.placement, P), inertia=inertia)
    return image, Q, V


def _mirrored_kind(kind: dl.JointKind, P: Any) -> tuple[dl.JointKind, Any, Any]:
    one = np.eye(1)
    match kind:
        case dl.Revolute(axis):
            return replace(kind, axis=_direction(-P, axis)), one, one
        case dl.Prismatic(axis):
            return dl.Prismatic(_direction(P, axis)), one, one
        case dl.Helical(axis, pitch):
            return dl.Helical(_direction(-P, axis), -pitch), one, one
        case dl.Cylindrical(axis):
            return dl.Cylindrical(_direction(P, axis)), np.diag([1.0, -1.0]), np.diag([1.0, -1.0])
        case dl.Universal(first, second):
            return dl.Universal(_direction(-P, first), _direction(-P, second)), np.eye(2), np.eye(2)
        case dl.Planar(normal):
            image = dl.Planar(_direction(P, normal))
            across = (rotation_to_axis(image.normal).T @ P @ rotation_to_axis(normal))[:2, :2]
            return image, block_diag(across, -one), block_diag(across, -one)
        case dl.Translation():
            return kind, P, P
        case dl.Spherical():
            return kind, block_diag(-P, one), -P
        case dl.Free():
            return kind, block_diag(P, -P, one), block_diag(P, -P)
    raise TypeError(f"no mirror image of {kind!r} is known.")


def _direction(P: Any, axis: Any) -> Any:
    return tuple((P @ axis).tolist())


def _mirrored_constraint(c: Any, P: Any, V: Any, model: Model) -> Any:
    image = Image(model, None, V, P, tuple(range(model.njoints)))
    wanted = image._rows(model, c) @ c.per_row("acceleration", c.count(model))
    fields: dict[str, Any] = {"acceleration": tuple(wanted.tolist())}
    if isinstance(c, FrameConstraint):
        fields |= {name: mirrored_placement(getattr(c, name), P) for name in ("placement", "placement2")}
    if isinstance(c, dl.Point) and c.position is not None:
        fields["position"] = P @ c.position
    if isinstance(c, dl.Weld) and c.target is not None:
        fields["target"] = mirrored_placement(c.target, P)
    return replace(c, **fields)


# --- order and names --------------------------------------------------------------------------------------------------


def reordered(model: Model, rng: np.random.Generator) -> Image:
    """The joints in another order, parents still before their children."""
    order: list[int] = []
    while len(order) < model.njoints:
        ready = [i for i, j in enumerate(model.joints) if i not in order and j.parent in (WORLD, *order)]
        order.append(int(rng.choice(ready)))
    number = {WORLD: WORLD} | {old: new for new, old in enumerate(order)}
    joints = []
    for old in order:
        joint = model.joints[old]
        mimic = joint.mimic and replace(joint.mimic, source=number[joint.mimic.source])
        joints.append(replace(joint, parent=number[joint.parent], mimic=mimic))
    frames = tuple(replace(frame, joint=number[frame.joint]) for frame in model.frame_list)
    image = replace(model, joints=tuple(joints), frame_list=frames)
    own = [old for old in order if model.joints[old].mimic is None]
    q = [model.q_starts[old] + k for old in own for k in range(model.joints[old].kind.nq)]
    v = [model.v_starts[old] + k for old in own for k in range(model.joints[old].kind.nv)]
    return Image.like(model, image, Q=np.eye(model.nq)[q], V=np.eye(model.nv)[v], bodies=tuple(order))


def renamed(model: Model) -> Image:
    """All joints, frames and constraints under other names, in another order of the alphabet."""

    def other(name: Any) -> Any:
        return None if name is None else f"{name}"[::-1] + " too"

    image = replace(
        model,
        name=other(model.name),
        joints=tuple(replace(joint, name=other(joint.name)) for joint in model.joints),
        frame_list=tuple(replace(frame, name=other(frame.name)) for frame in model.frame_list),
    )

    def constraint(c: Any) -> Any:
        fields = [name for name in ("frame", "frame2", "joint", "joint2") if hasattr(c, name)]
        return replace(c, name=f"row {c.name}", **{name: other(getattr(c, name)) for name in fields})

    return Image.like(model, image, constraint=constraint)


# --- links that are split ---------------------------------------------------------------------------------------------


def split(model: Model, k: int, rng: np.random.Generator, rotation: Any) -> Image:
    """The body of joint k in two parts, with a joint between them that is locked: a fixed joint.

    The second part has a frame of its own, turned by `rotation` (3, 3), and carries some of what the body carries.
    """
    X = Placement.of(rotation, rng.uniform(-0.5, 0.5, 3))
    share, back = rng.uniform(0.1, 0.9), X.inverse()
    body = model.joints[k].inertia
    parts = [Inertia.of(s * body.mass, body.com, s * np.array(body.rotational)) for s in (share, 1.0 - share)]
    between, coordinates = _between(rng, X)
    joints = [
        *model.joints[:k],
        replace(model.joints[k], inertia=parts[0]),
        replace(between, parent=k, inertia=parts[1].transform(back)),
        *model.joints[k + 1 :],
    ]

    def carried(on: int, placement: Placement) -> tuple[int, Placement]:
        if on == k and rng.integers(2):
            return k + 1, back * placement
        return on + (on > k), placement

    for i in range(k + 2, len(joints)):
        parent, placement = carried(joints[i].parent, joints[i].placement)
        mimic = joints[i].mimic
        mimic = mimic and replace(mimic, source=mimic.source + (mimic.source > k))
        joints[i] = replace(joints[i], parent=parent, placement=placement, mimic=mimic)
    frames = tuple(Frame(f.name, *carried(f.joint, f.placement), f.role) for f in model.frame_list)
    whole = replace(model, joints=tuple(joints), frame_list=frames)
    at = whole.q_starts[k + 1]
    q = whole.neutral()
    q[at : at + len(coordinates)] = coordinates
    return Image.like(model, whole.lock(between.name, q=q))


def _between(rng: np.random.Generator, X: Placement) -> tuple[Joint, Any]:
    """A joint, and coordinates that it has where its body is at X."""
    way = rng.integers(3)
    if way == 0:
        return Joint("between", dl.Prismatic(), placement=X), [0.0]
    if way == 1:
        return Joint("between", dl.Free(), placement=HERE), pin.SE3ToXYZQUAT(pin.SE3(X.R, X.p))
    axis, angle = rng.normal(size=3), rng.uniform(-3.0, 3.0)
    axis /= np.linalg.norm(axis)
    start = X * Placement.of(pin.exp3(-angle * axis))
    return Joint("between", dl.Revolute(tuple(axis.tolist())), placement=start), [angle]
