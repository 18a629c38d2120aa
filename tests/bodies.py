"""Single bodies of one shape on a free joint, for simulations."""

import numpy as np

from delassus.model import Free, Inertia, Joint, Model
from delassus.model.parts import Geometry
from delassus.model.placement import HERE

G = 9.81
H = 1e-3


def body(shape: str, size: tuple[float, ...], mass: float, moments: tuple[float, float, float]) -> Model:
    inertia = Inertia.of(mass, rotational=np.diag(moments))
    return Model(
        shape,
        (Joint("base", Free(), inertia=inertia),),
        geometries=(Geometry(shape, 0, HERE, shape, size, "collision"),),
    )


BRICK = body("box", (0.2, 0.3, 0.1), 2.0, (0.0167, 0.0083, 0.0217))
BALL = body("sphere", (0.1,), 3.0, (0.012, 0.012, 0.012))
