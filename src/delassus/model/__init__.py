"""Models of mechanisms: frozen data, hashable by content."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.model.bundled import robots
    from delassus.model.formats import register_format
    from delassus.model.joints import (
        Cylindrical,
        Free,
        Helical,
        JointKind,
        Planar,
        Prismatic,
        Revolute,
        Spherical,
        Translation,
        Universal,
    )
    from delassus.model.model import Model, ParametricModel
    from delassus.model.motions import moves
    from delassus.model.motions.motion import JointMotion, register_motion
    from delassus.model.parts import WORLD, Frame, Joint, Mimic, Posture
    from delassus.model.placement import Inertia, Placement
    from delassus.model.readers.load import load
    from delassus.model.reports.comparison import compare
    from delassus.model.reports.mass_report import mass_report
    from delassus.model.reports.physical import ParameterCheck, ParameterStatus, check_parameters

__all__ = [
    "WORLD",
    "Cylindrical",
    "Frame",
    "Free",
    "Helical",
    "Inertia",
    "Joint",
    "JointKind",
    "JointMotion",
    "Mimic",
    "Model",
    "ParameterCheck",
    "ParameterStatus",
    "ParametricModel",
    "Placement",
    "Planar",
    "Posture",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Translation",
    "Universal",
    "check_parameters",
    "compare",
    "load",
    "mass_report",
    "moves",
    "register_format",
    "register_motion",
    "robots",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "model.bundled": "robots",
            "model.formats": "register_format",
            "model.joints": "Cylindrical Free Helical JointKind Planar Prismatic Revolute Spherical "
            "Translation Universal",
            "model.model": "Model ParametricModel",
            "model.motions.motion": "JointMotion register_motion",
            "model.motions.moves": "",
            "model.parts": "WORLD Frame Joint Mimic Posture",
            "model.placement": "Inertia Placement",
            "model.readers.load": "load",
            "model.reports.comparison": "compare",
            "model.reports.mass_report": "mass_report",
            "model.reports.physical": "ParameterCheck ParameterStatus check_parameters",
        },
    )
