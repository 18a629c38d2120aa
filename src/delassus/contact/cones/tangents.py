"""Two tangents of a normal, which vary continuously with it.

No pair of tangents is continuous on the whole sphere, but one point is enough to be left out. The shortest rotation
from z to the normal n takes x and y along:

    t1 = x - n_x (n + z)/(1 + n_z),    t2 = y - n_y (n + z)/(1 + n_z)

It is smooth but for n = -z, where every direction is the shortest. Normals of floors are far from there. Near that
point, 1 + n_z is what rounding has left of it; with (n_x, n_y) = r (c, s) it is r²/(1 - n_z), and r cancels.
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.trace import trace_of
from delassus.contact.cones.kinds import ConeError


def contact_axes(normal: Any) -> Any:
    """(…, 3, 3) a rotation with columns t1, t2, n, of a normal (…, 3) of any length; continuous but for n = -z.

    Turned by a small angle, the normal turns its tangents by a small angle. At n = -z they are -x and y.
    """
    normal = np.asarray(normal)
    if normal.shape[-1:] != (3,):
        raise ConeError(
            f"the normal has shape {normal.shape}; its last axis holds three numbers: x, y, z.", code="wrong-shape"
        )
    largest = np.max(np.abs(normal), -1)
    if trace_of(normal) is None and numpy.any(largest == 0.0):
        raise ConeError("a normal is zero: it has no direction.", code="zero-direction")
    n = normal / largest[..., None]  # squares of very long and very short ones are not numbers
    n = n / np.sqrt(np.sum(n * n, -1))[..., None]
    x, y, z = n[..., 0], n[..., 1], n[..., 2]
    r = np.hypot(x, y)
    off = r > 0.0
    c, s = np.where(off, x, 1.0) / np.where(off, r, 1.0), np.where(off, y, 0.0) / np.where(off, r, 1.0)
    # (n_x, n_y) (n_x, n_y)ᵀ/(1 + n_z), in the upper half and in the lower one
    up = 1.0 / (1.0 + np.where(z > 0.0, z, 0.0))
    down = 1.0 - z
    xx, xy, yy = (np.where(z > 0.0, up * a, down * b) for a, b in ((x * x, c * c), (x * y, c * s), (y * y, s * s)))
    t1, t2 = np.stack([1.0 - xx, -xy, -x], -1), np.stack([-xy, 1.0 - yy, -y], -1)
    return np.stack([t1, t2, n], -1)
