"""Single bodies of one shape on a free joint, for simulations."""

import numpy as np
from scipy.spatial.transform import Rotation

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


def energy(model: Model, log) -> np.ndarray:
    """T + V - ½ h vᵀ∇V, since velocities are half a step off."""
    inertia = model.joints[0].inertia
    turn = Rotation.from_quat(np.array(log.q).reshape(-1, 7)[:, 3:])
    rise = turn.apply(np.array(log.v).reshape(-1, 6)[:, :3])[:, 2].reshape(log.q.shape[:-1])
    kinetic = 0.5 * inertia.mass * (log.v[..., :3] ** 2).sum(-1)
    kinetic += 0.5 * np.einsum("...i,ij,...j", log.v[..., 3:], inertia.rotational, log.v[..., 3:])
    return kinetic + inertia.mass * G * (log.q[..., 2] - 0.5 * H * rise)


BRICK = body("box", (0.2, 0.3, 0.1), 2.0, (0.0167, 0.0083, 0.0217))
BALL = body("sphere", (0.1,), 3.0, (0.012, 0.012, 0.012))
