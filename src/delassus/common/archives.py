"""Atomic writing of files, and reading and writing of named arrays in them."""

from __future__ import annotations

import math
import os
import secrets
import shutil
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.memory import free_memory
from delassus.errors import DelassusError, short

PathLike = str | os.PathLike[str]

_KINDS: Final = "biufU"
"""Kinds of dtypes that files may contain: booleans, numbers, and strings."""

_DEFLATE: Final = 1032
"""Largest ratio of the sizes of data before and after compression."""

_HEADERS: Final = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


# --- writing ----------------------------------------------------------------------------------------------------------


def write(
    what: str, path: PathLike, fill: Callable[[IO[bytes]], object], kind: type[DelassusError], remedy: str = ""
) -> None:
    """Write a file with the content that `fill` writes; if this fails, an existing file is unchanged.

    If the path is a link, the file that it points to is replaced. A pipe or a device is written to directly and is not
    replaced by a file.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise kind(f"the path of {what} is {short(repr(path))}; it must be a string or a Path.", code="wrong-type")
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                fill(file)
        else:
            _replace(Path(os.path.realpath(path)), fill)
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise kind(f"{what} could not be written to {path}: {reason}.{remedy}", code="unwritable-file") from error


def _replace(target: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Write a new file with a random name next to the target, then rename it."""
    partial = target.with_name(f".{secrets.token_hex(16)}.partial")
    exclusive = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(partial, exclusive, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            fill(file)
        with suppress(FileNotFoundError):  # no existing file
            shutil.copymode(target, partial)
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_arrays(what: str, path: PathLike, arrays: Mapping[str, Any], kind: type[DelassusError]) -> None:
    """Write an archive of NumPy (.npz) without pickled objects."""
    remedy = " It is still in memory: save it elsewhere."
    write(what, path, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays), kind, remedy)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_arrays(what: str, path: PathLike, kind: type[DelassusError]) -> dict[str, NDArray[Any]]:
    """Read the arrays of an untrusted archive: only numbers and strings, with sizes that fit in memory."""
    if not isinstance(path, (str, os.PathLike)):
        raise kind(f"the path of {what} is {short(repr(path))}; it must be a string or a Path.", code="wrong-type")
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            raise kind(f"{what} could not be read from {path}: it is not a regular file.", code="unreadable-file")
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_sizes(entries)
            return {entry.filename.removesuffix(".npy"): _read_array(archive, entry) for entry in entries}
    except DelassusError:
        raise
    except _DamagedArchive as error:
        raise kind(f"{what} could not be read from {path}: {error}.", code="unreadable-file") from None
    except Exception as error:  # damaged files make zipfile, zlib and NumPy raise errors of any type
        reason = getattr(error, "strerror", None) or "it is no .npz file, or damaged: not a file that `save` wrote"
        raise kind(f"{what} could not be read from {path}: {reason}.", code="unreadable-file") from error


class _DamagedArchive(Exception):
    """An archive that is damaged; the message states how."""


def _check_sizes(entries: list[zipfile.ZipInfo]) -> None:
    """Raise unless all arrays together fit into memory, and none is larger than its compressed bytes can be."""
    for entry in entries:
        if entry.file_size > _DEFLATE * entry.compress_size + 1024:
            raise _DamagedArchive(f"its part {entry.filename!r} does not have the size that its header states")
    total, free = sum(entry.file_size for entry in entries), free_memory()
    if total > 0.8 * free:
        raise _DamagedArchive(f"its arrays take {total / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free")


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array; its size is compared with that of its data before memory is allocated."""
    with archive.open(entry) as stream:
        shape, fortran, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
        if dtype.kind not in _KINDS or not dtype.itemsize:
            raise _DamagedArchive(f"its part {entry.filename!r} is an array of the dtype {dtype}")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != entry.file_size - stream.tell():
            raise _DamagedArchive(f"its part {entry.filename!r} has other sizes than its shape {shape}")
        data = stream.read()
    if len(data) != size:
        raise _DamagedArchive(f"its part {entry.filename!r} is cut off")
    flat = np.frombuffer(data, dtype) if data else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C")
