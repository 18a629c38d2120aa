"""What the suite of physics moves: bodies, and the points with which they touch, for rooms that are told points."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import delassus as dl
from delassus.model.bundled.build import Assembly, Free, Part, ball, box

G = 9.81


@dataclass(frozen=True, eq=False)
class Scene:
    """A model, the contacts that its shapes have, and the pairs of shapes that may touch."""

    model: dl.Model
    contacts: tuple[dl.Contact, ...] = ()
    colliding: tuple[tuple[str, str], ...] = ()

    @property
    def touch(self) -> dict[str, Any]:
        """What `rollout` is told of it."""
        return {"contacts": self.contacts, "colliding": self.colliding}


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


def at(scene: Scene, count: int, height: float = 0.0) -> np.ndarray:
    """Configurations (count, nq) at a height."""
    q = np.tile(scene.model.neutral(), (count, 1))
    q[:, 2] = height
    return q


def random_turns(rng: np.random.Generator, count: int) -> np.ndarray:
    """Quaternions (count, 4), evenly distributed."""
    x = rng.normal(size=(count, 4))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))
