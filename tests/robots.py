"""The robots of example-robot-data, and Pinocchio's models of them."""

from pathlib import Path

import pinocchio as pin

FOLDER = next(
    (p for p in (Path(pin.__file__).parents[k] / "share/example-robot-data/robots" for k in range(8)) if p.is_dir()),
    Path("example-robot-data is not installed"),
)
FILES = sorted(FOLDER.rglob("*.urdf"))

# One file that Pinocchio refuses, since its robot has no name.
REFUSED_BY_PINOCCHIO = {"ur3.urdf"}


def file(name: str) -> Path:
    """A robot's file by its name."""
    return next(path for path in FILES if path.name == name)


def pinocchio_model(path: Path, root: str) -> pin.Model:
    """Pinocchio's model, with the same kind of root as ours."""
    if root == "free":
        return pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    return pin.buildModelFromUrdf(str(path))
