"""The links on which the rows of a mechanism act, and where their paths in the tree meet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.model.links import Links
from delassus.model.parts import WORLD


@dataclass(frozen=True)
class Layout:
    """What rows touch, which no state changes.

    Attributes:
        m: Number of rows.
        support: Links that move a constraint: those on the way from the base to one, in order.
        roots: For each row the link (or the world) that carries all that it touches: where its loop is closed. That of
            a row on one body or one joint is the world, which holds it.
        pairs: Links whose bodies share a row, each pair in order.
        inner: Rows that joints which carry all of their bodies never move.
        grounded: Rows that bodies which fall alike do move.
    """

    m: int
    support: tuple[int, ...]
    roots: tuple[int, ...]
    pairs: frozenset[tuple[int, int]]
    inner: frozenset[int]
    grounded: frozenset[int]


def layout_of(mechanism: Mechanism, tree: Links, touched: list[list[int]], driven: list[set[int]]) -> Layout:
    """From the links whose bodies each constraint touches, and those whose joints it drives."""
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
    """The link, or the world, nearest to some links that carries, or is, all of them."""
    if WORLD in links:
        return WORLD
    paths = [tree.path(link) for link in links]
    shared = [steps[0] for steps in zip(*paths, strict=False) if len(set(steps)) == 1]
    return shared[-1] if shared else WORLD
