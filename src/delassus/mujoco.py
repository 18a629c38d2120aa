"""To and from MuJoCo: its models, and configurations, velocities and accelerations in its layout."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.model.converters.mujoco import (
        a_from_mujoco,
        a_to_mujoco,
        q_from_mujoco,
        q_to_mujoco,
        v_from_mujoco,
        v_to_mujoco,
    )
    from delassus.model.readers.mjcf import from_mujoco

__all__ = [
    "a_from_mujoco",
    "a_to_mujoco",
    "from_mujoco",
    "q_from_mujoco",
    "q_to_mujoco",
    "v_from_mujoco",
    "v_to_mujoco",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "model.converters.mujoco": "a_from_mujoco a_to_mujoco q_from_mujoco q_to_mujoco v_from_mujoco v_to_mujoco",
            "model.readers.mjcf": "from_mujoco",
        },
    )
