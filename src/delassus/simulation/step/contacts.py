"""From all places that may touch to the few that are solved for: those with the smallest gaps.

As many slots as candidates: each has its own, in their order. Fewer: the nearest are chosen, and stay in the order of
their numbers, so that a slot seldom changes hands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.contact.cones.tangents import contact_axes
from delassus.dynamics.tree.poses import Pair, link_pose
from delassus.model.links import Links, links_of
from delassus.model.model import WORLD
from delassus.simulation.geometry.candidates import Shape, touches
from delassus.simulation.geometry.collisions import collision_touches
from delassus.simulation.geometry.fields import HeightField
from delassus.simulation.geometry.reach import Reach
from delassus.simulation.geometry.surfaces import Surface, plane_surface
from delassus.simulation.step.sharing import Sharing, shared_motions
from delassus.simulation.step.world import World
from delassus.spatial.quaternions import quaternion_exp, quaternion_to_rotation
from delassus.stepping.scheme.components import components
from delassus.stepping.scheme.rigid_flight import fly

CLOSED: Final = 1e-6
"""Candidates [m] that are nearer are contacts, of which a state may have more than slots."""

_NEAR: Final = 1e-2
"""Squared, the share of its distance from the origin that a point on a rolling body may move by in half a step."""

_SAME_FACE: Final = 1.0 - 1e-12
"""The cosine of the angle between normals that are those of one face of a height field."""


class GroundNumbers(NamedTuple):
    """The numbers of the ground in a state: of a plane its normal (3,) and height [m], of a field its heights [m]."""

    normal: Any
    height: Any
    heights: Any

    def surface(self, world: World) -> Surface:
        """As geometry sees it."""
        if world.field is None:
            return plane_surface(self.normal, self.height)
        return HeightField(world.field, self.heights)


class Touching(NamedTuple):
    """The contacts that are solved for: numbers of candidates, gaps, J (motions, nv), what rows have of the motions,
    None if they are the same, and whether there are more.

    `lead` gives for a velocity (nv,) by how much more than J v rows (rows,) move over the step [m/s], and `left_out`
    the gaps of all other candidates and the rates at which they change.
    """

    number: Any
    gap: Any
    J: Any
    sharing: Sharing | None
    lead: Callable[[Any], Any]
    more: Any
    left_out: Callable[[Any], list[tuple[Any, Any]]]


def all_touches(world: World, tree: Links, poses: list[Pair], ground: GroundNumbers) -> tuple[Any, Any, Any]:
    """Gaps (candidates,), points and normals (candidates, 3) of all candidates."""
    surface = ground.surface(world)
    found = [touch for shape in world.shapes for touch in touches(shape, tree, poses, surface)]
    found += [touch for collision in world.collisions for touch in collision_touches(collision, tree, poses)]
    gap, point, normal = (np.stack([np.array(touch[k]) for touch in found]) for k in range(3))
    return gap, point, normal


def touching(world: World, q: Any, poses: list[Pair], ground: GroundNumbers, h: Any) -> Touching:
    """The contacts of a configuration (nq,), for a step h [s]."""
    tree, slots, count = links_of(world.model), world.slots, world.contact_rows
    if not world.candidates:
        none = np.zeros(0)
        return Touching(none, none, np.zeros((0, world.nv)), None, lambda v: none, np.array(False), lambda v: [])
    reach = Reach.of(tree, world.nv, poses, bool(world.collisions))
    links, against = _links(world, tree)
    gap, point, normal = all_touches(world, tree, poses, ground)
    flat = contact_axes(ground.normal) if world.field is None and not world.collisions else None
    number: Any = numpy.array(world.numbers[:slots], float)
    more: Any = np.array(False)
    chosen = list(range(world.candidates)) if world.usual is None else list(world.usual)
    on, under = [links[k] for k in chosen], [against[k] for k in chosen]
    among, below = ([frozenset({link}) for link in some] for some in (on, under))
    few: Any = tuple(x[chosen] for x in (gap, point, normal))
    if slots < len(chosen):
        nearest = np.argsort(gap)
        number = np.sort(nearest[:slots])
        more = np.take(gap, nearest[slots]) < CLOSED
        few = tuple(np.take(x, number, axis=0) for x in (gap, point, normal))
        on, under = (list(np.take(numpy.array(some, float), number)) for some in (links, against))
        among, below = [frozenset(links)] * slots, [frozenset(against)] * slots
    near, places, normals = few
    axes = [contact_axes(normals[k]) if flat is None else flat for k in range(slots)]

    def rows(k: int, place: Any, axes: Any, count: int) -> Any:
        found = reach.rows(on[k], among[k], place, axes, count)
        return found - reach.rows(under[k], below[k], place, axes, count) if world.collisions else found

    if world.fixed:
        J, sharing = shared_motions(list(zip(on, under, strict=True)), places, axes, flat, count, rows)
    else:
        J, sharing = [rows(k, places[k], axes[k], count) for k in range(slots)], None

    def lead(v: Any) -> Any:
        leads = leading(world, tree, q, poses, ground, v, h)
        leads = np.take(leads, number, axis=0) if slots < len(chosen) else leads[chosen]
        along = [axes[k].T @ leads[k] for k in range(slots)]
        if count > 3:  # turns are those of the body, wherever it touches
            along = [np.concatenate([one, np.zeros(count - 3)]) for one in along]
        return np.concatenate(along) if slots else np.zeros(0)

    others = [k for k in range(world.candidates) if k not in chosen]

    def left_out(v: Any) -> list[tuple[Any, Any]]:
        twists = {link: reach.twist(link, v) for link in sorted({x[k] for k in others for x in (links, against)})}

        def rate(k: int) -> Any:
            return reach.speed(twists[links[k]] - twists[against[k]], point[k], normal[k])

        return [(gap[k], rate(k)) for k in others]

    J = np.concatenate(J) if slots else np.zeros((0, world.nv))
    return Touching(np.array(number), near, J, sharing, lead, more, left_out)


def leading(world: World, tree: Links, q: Any, poses: list[Pair], ground: GroundNumbers, v: Any, h: Any) -> Any:
    """(candidates, 3) by how much more than J v the points of free bodies that roll move over a step, on average [m/s].

    A body that flies with v (nv,) for h [s] touches at r from its origin as the step begins, and at r⁺ as it ends,
    where another point of a disk's rim is the lowest, and its spin may have another axis: half of what the velocity of
    the touching point changes by. Without it, what rolls would be off by a share h ω. Corners, and bodies that joints
    carry, are held to J v.
    """
    surface, later = ground.surface(world), list(poses)
    twists: dict[int, tuple[Pair, Pair]] = {}
    rigid = {part.roots[0] for part in components(world.mechanism, q) if part.rigid}
    for i, link in enumerate(tree.links):
        if link.motion.is_free:
            (R, p), own = poses[i], v[link.v : link.v + 6]
            if i in rigid:
                q_end, v_end, _ = fly(link, q[link.q : link.q + 7], own, h)
                later[i] = link_pose(link, list(q_end)).compose(np.eye(3), np.zeros(3))
            else:
                later[i], v_end = (R @ quaternion_to_rotation(quaternion_exp(h * own[3:])), p + h * (R @ own[:3])), own
            R_end = later[i][0] if i in rigid else R
            twists[i] = (R @ own[:3], R @ own[3:]), (R_end @ v_end[:3], R_end @ v_end[3:])
    found = []
    for shape in world.shapes:
        i = tree.place(shape.geometry.joint, shape.geometry.placement)[0]
        if i not in twists or not any(shape.rolls):
            found += [np.zeros(3)] * shape.count
            continue
        now, then = (touches(shape, tree, at, surface) for at in (poses, later))
        (v_now, w_now), (v_then, w_then) = twists[i]
        for k in range(shape.count):
            arm, arm_then = now[k].point - poses[i][1], then[k].point - later[i][1]
            moved = 0.5 * (arm_then - arm)
            little = moved @ moved < _NEAR * (arm @ arm)  # else it races around a rim that is nearly flat
            if world.field is not None:  # from one face to another, the point jumps, and nothing of the body moves so
                little = little & (then[k].normal @ now[k].normal > _SAME_FACE)
            lead = 0.5 * (v_then - v_now + np.cross(w_then, arm_then) - np.cross(w_now, arm))
            found.append(np.where(little, lead, 0.0) if shape.rolls[k] else np.zeros(3))
    found += [np.zeros(3)] * (world.candidates - world.on_ground)
    return np.stack(found)


def _links(world: World, tree: Links) -> tuple[list[int], list[int]]:
    """The links of all candidates, and of what they touch; the world comes after all links."""

    def link(shape: Shape | None) -> int:
        at = WORLD if shape is None else tree.place(shape.geometry.joint, shape.geometry.placement)[0]
        return len(tree.links) if at == WORLD else at

    pairs = [(link(shape), link(other)) for shape, other, _ in world.meetings]
    return [one for one, _ in pairs], [two for _, two in pairs]


def warm_start(world: World, number: Any, before: Any, impulse: Any) -> Any:
    """Impulses (m,) to start from: of each contact what its candidate had in the step before.

    `before` and `impulse` are those of the whole world.
    """
    start = np.array(impulse[list(world.own_rows)])
    if world.slots == world.candidates:
        return start
    rows = world.contact_rows
    for k in range(world.slots):
        own = np.zeros(rows)
        for old in range(world.all_slots):
            own = np.where(before[old] == number[k], impulse[rows * old : rows * old + rows], own)
        start[rows * k : rows * k + rows] = own
    return start
