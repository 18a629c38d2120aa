"""The order in which links are eliminated where closed loops couple them."""

from __future__ import annotations

from delassus.model.links import Links


def elimination_order(tree: Links, pairs: frozenset[tuple[int, int]]) -> tuple[int, ...]:
    """The order of elimination of links: always a leaf of the remaining tree, the one with the fewest couplings.

    Eliminating a link couples all its partners with each other and with its parent. Without loops, and among equal
    links, the one with the largest index comes first.
    """
    neighbours: list[set[int]] = [set() for _ in tree.links]
    for i, j in pairs:
        neighbours[i].add(j)
        neighbours[j].add(i)
    children = [0] * len(tree.links)
    for link in tree.links:
        if link.parent >= 0:
            children[link.parent] += 1
    leaves = {i for i, count in enumerate(children) if not count}
    order: list[int] = []
    while leaves:
        i = min(leaves, key=lambda i: (len(neighbours[i] | {tree.links[i].parent}), -i))
        leaves.remove(i)
        order.append(i)
        parent = tree.links[i].parent
        partners = neighbours[i] | ({parent} if neighbours[i] and parent >= 0 else set())
        for j in partners:
            neighbours[j] = (neighbours[j] | partners) - {i, j}
        if parent >= 0:
            children[parent] -= 1
            if not children[parent]:
                leaves.add(parent)
    return tuple(order)
