"""Cones of admissible impulses, limits of friction, and projections onto them.

`Friction`, `Free`, `NonNegative` and `Interval` describe the rows of a `ContactProblem`. The functions accept batches
of arrays, and work inside kernels:

the cone, ‖t‖ ≤ friction · n          project, distance, contains
its dual, friction · ‖t‖ ≤ n          project_dual, distance_dual, contains_dual
pyramids of K faces                   pyramid_rows, pyramid_edges, project_pyramid
wrenches of a flat foot                foot_rows, foot_contains, center_of_pressure
rows A x ≤ 0 of both               violation
tangents of a normal                  contact_axes

>>> dl.cones.project([1.0, 0.0, 0.0], 1.0)
array([0.5, 0. , 0.5])
>>> dl.cones.contains([0.2, 0.0, 1.0], 0.5)
np.True_
"""

from delassus.contact.cones.foot import center_of_pressure, foot_contains, foot_rows
from delassus.contact.cones.kinds import ConeError, Free, Friction, Interval, NonNegative
from delassus.contact.cones.pyramid import project_pyramid, pyramid_edges, pyramid_rows, violation
from delassus.contact.cones.second_order import (
    contains,
    contains_dual,
    distance,
    distance_dual,
    project,
    project_dual,
)
from delassus.contact.cones.tangents import contact_axes

__all__ = [
    "ConeError",
    "Free",
    "Friction",
    "Interval",
    "NonNegative",
    "center_of_pressure",
    "contact_axes",
    "contains",
    "contains_dual",
    "distance",
    "distance_dual",
    "foot_contains",
    "foot_rows",
    "project",
    "project_dual",
    "project_pyramid",
    "pyramid_edges",
    "pyramid_rows",
    "violation",
]
