"""Stage 1 of a step: poses of the links and their motion subspaces."""

from __future__ import annotations

from typing import Any, NamedTuple

from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.tree.poses import Pair
from delassus.geometry.point_jacobians import PointJacobians
from delassus.model.links import Links, links_of
from delassus.step.scene import Scene


class Kinematics(NamedTuple):
    """The tree of links, their rotations and origins in the world, and their Jacobians (None if nothing may touch)."""

    tree: Links
    poses: list[Pair]
    reach: PointJacobians | None


def compute_kinematics(scene: Scene, q: Any) -> Kinematics:
    """The kinematics of a configuration (nq,)."""
    tree = links_of(scene.model)
    poses = world_poses(tree, q)
    reach = PointJacobians.of(tree, scene.nv, poses, scene.has_pairs) if scene.candidates else None
    return Kinematics(tree, poses, reach)
