"""The parts of a scene of robots and free bodies.

Free bodies are alike, so loops step them. The tree of a robot is straight-line code: all robots together are a scene
of their own without contacts, whose model is that of the whole scene with the free bodies removed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy

from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.model.editing import lock
from delassus.model.links import Link, links_of
from delassus.model.model import Model
from delassus.step.scene import Scene
from delassus.step.scheme.components import components


class SceneParts(NamedTuple):
    """Free bodies and robots of a scene, by index.

    Attributes:
        bodies: The links of free bodies.
        links: The links of robots, in the order of the robots' own model.
        robots: The mechanism of the robots; None if there are none.
        body_q: (7 bodies,) coordinates of free bodies.
        body_v: (6 bodies,) their velocities.
        robot_q: Coordinates of robots.
        robot_v: Their velocities.
    """

    bodies: tuple[int, ...]
    links: tuple[int, ...]
    robots: Mechanism | None
    body_q: tuple[int, ...]
    body_v: tuple[int, ...]
    robot_q: tuple[int, ...]
    robot_v: tuple[int, ...]

    @property
    def number(self) -> dict[int, int]:
        """The index of each link in the tables of bodies: free bodies, then the world, then links of robots."""
        first = len(self.bodies) + 1
        return {link: k for k, link in enumerate(self.bodies)} | {link: first + k for k, link in enumerate(self.links)}


def scene_parts(scene: Scene) -> SceneParts:
    """The free bodies and the robots of a scene."""
    return _parts(scene.mechanism)


@lru_cache(maxsize=16)
def _parts(mechanism: Mechanism) -> SceneParts:
    model = mechanism.model
    links = links_of(model).links
    rigid = [part.roots[0] for part in components(mechanism, model.neutral()) if part.rigid]
    joint_of = {link: k for k, (link, _) in enumerate(links_of(model).bodies)}
    bodies = [k for k in rigid if is_plain_body(model, links[k], joint_of[k])]
    robots = None
    if len(bodies) < len(links):
        own = lock(model, {joint_of[k] for k in bodies}, model.neutral()) if bodies else model
        constraints = (*mechanism.constraints, *mechanism.unilateral)
        robots = Mechanism(own, constraints, mechanism.step, model_constraints=False)
    body_q = tuple(i for k in bodies for i in range(links[k].q, links[k].q + 7))
    body_v = tuple(i for k in bodies for i in range(links[k].v, links[k].v + 6))
    others = tuple(k for k in range(len(links)) if k not in bodies)
    return SceneParts(
        tuple(bodies),
        others,
        robots,
        body_q,
        body_v,
        tuple(i for i in range(model.nq) if i not in body_q),
        tuple(i for i in range(model.nv) if i not in body_v),
    )


def is_plain_body(model: Model, link: Link, joint: int) -> bool:
    """Whether a free link has no damping, friction, spring or rotor inertia, and its joint is at the world's origin."""
    own = model.joints[joint]
    acts = any(any(x) for x in (own.damping, own.friction, own.stiffness, own.armature))
    placed = not numpy.array_equal(link.placement.R, numpy.eye(3)) or numpy.any(link.placement.p)
    return not (acts or placed or own.gravity_compensation)


def robot_scene(scene: Scene) -> Scene | None:
    """The robots of a scene without contacts: their constraints, limits, friction and actuators; None without
    robots."""
    robots = scene_parts(scene).robots
    if robots is None:
        return None
    return Scene(
        robots,
        max_limits=scene.max_limits,
        joint_friction=scene.joint_friction,
        actuators=scene.actuators,
        bounces=scene.bounces,
    )
