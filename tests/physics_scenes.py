"""What the suite of physics moves: bodies, and the points with which they touch, for rooms that are told points."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import delassus as dl
from delassus.model import Frame, Joint
from delassus.model.bundled.build import Assembly, Free, Part, Prismatic, ball, box
from delassus.model.parts import Geometry
from delassus.model.transmission import Tendon

G = 9.81


@dataclass(frozen=True, eq=False)
class Scene:
    """A model, the contacts that its shapes have, pairs of shapes that may touch, and which ones touch the ground."""

    model: dl.Model
    contacts: tuple[dl.Contact, ...] = ()
    colliding: tuple[tuple[str, str], ...] = ()
    touching: str = "*"

    @property
    def touch(self) -> dict[str, Any]:
        """What `rollout` is told of it."""
        return {"contacts": self.contacts, "colliding": self.colliding, "touching": self.touching}


def corners(sides: Any) -> list[tuple[float, ...]]:
    return [tuple(0.5 * s * x for s, x in zip(signs, sides, strict=True)) for signs in product((-1, 1), repeat=3)]


def free_body(part: Part, gravity: float = G, name: str = "body") -> Scene:
    """A body of one shape on a free joint, that touches the ground."""
    a = Assembly(name)
    a.body(name, Free(), None, (0, 0, 0), [part])
    if part.shape == "sphere":
        contacts = (dl.Contact(name, radius=part.size[0]),)
    elif part.shape == "box":
        contacts = (dl.Contact(name, corners=corners(part.size)),)
    else:
        contacts = ()
    return Scene(replace(a.model(), gravity=(0.0, 0.0, -gravity)), contacts)


def free_box(sides: Any, mass: float, gravity: float = G) -> Scene:
    return free_body(box(sides, mass), gravity)


def free_ball(radius: float, mass: float, gravity: float = G) -> Scene:
    return free_body(ball(radius, mass), gravity)


SLAB = free_box((0.3, 0.3, 0.06), 2.0)


def at(scene: Scene, count: int, height: float = 0.0) -> np.ndarray:
    """Configurations (count, nq) at a height."""
    q = np.tile(scene.model.neutral(), (count, 1))
    q[:, 2] = height
    return q


def random_turns(rng: np.random.Generator, count: int) -> np.ndarray:
    """Quaternions (count, 4), evenly distributed."""
    x = rng.normal(size=(count, 4))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


# --- bodies that touch each other -------------------------------------------------------------------------------------


def along(axis: str, offset: float) -> dl.Placement:
    """A frame whose z axis is an axis of the body, at an offset along it: a face."""
    turn = {"x": (0.0, np.pi / 2, 0.0), "y": (-np.pi / 2, 0.0, 0.0), "z": (0.0, 0.0, 0.0)}[axis]
    return dl.Placement.from_xyz_rpy([offset * (axis == a) for a in "xyz"], turn)


def balls_on_a_rail(masses: Any, radius: float = 0.1) -> Scene:
    """Balls on one rail along x; coordinates are their places."""
    a = Assembly("balls on a rail")
    for k, mass in enumerate(masses):
        a.body(f"ball{k}", Prismatic((1, 0, 0)), None, (0, 0, 0), [ball(radius, mass)])
        a.frame(f"face{k}", f"ball{k}", along("x", radius))
    pairs = range(len(masses) - 1)
    contacts = [dl.Contact(f"ball{k + 1}", f"face{k}", corners=[(-radius, 0, 0)]) for k in pairs]
    model = replace(a.model(), gravity=(0.0, 0.0, 0.0))
    return Scene(model, tuple(contacts), tuple((f"ball{k}_0", f"ball{k + 1}_0") for k in pairs))


def ball_and_box(gravity: float = 0.0) -> Scene:
    """A ball of 1 kg, and a box of 2 kg whose upper face it may strike; both are free."""
    a = Assembly("ball and box")
    a.body("box", Free(), None, (0, 0, 0), [box((0.6, 0.4, 0.2), 2.0)])
    a.body("ball", Free(), None, (0, 0, 0), [ball(0.1, 1.0)])
    a.frame("face", "box", along("z", 0.1))
    model = replace(a.model(), gravity=(0.0, 0.0, -gravity))
    return Scene(model, (dl.Contact("ball", "face", radius=0.1),), (("ball_0", "box_0"),))


def box_on_box(*masses: float, side: float = 0.2) -> Scene:
    """Free cubes, the first one on the ground, each with its corners on the upper face of the one below."""
    a = Assembly("stack")
    for k, mass in enumerate(masses):
        a.body(f"box{k}", Free(), None, (0, 0, 0), [box((side, side, side), mass)])
        a.frame(f"top{k}", f"box{k}", along("z", side / 2))
    bottom = [corner for corner in corners((side, side, side)) if corner[2] < 0.0]
    on = [("box0", "world"), *((f"box{k + 1}", f"top{k}") for k in range(len(masses) - 1))]
    pairs = tuple((f"box{k}_0", f"box{k + 1}_0") for k in range(len(masses) - 1))
    return Scene(a.model(), tuple(dl.Contact(one, other, corners=bottom) for one, other in on), pairs)


def stick(length: float = 1.0, radius: float = 0.01, mass: float = 1.0, gravity: float = 0.0) -> Scene:
    """A thin rod along x that touches the ground with its round ends: a capsule with the inertia of a line."""
    moment = mass * length**2 / 12
    inertia = dl.Inertia.of(mass, rotational=np.diag([1e-3 * moment, moment, moment]))
    turned = along("x", 0.0)
    model = dl.Model(
        "stick",
        (Joint("base", Free(), inertia=inertia),),
        (Frame("stick", 0),),
        geometries=(Geometry("stick", 0, turned, "capsule", (radius, length), "collision"),),
        gravity=(0.0, 0.0, -gravity),
    )
    ends = [(s * length / 2, 0.0, 0.0) for s in (-1, 1)]
    return Scene(model, (dl.Contact("stick", corners=ends, radius=radius),))


# --- masses on rails --------------------------------------------------------------------------------------------------


def slider(axis: Any = (1.0, 0.0, 0.0), mass: float = 2.0, gravity: float = 0.0, **of_joint: float) -> dl.Model:
    """A mass on a rail; numbers of its joint as those of `Joint`."""
    a = Assembly("slider")
    a.body("mass", Prismatic(axis), None, (0, 0, 0), [ball(0.1, mass)])
    joint = replace(a.model().joints[0], **{name: (value,) for name, value in of_joint.items()})
    return replace(a.model(), joints=(joint,), gravity=(0.0, 0.0, -gravity))


def tied(stiffness: float = 0.0, damping: float = 0.0) -> dl.Model:
    """Masses of 1 and 3 kg on one rail, with a tendon whose length is q₀ - 2 q₁."""
    a = Assembly("tied")
    for k, mass in enumerate((1.0, 3.0)):
        a.body(f"mass{k}", Prismatic((1, 0, 0)), None, (0, k, 0), [ball(0.1, mass)])
    tendon = Tendon("tendon", (("mass0_joint", 1.0), ("mass1_joint", -2.0)), stiffness=stiffness, damping=damping,
                    rest=(0.0, 0.0))  # fmt: skip
    return replace(a.model(), tendons=(tendon,), gravity=(0.0, 0.0, 0.0))


# --- robots -----------------------------------------------------------------------------------------------------------


def robot(name: str) -> Scene:
    """A robot of the package that touches the ground with its feet."""
    model = dl.load(name)
    if name == "quadruped":
        feet = [dl.Contact(frame, radius=0.02) for frame in model.frames("*_foot")]
        return Scene(model, tuple(feet), touching="*_calf_1")
    feet = [dl.Contact.foot(frame, 0.22, 0.1) for frame in model.frames("*_sole")]
    return Scene(model, tuple(feet), touching="*_foot_0")


def ball_on_trunk(count: int = 8) -> tuple[Scene, np.ndarray, np.ndarray]:
    """A ball of 10 kg that flies at 5 m/s onto the trunk of a quadruped, both in the air and without gravity."""
    rng, ball10 = np.random.default_rng(0), free_ball(0.1, 10.0)
    model = dl.load("quadruped").attach(ball10.model, "world", prefix="thrown_")
    model = replace(model.with_frame("back", "trunk", along("z", 0.05)), gravity=(0.0, 0.0, 0.0))
    scene = Scene(model, (dl.Contact("thrown_body", "back", radius=0.1),), (("thrown_body_0", "trunk_0"),))
    q = np.tile([*dl.load("quadruped").posture("home"), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (count, 1))
    q[:, 19:21] = rng.uniform([-0.15, -0.07], [0.15, 0.07], (count, 2))
    q[:, 21] = q[:, 2] + 0.05 + 0.1 + 0.02
    v = np.zeros((count, model.nv))
    v[:, 6:18] = rng.normal(size=(count, 12))
    v[:, 20] = -5.0
    return scene, q, v
