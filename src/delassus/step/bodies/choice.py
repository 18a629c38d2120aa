"""Which scenes are stepped by loops over bodies, pairs and contacts."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from delassus.model.links import links_of
from delassus.step.bodies.tables import tables_of
from delassus.step.scene import Scene

FEWEST: Final = 7
"""Free bodies from which on loops are taken: straight code takes longer to compile and to run."""


def choose_loops(scene: Scene) -> Scene:
    """The scene with slots for loops over its bodies where it has many free ones and nothing else, else as it is."""
    if not scene.candidates or len(scene.model.joints) < FEWEST or not has_free_bodies_only(scene):
        return scene
    return with_loops(scene)


def with_loops(scene: Scene) -> Scene:
    """The scene with steps by loops; its bodies are free ones."""
    return replace(scene, many_bodies=tables_of(scene).slots)


def has_free_bodies_only(scene: Scene) -> bool:
    """Whether all that moves are free bodies that contacts with three rows alone hold."""
    joints, links = scene.model.joints, links_of(scene.model).links
    passive = not any(
        any(values) for joint in joints for values in (joint.damping, joint.friction, joint.stiffness, joint.armature)
    )
    free = all(
        link.motion.is_free and link.parent < 0 and (link.q, link.v) == (7 * k, 6 * k) and _is_here(link.placement)
        for k, link in enumerate(links)
    )
    bare = not (scene.mechanism.constraints or scene.one_sided or scene.contacts or scene.joint_limits)
    tendons = getattr(scene.model, "tendons", ())
    return (
        passive
        and free
        and bare
        and not tendons
        and not scene.actuators
        and scene.contact_rows == 3
        and scene.method == "auto"
        and not scene.as_in_mujoco
    )


def _is_here(placement: object) -> bool:
    """Whether a placement is that of the world."""
    R, p = placement.R, placement.p  # type: ignore[attr-defined]
    return bool((R == R * 0 + [[1, 0, 0], [0, 1, 0], [0, 0, 1]]).all() and (p == p * 0).all())
