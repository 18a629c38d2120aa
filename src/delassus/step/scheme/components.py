"""Independent parts of a scene: trees of bodies, joined if loops couple them."""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.model.links import Link, Links, links_of
from delassus.model.model import Model


class Component(NamedTuple):
    """Links that joints and constraints connect, by index.

    Attributes:
        roots: Links whose parent is the world, one for each tree.
        dofs: Velocities of all links.
        rigid: Whether it is one free body, whose flight has a closed form.
        floating: Whether only contacts connect it with the world, so that its momentum is conserved in flight.
        driven: Whether a constraint prescribes its motion in time.
    """

    roots: tuple[int, ...]
    dofs: tuple[int, ...]
    rigid: bool
    floating: bool
    driven: bool


def components(mechanism: Mechanism, q: Any) -> tuple[Component, ...]:
    """All components of a mechanism. They do not depend on the configuration, which may be plain or traced."""
    model, tree = mechanism.model, links_of(mechanism.model)
    root = _roots(tree)
    owner = {v: i for i, link in enumerate(tree.links) for v in link.dofs}
    group = {k: k for k in root}

    def leader(k: int) -> int:
        while group[k] != k:
            k = group[k]
        return k

    for i, link in enumerate(tree.links):  # joints that mimic others share their velocities
        for v in link.dofs:
            group[leader(root[i])] = leader(root[owner[v]])
    constrained: set[int] = set()
    grounded: set[int] = set()
    driven: set[int] = set()
    still = LinkMotions.of(model, q, np.zeros(model.nv), np.array(0.0)) if mechanism.constraints else None
    for constraint in mechanism.constraints:
        joints = [owner[v] for v in constraint.velocities(model)]
        coupled = [root[i] for i in (*constraint.links(model), *joints)]
        for k in coupled[1:]:
            group[leader(k)] = leader(coupled[0])
        constrained.update(coupled)
        if _is_grounded(constraint, model, any(tree.links[i].parent < 0 for i in joints)):
            grounded.update(coupled)
        if still is not None and constraint.reference_velocity(still) is not None:
            driven.update(coupled)
    result = []
    for representative in sorted({leader(k) for k in root}):
        roots = tuple(sorted(k for k in set(root) if leader(k) == representative))
        links = [i for i, k in enumerate(root) if leader(k) == representative]
        free = all(_is_free(tree.links[k]) for k in roots)
        result.append(
            Component(
                roots,
                tuple(sorted({v for i in links for v in tree.links[i].dofs})),
                rigid=free and len(links) == 1 and not constrained & set(roots),
                floating=free and not grounded & set(roots),
                driven=bool(driven & set(roots)),
            )
        )
    return tuple(result)


def undriven(parts: tuple[Component, ...], driven: tuple[int, ...]) -> tuple[Component, ...]:
    """The components that contain none of the driven velocities, which are given by index."""
    return tuple(part for part in parts if not set(part.dofs) & set(driven))


def turning_dofs(model: Model, parts: tuple[Component, ...]) -> list[int]:
    """Indices of angular velocities of all components except single free bodies."""
    inside = {k for part in parts if not part.rigid for k in part.dofs}
    return sorted(
        link.v + k
        for link in links_of(model).links
        for k, direction in enumerate(link.motion.directions)
        if direction >= 3 and link.v + k in inside
    )


def _is_grounded(constraint: Constraint, model: Model, on_root: bool) -> bool:
    """Whether a constraint connects bodies with the world, or with the joint that connects a tree with the world."""
    return on_root or (bool(constraint.links(model)) and not constraint.relative(model))


def _roots(tree: Links) -> list[int]:
    """For each link, the root of its tree."""
    root: list[int] = []
    for i, link in enumerate(tree.links):
        root.append(i if link.parent < 0 else root[link.parent])
    return root


def _is_free(link: Link) -> bool:
    """Whether a link moves freely and has the inertia of its body only."""
    return link.motion.is_free and not link.has_rotor and link.ratio == 1.0
