"""Stick figures: a robot as lines between the joints and frames of its bodies, seen from a direction."""

from dataclasses import dataclass

import numpy as np

import delassus as dl

INK, FACE, LOOP = "#33475b", "#d6dfe8", "#c0392b"


@dataclass(frozen=True)
class View:
    """From where a robot is seen, from far away: angles [degrees] from the x axis, and above the ground."""

    azimuth: float = -60.0
    elevation: float = 15.0

    def __call__(self, points):
        """Points (…, 3) on the paper (…, 2): to the right and up."""
        a, e = np.radians([self.azimuth, self.elevation])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        up = np.array([-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)])
        return np.stack([points @ right, points @ up], -1)


FROM_THE_SIDE = View(-90.0, 0.0)
"""The plane x-z: x to the right, z up."""


def bodies(model: dl.Model, q):
    """For each body by its joint's name (k, 3) points [m] in the world: its joint, then the joints and frames on it."""
    R, p = dl.forward_kinematics(model, q)
    own = [[np.zeros(3)] for _ in model.joints]
    carried = [(joint.parent, joint.placement) for joint in model.joints]
    carried += [(frame.joint, frame.placement) for frame in model.frame_list]
    for parent, placement in carried:
        if parent >= 0 and np.any(placement.p):
            own[parent].append(np.array(placement.p))
    return {joint.name: p[k] + np.array(own[k]) @ R[k].T for k, joint in enumerate(model.joints)}


def closures(mechanism: dl.Mechanism, q):
    """Where loops are closed: (k, 3) [m], the origin of the first frame of every constraint that has two."""
    frames = [tie.frame for tie in mechanism.constraints if getattr(tie, "frame2", None) is not None]
    return _origins(mechanism.model, q, frames)


def anchors(mechanism: dl.Mechanism, q):
    """Where the robot is held by the world: (k, 3) [m], by joints on it and by constraints of a single frame."""
    model = mechanism.model
    frames = [tie.frame for tie in mechanism.constraints if getattr(tie, "frame2", "") is None]
    joints = [joint.placement.p for joint in model.joints if joint.parent < 0 and joint.kind.nv < 6]
    return np.concatenate([_origins(model, q, frames), np.reshape(joints, (-1, 3))])


def draw(axis, mechanism: dl.Mechanism, q, view: View, size: float = 1.0) -> None:
    """The robot on a plot: a line for a body with two ends, an area for one with more; closures and anchors as dots."""
    for points in bodies(mechanism.model, q).values():
        flat = view(points)
        around = flat - flat.mean(0)
        flat = flat[np.argsort(np.arctan2(around[:, 1], around[:, 0]))]
        axis.fill(*flat.T, facecolor=FACE, edgecolor=INK, linewidth=1.8 * size, joinstyle="round")
    axis.plot(*view(anchors(mechanism, q)).T, "s", color=INK, markersize=5.0 * size, zorder=3)
    axis.plot(*view(closures(mechanism, q)).T, "o", color=LOOP, markersize=5.0 * size, zorder=3)


def _origins(model: dl.Model, q, frames):
    return np.reshape([dl.frame_placement(model, q, frame=frame)[1] for frame in frames], (-1, 3))
