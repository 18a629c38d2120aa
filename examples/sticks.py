"""Stick figures: a robot as lines between the joints and frames of its bodies, seen from a direction."""

import numpy as np

import delassus as dl


def bodies(model: dl.Model, q):
    """For each body by its joint's name (k, 3) points [m] in the world: its joint, then the joints and frames on it."""
    R, p = dl.forward_kinematics(model, q)
    own = {joint.name: [np.zeros(3)] for joint in model.joints}
    for part in (*model.joints, *model.frame_list):
        parent = part.parent if isinstance(part, type(model.joints[0])) else part.joint
        if parent >= 0 and np.any(part.placement.p):
            own[model.joints[parent].name].append(np.array(part.placement.p))
    return {name: p[k] + np.array(points) @ R[k].T for k, (name, points) in enumerate(own.items())}


def seen(points, azimuth: float, elevation: float):
    """Points (…, 3) as they are seen from far away (…, 2): to the right and up. Angles [degrees] from x, from z = 0."""
    a, e = np.radians([azimuth, elevation])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    up = np.array([-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)])
    return np.stack([points @ right, points @ up], -1)


def draw(axis, model: dl.Model, q, *, azimuth: float, elevation: float, **style) -> None:
    """The robot on a plot: from each joint to everything that its body carries."""
    style = {"color": "#33475b", "linewidth": 2.0, "solid_capstyle": "round", **style}
    for points in bodies(model, q).values():
        joint, *rest = seen(points, azimuth, elevation)
        for end in rest:
            axis.plot(*np.transpose([joint, end]), **style)
