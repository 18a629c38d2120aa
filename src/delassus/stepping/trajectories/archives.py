"""Files that are replaced when all is written and not before, and arrays by name in them."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from delassus.stepping.trajectories.errors import TrajectoryFileError


def write(what: str, path: str | os.PathLike[str], fill: Callable[[IO[bytes]], object], remedy: str = "") -> None:
    """Write a file that `fill` fills; where that fails, the file that was there stays as it was.

    What is no file, such as a pipe or a device, is written to as it is: a file must not take its place.
    """
    path = Path(path)
    special = path.exists() and not path.is_file()
    partial = path if special else path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            fill(file)
        if not special:
            partial.replace(path)
    except OSError as error:
        reason = error.strerror or error
        raise TrajectoryFileError(f"{what} could not be written to {path}: {reason}.{remedy}") from error
    finally:
        if not special:
            partial.unlink(missing_ok=True)


def write_arrays(what: str, path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Write an archive of NumPy (.npz), with nothing that has to be unpickled."""
    remedy = " It is still in memory: save it elsewhere."
    write(what, path, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays), remedy)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of an archive."""
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            return {name: file[name] for name in file} if isinstance(file, np.lib.npyio.NpzFile) else {}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or "it is not a file that Trajectory.save wrote"
        raise TrajectoryFileError(f"no trajectory could be read from {path}: {reason}.") from error
