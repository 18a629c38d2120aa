"""The links on which the rows of a mechanism act, and where their paths in the tree meet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.model.links import Links
from delassus.model.parts import WORLD


@dataclass(frozen=True)
class Layout:
    """Structure of the rows, the same in all states.

    Attributes:
        m: Number of rows.
        support: Links that move a constraint: those on the paths from the base, in order.
        roots: For each row the link (or the world) that carries all bodies of the row, where its loop closes. For a row
            on one body or one joint this is the world.
        pairs: Links whose bodies share a row, each pair in order.
        inner: Rows that never move with joints that carry all of their bodies.
        grounded: Rows that move when all bodies fall together.
    """

    m: int
    support: tuple[int, ...]
    roots: tuple[int, ...]
    pairs: frozenset[tuple[int, int]]
    inner: frozenset[int]
    grounded: frozenset[int]


def layout_of(mechanism: Mechanism, tree: Links, touched: list[list[int]], driven: list[set[int]]) -> Layout:
    """Create from the links of each constraint's bodies, and the links whose joints it acts on."""
    pairs: set[tuple[int, int]] = set()
    roots = [WORLD] * mechanism.m
    inner: set[int] = set()
    grounded: set[int] = set()
    for k, at in enumerate(mechanism.row_ranges()):
        constraint, rows = mechanism.constraints[k], range(at.start, at.stop)
        pairs.update(combinations(touched[k], 2))
        if len(touched[k]) > 1 or len(driven[k]) > 1:
            carriers = [*touched[k], *(tree.links[i].parent for i in driven[k])]
            roots[at] = [_common(tree, carriers)] * len(rows)
        if len(touched[k]) > 1 and constraint.inner(mechanism.model):
            inner.update(rows)
        if not constraint.relative(mechanism.model):
            grounded.update(rows)
    support = {i for links in (*touched, *driven) for link in links for i in tree.path(link)}
    ordered = tuple(sorted(support))
    return Layout(mechanism.m, ordered, tuple(roots), frozenset(pairs), frozenset(inner), frozenset(grounded))


def _common(tree: Links, links: list[int]) -> int:
    """The link (or the world) nearest to `links` that carries all of them, or is one of them."""
    if WORLD in links:
        return WORLD
    paths = [tree.path(link) for link in links]
    shared = [steps[0] for steps in zip(*paths, strict=False) if len(set(steps)) == 1]
    return shared[-1] if shared else WORLD
