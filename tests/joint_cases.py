"""Mechanisms with joints of every kind in random states, here and in Pinocchio."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
from hypothesis import strategies as st

import delassus as dl
from delassus.model.joints import (
    Cylindrical,
    Revolute,
    Spherical,
)
from delassus.model.model import Model
from delassus.model.parts import Frame, Joint
from delassus.model.placement import Inertia, Placement

X, Y, Z = np.eye(3)


def random_axis(rng):
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def random_rotation(rng):
    return pin.Quaternion(*random_quaternion(rng)).matrix()


def random_quaternion(rng):
    quaternion = rng.normal(size=4)
    return quaternion / np.linalg.norm(quaternion)


def random_placement(rng):
    return pin.SE3(random_rotation(rng), rng.uniform(-0.5, 0.5, 3))


def random_inertia(rng):
    """A box of 0.1 to 0.5 m."""
    size, mass, axes = rng.uniform(0.1, 0.5, 3), rng.uniform(0.5, 5.0), random_rotation(rng)
    moments = mass / 12 * (np.sum(size**2) - size**2)
    return pin.Inertia(mass, rng.uniform(-0.2, 0.2, 3), axes @ np.diag(moments) @ axes.T)


def continuous_about(axis):
    """Pinocchio's continuous joint about any axis, which can be had from URDF only."""
    xyz = " ".join(map(repr, axis.tolist()))
    ends = '<parent link="a"/><child link="b"/>'
    joint = f'<joint name="j" type="continuous">{ends}<axis xyz="{xyz}"/></joint>'
    return pin.buildModelFromXML(f'<robot name="r"><link name="a"/><link name="b"/>{joint}</robot>').joints[1]


def universal(rng):
    first, second = random_rotation(rng)[:, :2].T
    return pin.JointModelUniversal(first.copy(), second.copy())


KINDS: dict[str, Callable[[Any], Any]] = {
    "free": lambda rng: pin.JointModelFreeFlyer(),
    "spherical": lambda rng: pin.JointModelSpherical(),
    "planar": lambda rng: pin.JointModelPlanar(),
    "translation": lambda rng: pin.JointModelTranslation(),
    "revolute x": lambda rng: pin.JointModelRX(),
    "revolute y": lambda rng: pin.JointModelRY(),
    "revolute z": lambda rng: pin.JointModelRZ(),
    "revolute": lambda rng: pin.JointModelRevoluteUnaligned(random_axis(rng)),
    "continuous x": lambda rng: pin.JointModelRUBX(),
    "continuous y": lambda rng: pin.JointModelRUBY(),
    "continuous z": lambda rng: pin.JointModelRUBZ(),
    "continuous": lambda rng: continuous_about(random_axis(rng)),
    "prismatic x": lambda rng: pin.JointModelPX(),
    "prismatic y": lambda rng: pin.JointModelPY(),
    "prismatic z": lambda rng: pin.JointModelPZ(),
    "prismatic": lambda rng: pin.JointModelPrismaticUnaligned(random_axis(rng)),
    "helical x": lambda rng: pin.JointModelHX(rng.uniform(-0.5, 0.5)),
    "helical y": lambda rng: pin.JointModelHY(rng.uniform(-0.5, 0.5)),
    "helical z": lambda rng: pin.JointModelHZ(rng.uniform(-0.5, 0.5)),
    "helical": lambda rng: pin.JointModelHelicalUnaligned(random_axis(rng), rng.uniform(-0.5, 0.5)),
    "universal": universal,
}
EACH = [name for name in KINDS if name[-2:] not in (" x", " y", " z")] + ["revolute y", "continuous z", "prismatic x"]


@dataclass
class Case:
    """A mechanism in a random state, here and in Pinocchio."""

    model: Model
    theirs: Any
    q: Any
    v: Any
    a: Any

    def __post_init__(self) -> None:
        self.data = self.theirs.createData()

    @property
    def pq(self):
        return dl.q_to_pinocchio(self.model, self.q)


def mechanism(kinds, parents, seed, armature=False) -> Case:
    rng = np.random.default_rng(seed)
    theirs = pin.Model()
    for k, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        i = theirs.addJoint(parent, KINDS[kind](rng), random_placement(rng), f"{kind} {k}")
        theirs.appendBodyToJoint(i, random_inertia(rng), random_placement(rng))
        theirs.addFrame(pin.Frame(f"frame {k}", i, 0, random_placement(rng), pin.FrameType.OP_FRAME))
    if armature:
        theirs.armature = rng.uniform(0.1, 1.0, theirs.nv)
    model = dl.from_pinocchio(theirs)
    return Case(model, theirs, model.random_configuration(rng), *rng.normal(size=(2, model.nv)))


@st.composite
def mechanisms(draw):
    """One to seven joints of any kinds; a joint hangs on any one before it, so subtrees need not be contiguous."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=7))
    parents = [draw(st.integers(0, k)) for k in range(len(kinds))]
    return mechanism(kinds, parents, draw(st.integers(0, 2**32 - 1)), draw(st.booleans()))


@cache
def with_all_kinds(armature) -> Case:
    rng = np.random.default_rng(5)
    kinds = rng.permutation(EACH).tolist()
    return mechanism(kinds, [int(rng.integers(max(0, k - 2), k + 1)) for k in range(len(kinds))], 6, armature)


def mass_matrix(c: Case):
    """Columns of inverse dynamics without gravity: Pinocchio's crba assumes that subtrees are contiguous."""
    m = c.theirs.copy()
    m.gravity = pin.Motion.Zero()
    d, still = m.createData(), np.zeros(m.nv)
    return np.stack([pin.rnea(m, d, c.pq, still, e) for e in np.eye(m.nv)], axis=1)


def placement(M) -> Placement:
    return Placement.of(M.rotation, M.translation)


def body(Y) -> Inertia:
    return Inertia.of(Y.mass, Y.lever, Y.inertia)


@cache
def cylindrical() -> tuple[Case, Case]:
    """A revolute, a cylindrical and a spherical joint; Pinocchio's with a prismatic and a revolute one for the second.

    The first case has Pinocchio's bodies without the one in between, the second the model with it.
    """
    rng = np.random.default_rng(8)
    axis = random_axis(rng)
    mounts, inertias = [random_placement(rng) for _ in range(3)], [random_inertia(rng) for _ in range(3)]
    kinds = (Revolute((1.0, 0.0, 0.0)), Cylindrical(tuple(axis.tolist())), Spherical())
    joints = [Joint(f"j{k}", kinds[k], k - 1, placement(mounts[k]), body(inertias[k])) for k in range(3)]
    model = Model("with a cylindrical joint", tuple(joints), (Frame("frame 2", 2),))
    theirs, parent = pin.Model(), 0
    for kind, mount, inertia in (
        (pin.JointModelRX(), mounts[0], inertias[0]),
        (pin.JointModelPrismaticUnaligned(axis), mounts[1], pin.Inertia.Zero()),
        (pin.JointModelRevoluteUnaligned(axis), pin.SE3.Identity(), inertias[1]),
        (pin.JointModelSpherical(), mounts[2], inertias[2]),
    ):
        parent = theirs.addJoint(parent, kind, mount, f"joint {parent}")
        theirs.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    theirs.addFrame(pin.Frame("frame 2", parent, 0, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    q, (v, a) = model.random_configuration(rng), rng.normal(size=(2, model.nv))
    return Case(model, theirs, q, v, a), Case(dl.from_pinocchio(theirs), theirs, q, v, a)
