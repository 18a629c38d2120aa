"""A model as algorithms use it: elementary joints, each about or along the z axis of its own link.

Joints of several elements (universal, cylindrical) become several links, all but the last massless. The axes of a link
are those of its body, rotated such that the joint's axis is z; frames and inertias are rotated as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from delassus.model.joints import rotation_to_axis
from delassus.model.model import Model, TracedModel
from delassus.model.motions.motion import JointMotion
from delassus.model.parts import WORLD
from delassus.model.placement import HERE, MASSLESS, Inertia, Placement, Vector


@dataclass(frozen=True)
class Link:
    """An elementary joint and the link it moves.

    `placement` is the link's frame in the parent link's, at zero displacement. `q` and `v` are the first of its
    coordinates and velocities; for a mimic joint they are multiplied by `ratio` and shifted by `offset`.
    """

    parent: int
    motion: JointMotion
    pitch: float
    placement: Placement
    inertia: Inertia
    q: int
    v: int
    ratio: float
    offset: float
    armature: tuple[float, ...]

    @property
    def subspace(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The motion subspace S in the link's axes: linear and angular rows, (3, n) each."""
        S = self.motion.subspace(self.pitch)
        return S[:3], S[3:]

    @property
    def has_rotor(self) -> bool:
        """Whether rotor inertia may be nonzero, as it is for one that is a run-time parameter."""
        return not all(isinstance(x, (int, float)) and x == 0.0 for x in self.armature)

    @property
    def dofs(self) -> range:
        """The velocities of the link."""
        return range(self.v, self.v + self.motion.nv)


@dataclass(frozen=True)
class Links:
    """All links of a model; `bodies[j]` is the link that carries joint j's body, and the body's frame in it."""

    links: tuple[Link, ...]
    bodies: tuple[tuple[int, Placement], ...]
    gravity: Vector
    mimics: bool

    def place(self, joint: int, placement: Placement) -> tuple[int, Placement]:
        """The link and placement of a frame given on a joint's body (or the world)."""
        if joint == WORLD:
            return WORLD, placement
        link, body = self.bodies[joint]
        return link, body * placement

    def path(self, link: int) -> list[int]:
        """The links from the base to a link."""
        chain = []
        while link != WORLD:
            chain.append(link)
            link = self.links[link].parent
        return chain[::-1]


def links_of(model: Model) -> Links:
    """The elementary joints of a model."""
    if not isinstance(model, TracedModel):
        return _cached_links(model)
    if model not in _of_traced:
        _of_traced[model] = make_links(model)
    return _of_traced[model]


_of_traced: WeakKeyDictionary[TracedModel, Links] = WeakKeyDictionary()
"""Links of models by identity, as long as the models exist."""


@lru_cache(maxsize=256)
def _cached_links(model: Model) -> Links:
    return make_links(model)


def make_links(model: Model) -> Links:
    """The elementary joints of a model, without cache."""
    links: list[Link] = []
    bodies: list[tuple[int, Placement]] = []
    for joint, q, v in zip(model.joints, model.q_starts, model.v_starts, strict=True):
        parent, body = bodies[joint.parent] if joint.parent != WORLD else (WORLD, HERE)
        placement = body * joint.placement
        elements = joint.kind.elements
        armature = joint.armature or (0.0,) * joint.kind.nv
        done_q = done_v = 0
        for k, (motion, axis, pitch) in enumerate(elements):
            turn = Placement.of(rotation_to_axis(axis))
            body = turn.inverse()
            links.append(
                Link(
                    parent=parent,
                    motion=motion,
                    pitch=pitch,
                    placement=placement * turn,
                    inertia=joint.inertia.transform(body) if k == len(elements) - 1 else MASSLESS,
                    q=q + done_q,
                    v=v + done_v,
                    ratio=joint.mimic.ratio if joint.mimic else 1.0,
                    offset=joint.mimic.offset if joint.mimic else 0.0,
                    armature=armature[done_v : done_v + motion.nv],
                )
            )
            parent, placement = len(links) - 1, body
            done_q, done_v = done_q + motion.nq, done_v + motion.nv
        bodies.append((parent, body))
    return Links(tuple(links), tuple(bodies), model.gravity, any(joint.mimic for joint in model.joints))
