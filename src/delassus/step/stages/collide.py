"""Stage 2 of a step: detects contacts, and selects those with the smallest gaps.

With as many slots as candidates, each candidate has its own slot. With fewer slots, the nearest candidates are selected
and kept in the order of their indices, so that the candidate of a slot seldom changes. The articulated method has them
in the order of their gaps: it skips groups of open contacts.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import map as map_stacks
from delassus.constraints.basis.motions import LinkMotions
from delassus.contact.cones.tangents import contact_axes
from delassus.geometry.broad_phase import Movement, pair_tables, place_shapes
from delassus.geometry.candidates import Shape, touches
from delassus.geometry.collisions import collision_touches, collisions_of
from delassus.geometry.fields import HeightField
from delassus.geometry.narrow_phase import all_places, class_places
from delassus.geometry.nearest import nearest
from delassus.geometry.pairs.capsules import capsule_ends
from delassus.geometry.shapes.registry import ABSENT
from delassus.geometry.surfaces import Surface, plane_surface
from delassus.model.links import Links
from delassus.model.parts import WORLD
from delassus.step.scene import ARTICULATED, Scene
from delassus.step.stages.kinematics import Kinematics
from delassus.step.stages.types import GroundShape, StepState

CLOSED: Final = 1e-6
"""Gap [m] below which a candidate counts as closed, to detect states with more contacts than slots."""

SLOP: Final = 1e-9
"""Larger penetrations [m, rad] are corrected."""


class Candidates(NamedTuple):
    """Candidates for contact: gaps (n,) [m], points and normals (n, 3) in the world, and their indices (n,).

    Candidates with the ground and with single collision pairs come first, followed by the nearest pairs of each class.
    `crowded` is true if more pairs may touch than are examined.
    """

    gap: Any
    point: Any
    normal: Any
    number: Any
    crowded: Any


class Contacts(NamedTuple):
    """The selected contacts.

    Attributes:
        candidate: (slots,) the candidate of each slot.
        gap: (slots,) [m].
        point: (slots, 3) contact points in the world [m].
        axes: The axes (3, 3) of each slot: t1, t2, n as columns.
        common_axes: (3, 3) the axes of all contacts; None if they differ.
        body: The first link of each slot: an integer if it is fixed, else traced. The world has the last index.
        other: The second link of each slot.
        overflow: Whether more candidates touch than there are slots.
        candidates: All candidates.
    """

    candidate: Any
    gap: Any
    point: Any
    axes: list[Any]
    common_axes: Any
    body: list[Any]
    other: list[Any]
    overflow: Any
    candidates: Candidates


def ground_surface(scene: Scene, ground: GroundShape) -> Surface:
    """The ground as a `Surface`, which gives distances and normals of points."""
    if scene.field is None:
        return plane_surface(ground.normal, ground.height)
    return HeightField(scene.field, ground.heights)


def find_candidates(
    scene: Scene, kinematics: Kinematics, ground: GroundShape, moving: Movement | None = None
) -> Candidates:
    """Gaps, points and normals of all candidates.

    Of a class of pairs, only the pairs that are nearest during the step are examined, as `moving` predicts; with None,
    every pair is.
    """
    tree, poses = kinematics.tree, kinematics.poses
    surface = ground_surface(scene, ground)
    touching = [touch for shape in scene.shapes for touch in touches(shape, tree, poses, surface)]
    touching += [touch for collision in scene.collisions for touch in collision_touches(collision, tree, poses)]
    crowded: Any = np.array(False)
    parts: list[tuple[Any, Any, Any, Any]] = []
    if touching:
        gap, point, normal = (np.stack([np.array(touch[k]) for touch in touching]) for k in range(3))
        parts.append((gap, point, normal, numpy.arange(float(len(touching)))))
    if scene.pair_classes:
        tables, first = pair_tables(scene.pair_classes), float(scene.fixed_candidates)
        placed = place_shapes(tables, tree, poses, moving)
        for k, pairs in enumerate(scene.pair_classes):
            places = all_places(tables, pairs, placed) if moving is None else class_places(tables, k, pairs, placed)
            parts.append((places.gap, places.point, places.normal, places.number + first))
            crowded, first = crowded | places.crowded, first + pairs.count
    if len(parts) > 1:
        parts = [tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))]
    gap, point, normal, number = parts[0]
    if scene.is_soft:
        gap = _without_capsule_ends(scene, gap, number)
    return Candidates(gap, point, normal, number, crowded)


def _without_capsule_ends(scene: Scene, gap: Any, number: Any) -> Any:
    """Gaps of candidates, by index. Those at the ends of two capsules become large, since MuJoCo has one contact for
    such a pair."""
    ways = [
        *scene.collisions,
        *(way for one in scene.pair_classes for pair in one.pairs for way in collisions_of(*pair)),
    ]
    ends = [way.pair.touches is capsule_ends for way in ways for _ in range(way.count)]
    if not any(ends):
        return gap
    absent = numpy.array([*[0.0] * scene.ground_candidates, *map(float, ends)])
    known = isinstance(number, numpy.ndarray)
    left_out = absent[number.astype(int)] if known else np.take(absent, number)
    return np.where(left_out > 0.5, ABSENT, gap)


def link_movement(scene: Scene, kinematics: Kinematics, v: Any, time_step: Any) -> Movement | None:
    """The motion of links in a step at velocities v (nv,); None if nothing may touch.

    Under MuJoCo's law, contacts are detected at the beginning of a step, within their margins.
    """
    reach = kinematics.reach
    if reach is None:
        return None
    if scene.is_soft:
        most = max((own.margin for own in scene.impedances.contacts), default=0.0) if scene.impedances else 0.0
        return Movement(None, reach.center, time_step, most)
    twists = [reach.twist(link, v) for link in range(len(kinematics.tree.links) + 1)]
    return Movement(np.stack(twists), reach.center, time_step)


def collide(scene: Scene, kinematics: Kinematics, ground: GroundShape, v: Any, time_step: Any) -> Contacts:
    """The contacts of a configuration; velocities v (nv,) determine which pairs may come near in a step."""
    slots, none = scene.slots, np.zeros(0)
    if not scene.candidates:
        nowhere = Candidates(none, np.zeros((0, 3)), np.zeros((0, 3)), none, np.array(False))
        return Contacts(none, none, nowhere.point, [], None, [], [], np.array(False), nowhere)
    body, other = candidate_links(scene, kinematics.tree)
    moving = link_movement(scene, kinematics, v, time_step) if scene.pair_classes else None
    candidates = find_candidates(scene, kinematics, ground, moving)
    common = contact_axes(ground.normal) if scene.field is None and not scene.has_pairs else None
    candidate: Any = numpy.array(scene.slot_candidates[:slots], float)
    overflow = candidates.crowded
    if scene.has_fixed_slots:
        chosen = list(scene.slot_candidates[:slots])
        gap, point, normal = (x[chosen] for x in candidates[:3])
        body, other = ([some[k] for k in chosen] for some in (body, other))
    else:
        ahead = candidates.gap
        if scene.is_soft:
            ahead = ahead - contact_margins(scene, candidates.number)
        places, following = nearest(ahead, slots, by_value=scene.method == ARTICULATED)
        overflow = overflow | (following < (0.0 if scene.is_soft else CLOSED))
        gap, point, normal = (np.take(x, places, axis=0) for x in candidates[:3])
        candidate = np.take(candidates.number, places) if scene.pair_classes else places
        body, other = (list(np.take(numpy.array(some, float), candidate)) for some in (body, other))
    axes = [contact_axes(normal[k]) if common is None else common for k in range(slots)]
    if scene.is_soft:  # the contact point is halfway between the surfaces
        point = point - 0.5 * gap[:, None] * normal
    return Contacts(np.array(candidate), gap, point, axes, common, body, other, overflow, candidates)


def candidate_links(scene: Scene, tree: Links) -> tuple[list[Any], list[Any]]:
    """The links of all candidates and of their opposite bodies; the index of the world follows those of the links."""

    def link(shape: Shape | None) -> int:
        at = WORLD if shape is None else tree.place(shape.geometry.joint, shape.geometry.placement)[0]
        return len(tree.links) if at == WORLD else at

    pairs = [(link(shape), link(other)) for shape, other, _ in scene.candidate_shapes]
    return [one for one, _ in pairs], [two for _, two in pairs]


# --- contacts outside the reduced contact set -------------------------------------------------------------------------


def penetrates_outside(scene: Scene, kinematics: Kinematics, contacts: Contacts, q: Any, v: Any, time_step: Any) -> Any:
    """Whether a contact or joint limit outside the contact set would be violated in a step with the velocity v (nv,).

    If none is, their impulses are zero, and the solution with the reduced set solves the full problem. A joint limit of
    the set that is violated already counts, too: its correction is a displacement that may close gaps of contacts.
    """
    if scene.reduced is None:
        return np.array(False)
    if scene.is_soft:
        return _touches_outside(scene, contacts)
    gaps = _predicted_gaps_outside(scene, kinematics, contacts, v, time_step)
    if scene.joint_limits:
        motions = LinkMotions.of(scene.model, q, np.zeros(scene.nv))
        for limit in scene.joint_limits:
            row, gap = limit.joints(motions)[0], limit.gap(motions)
            change = 0.0 if scene.limit_slots else time_step * np.minimum(row.factor * v[row.v], 0.0)
            gaps.append(np.array(gap + change))
    return np.min(np.stack(gaps)) < -SLOP if gaps else np.array(False)


def _touches_outside(scene: Scene, contacts: Contacts) -> Any:
    """Whether a contact outside the contact set has an impulse at the beginning of the step, under MuJoCo's law."""
    candidates = contacts.candidates
    inside = scene.reduced or ()
    outside = [k for k in range(len(candidates.gap)) if k not in inside]
    if not outside:
        return np.array(False)
    margin = contact_margins(scene, candidates.number)
    return np.min((candidates.gap - margin)[outside]) < 0.0


def contact_margins(scene: Scene, number: Any) -> Any:
    """Gaps (…) [m] below which candidates exert forces, by index (…), under MuJoCo's law."""
    margins = numpy.array([own.margin for own in scene.impedances.contacts]) if scene.impedances else numpy.zeros(1)
    if numpy.all(margins == margins[0]):
        return margins[0]
    return margins[number.astype(int)] if isinstance(number, numpy.ndarray) else np.take(margins, number)


def _predicted_gaps_outside(
    scene: Scene, kinematics: Kinematics, contacts: Contacts, v: Any, time_step: Any
) -> list[Any]:
    """Gaps of candidates outside the reduced contact set: the smaller of those before and after a step at v (nv,).

    With a common normal n, the gap of a point p of a body with the twist (v_c, ω) about c is affine in p: gap + h n·v_c
    + h (n × ω)·(p - c), with one vector for each body.
    """
    reach, candidates = kinematics.reach, contacts.candidates
    gap = candidates.gap
    if reach is None:
        return []
    body, other = candidate_links(scene, kinematics.tree)
    outside = [k for k in range(scene.fixed_candidates) if k not in (scene.reduced or ())]
    twists = {link: reach.twist(link, v) for link in sorted({links[k] for k in outside for links in (body, other)})}
    if contacts.common_axes is None:
        rates = [
            (gap[k], reach.speed(twists[body[k]] - twists[other[k]], candidates.point[k], candidates.normal[k]))
            for k in outside
        ]
        fixed = [np.array(near + time_step * np.minimum(rate, 0.0)) for near, rate in rates]
        return fixed + _predicted_gaps_of_classes(scene, kinematics, contacts, v, time_step)
    slopes: dict[int, tuple[Any, Any]] = {}
    for link in sorted({body[k] for k in outside}):
        n = candidates.normal[0]
        slope = time_step * np.cross(n, twists[link][3:])
        slopes[link] = time_step * (n @ twists[link][:3]) - slope @ reach.center, slope
    after = [gap[k] + (slopes[body[k]][0] + slopes[body[k]][1] @ candidates.point[k]) for k in outside]
    return [np.minimum(gap[k], there) for k, there in zip(outside, after, strict=True)]


def _predicted_gaps_of_classes(
    scene: Scene, kinematics: Kinematics, contacts: Contacts, v: Any, time_step: Any
) -> list[Any]:
    """For each class of pairs, the smallest gap before and after a step with the velocity v (nv,)."""
    reach, (gap, point, normal, number, _) = kinematics.reach, contacts.candidates
    if reach is None or not scene.pair_classes:
        return []
    links = [numpy.array(some, float) for some in candidate_links(scene, kinematics.tree)]
    twist = np.stack([reach.twist(link, v) for link in range(len(kinematics.tree.links) + 1)])

    def predict(gap: Any, point: Any, normal: Any, number: Any) -> Any:
        first, second = (np.take(twist, np.take(some, number), axis=0) for some in links)
        return gap + time_step * np.minimum(reach.speed(first - second, point, normal), 0.0)

    def predict_near(gap: Any, *place: Any) -> Any:
        return cond(gap < ABSENT, predict, gap, gap, *place)

    def predict_all(*places: Any) -> Any:
        return np.min(map_stacks(predict_near, *places))

    gaps, start = [], scene.fixed_candidates
    for pairs in scene.pair_classes:
        places = [x[start : start + pairs.slot_count] for x in (gap, point, normal, number)]
        gaps.append(cond(np.min(places[0]) < ABSENT, predict_all, np.array(ABSENT), *places))
        start += pairs.slot_count
    return gaps


def has_impulse_outside(scene: Scene, impulse: Any, contact: Any) -> Any:
    """Whether a contact or joint limit outside the reduced set had an impulse in the previous step (…).

    Such a row is likely to have an impulse again. Impulses (…, rows) and candidates (…, slots) are those of the full
    set.
    """
    full, inside = scene.full, [float(number) for number in scene.reduced or ()]
    result: Any = np.zeros(np.shape(impulse)[:-1]) > 0.0
    for row in () if scene.limit_slots else full.limit_rows:
        result = result | (impulse[..., row] > 0.0)
    for slot, row in enumerate(full.normals):
        known: Any = np.zeros(np.shape(impulse)[:-1]) > 0.0
        for number in inside:
            known = known | (contact[..., slot] == number)
        result = result | ((impulse[..., row] > 0.0) & ~known)
    return result


def warm_start(scene: Scene, candidate: Any, last: StepState) -> Any:
    """Initial impulses (m,): for each slot, the impulses of its candidate in the previous step."""
    start = np.array(last.impulse[list(scene.rows_in_full)])
    if scene.has_slot_for_all:
        return start
    rows = scene.contact_rows
    for k in range(scene.slots):
        matched = np.zeros(rows)
        for old in range(scene.full_slots):
            matched = np.where(last.contact[old] == candidate[k], last.impulse[rows * old : rows * old + rows], matched)
        start[rows * k : rows * k + rows] = matched
    return start
