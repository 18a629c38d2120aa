"""Two tangents of a normal, which vary continuously with it.

No pair of tangents is continuous on the whole sphere, but one exceptional point suffices. The shortest rotation from z
to the normal n maps x and y to

    t1 = x - n_x (n + z)/(1 + n_z),    t2 = y - n_y (n + z)/(1 + n_z)

This is smooth except at n = -z, where the shortest rotation is not unique; normals of floors are far from there. Near
that point 1 + n_z suffers from cancellation. With (n_x, n_y) = r (c, s) it equals r²/(1 - n_z), and r cancels.
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.trace import trace_of
from delassus.contact.cones.kinds import ConeError


def contact_axes(normal: Any) -> Any:
    """(…, 3, 3) rotation matrices with columns t1, t2, n, of normals (…, 3) of any length; continuous except at n = -z.

    A small change of the normal causes a small change of the tangents. At n = -z they are -x and y.
    """
    normal = np.asarray(normal)
    if normal.shape[-1:] != (3,):
        raise ConeError(
            f"the normal has shape {normal.shape}; its last axis must have length 3: x, y, z.", code="wrong-shape"
        )
    largest = np.max(np.abs(normal), -1)
    if trace_of(normal) is None and numpy.any(largest == 0.0):
        raise ConeError("a normal is zero: it has no direction.", code="zero-direction")
    n = normal / largest[..., None]  # squares of extreme lengths would overflow or vanish
    n = n / np.sqrt(np.sum(n * n, -1))[..., None]
    x, y, z = n[..., 0], n[..., 1], n[..., 2]
    r = np.hypot(x, y)
    tilted = r > 0.0
    c, s = np.where(tilted, x, 1.0) / np.where(tilted, r, 1.0), np.where(tilted, y, 0.0) / np.where(tilted, r, 1.0)
    # (n_x, n_y) (n_x, n_y)ᵀ/(1 + n_z), for the upper and for the lower half of the sphere
    up = 1.0 / (1.0 + np.where(z > 0.0, z, 0.0))
    down = 1.0 - z
    xx, xy, yy = (np.where(z > 0.0, up * a, down * b) for a, b in ((x * x, c * c), (x * y, c * s), (y * y, s * s)))
    t1, t2 = np.stack([1.0 - xx, -xy, -x], -1), np.stack([-xy, 1.0 - yy, -y], -1)
    return np.stack([t1, t2, n], -1)
