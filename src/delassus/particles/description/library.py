"""The bundled element types. Deformations are rigid, or elastic with a compliance.

stretch     two points at a distance: a rod, or a spring             g = ‖x₁ - x₀‖ - length                  [m]
bend        three points of a line: the second difference           g = (x₀ - x₁)/a + (x₂ - x₁)/b - rest     [1]
fold        two triangles over an edge: the angle between them      g = angle - rest                       [rad]
area        a triangle                                              g = (area - rest)/√rest                  [m]
strain      a triangle: stretch along warp and weft, and shear      g = √rest (F_uᵀF_u - 1, …)/2             [m]
volume      a tetrahedron                                           g = (volume - rest)/rest^(2/3)           [m]
spring      two points, as an energy                                V = ½ stiffness (‖x₁ - x₀‖ - length)²    [J]
solid       a tetrahedron of neo-Hookean rubber, as an energy       V = volume (½ μ (tr FᵀF - 3 - 2 ln J) + ½ λ ln² J)
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.particles.description.kinds import deformation, energy


def _cross(a: Any, b: Any) -> Any:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _length(a: Any) -> Any:
    return np.sqrt(a @ a)


@deformation(points=2, numbers=("length",))
def stretch(x: Any, length: Any) -> Any:
    """Elongation of a rod or spring [m]: ‖x₁ - x₀‖ - length.

    >>> rods = dl.particles.Elements(dl.particles.stretch, [[0, 1], [1, 2]], numbers=[0.5])
    >>> dl.particles.Particles([[0, 0, 0], [0.5, 0, 0], [1, 0, 0]], 0.1, elements=[rods]).rows
    2
    """
    return np.array([_length(x[1] - x[0]) - length])


@deformation(points=3, rows=3, numbers=("before", "after", "rest_x", "rest_y", "rest_z"))
def bend(x: Any, before: Any, after: Any, rest_x: Any, rest_y: Any, rest_z: Any) -> Any:
    """Change of direction of a line at a point, between segments of lengths `before` and `after` [rad].

    >>> dl.particles.Elements(dl.particles.bend, [[0, 1, 2]], numbers=[0.1, 0.1, 0.0, 0.0, 0.0]).rows
    3
    """
    turn = (x[0] - x[1]) / before + (x[2] - x[1]) / after
    return turn - np.array([rest_x, rest_y, rest_z])


@deformation(points=4, numbers=("rest",))
def fold(x: Any, rest: Any) -> Any:
    """The angle [rad] between the triangles (0, 1, 2) and (1, 0, 3) over the edge from 0 to 1; flat is 0.

    >>> dl.particles.Elements(dl.particles.fold, [[0, 1, 2, 3]], numbers=[0.0], compliance=0.1).rigid
    False
    """
    edge = x[1] - x[0]
    n1, n2 = _cross(edge, x[2] - x[0]), _cross(x[3] - x[0], edge)
    return np.array([np.arctan2(_cross(n1, n2) @ edge / _length(edge), n1 @ n2) - rest])


@deformation(points=3, numbers=("rest",))
def area(x: Any, rest: Any) -> Any:
    """Increase of a triangle's area relative to rest, divided by the root of the rest area [m].

    >>> dl.particles.Elements(dl.particles.area, [[0, 1, 2]], numbers=[0.5]).rows
    1
    """
    return np.array([(0.5 * _length(_cross(x[1] - x[0], x[2] - x[0])) - rest) / np.sqrt(rest)])


@deformation(points=3, rows=3, numbers=("a", "b", "c", "d"))
def strain(x: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Green's strain of a triangle, warp, weft and √2 times shear, times the root of its area [m].

    (a, b; c, d) is the inverse of the matrix of its edges in the plane at rest.

    >>> dl.particles.Elements(dl.particles.strain, [[0, 1, 2]], numbers=[1.0, 0.0, 0.0, 1.0]).rows
    3
    """
    e1, e2 = x[1] - x[0], x[2] - x[0]
    warp, weft = e1 * a + e2 * c, e1 * b + e2 * d
    size = np.sqrt(0.5 / np.abs(a * d - b * c))
    return size * np.array([0.5 * (warp @ warp - 1.0), 0.5 * (weft @ weft - 1.0), np.sqrt(0.5) * (warp @ weft)])


@deformation(points=4, numbers=("rest",))
def volume(x: Any, rest: Any) -> Any:
    """Increase of a tetrahedron's volume relative to rest, divided by the rest volume to the power 2/3 [m].

    >>> dl.particles.Elements(dl.particles.volume, [[0, 1, 2, 3]], numbers=[1 / 6]).rigid
    True
    """
    six = _cross(x[1] - x[0], x[2] - x[0]) @ (x[3] - x[0])
    return np.array([(six / 6.0 - rest) / np.exp(np.log(rest) * (2.0 / 3.0))])


@energy(points=2, numbers=("length", "stiffness"))
def spring(x: Any, length: Any, stiffness: Any) -> Any:
    """The energy [J] of a spring; its stiffness [N/m] is part of W.

    >>> dl.particles.Elements(dl.particles.spring, [[0, 1]], numbers=[0.5, 100.0]).kind.numbers
    ('length', 'stiffness')
    """
    longer = _length(x[1] - x[0]) - length
    return 0.5 * stiffness * longer * longer


_INVERSE = ("a0", "a1", "a2", "b0", "b1", "b2", "c0", "c1", "c2")


@energy(points=4, numbers=("shear", "bulk", *_INVERSE))
def solid(x: Any, shear: Any, bulk: Any, **inverse: Any) -> Any:
    """The energy [J] of a neo-Hookean tetrahedron, Lamé's μ `shear` and λ `bulk` [Pa]; then the inverse of its edges.

    The edges from its first point are columns. ln J is constant below a thousandth of the volume, so that an inverted
    element shrinks, passes through zero volume, and recovers.

    >>> dl.particles.solid.numbers[:2]
    ('shear', 'bulk')
    """
    B = np.array([[inverse[f"{row}{k}"] for k in range(3)] for row in "abc"])
    F = np.array([x[1] - x[0], x[2] - x[0], x[3] - x[0]]).T @ B
    rest = 1.0 / (6.0 * np.abs(B[0] @ _cross(B[1], B[2])))
    J = F[0] @ _cross(F[1], F[2])
    log = np.log(np.maximum(J, 1e-3))
    return rest * (0.5 * shear * (np.sum(F * F) - 3.0 - 2.0 * log) + 0.5 * bulk * log * log)
