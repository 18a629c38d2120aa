"""Digests that are the same in every process: of a model's content, and of this package's source."""

import dataclasses
import enum
import hashlib
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


class _NoDigest(Exception):
    """The object holds something whose content is not known to be stable."""


def content_digest(x: Any) -> str | None:
    """SHA-256 of an object made of frozen dataclasses, tuples, numbers, strings and arrays; None for others."""
    sha = hashlib.sha256()
    try:
        _feed(sha.update, x)
    except _NoDigest:
        return None
    return sha.hexdigest()


def _feed(update: Any, x: Any) -> None:
    if x is None or isinstance(x, (bool, int, str, bytes)):
        text = repr(x).encode()
        update(b"%s %d " % (type(x).__name__.encode(), len(text)) + text)
    elif isinstance(x, float):
        update(b"float " + struct.pack("<d", x))
    elif isinstance(x, enum.Enum):
        update(f"enum {type(x).__module__}.{type(x).__qualname__}.{x.name} ".encode())
    elif isinstance(x, tuple):
        update(b"tuple %d " % len(x))
        for item in x:
            _feed(update, item)
    elif isinstance(x, frozenset):
        update(b"set %d " % len(x))
        for item in sorted(content_digest(i) or "" for i in x):
            _feed(update, item)
    elif isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        update(f"array {x.dtype.str} {x.shape} ".encode() + np.ascontiguousarray(x).tobytes())
    elif isinstance(x, np.generic):
        _feed(update, x.item())
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        fields = [f for f in dataclasses.fields(x) if f.compare]
        update(f"{type(x).__module__}.{type(x).__qualname__} {len(fields)} ".encode())
        for field in fields:
            _feed(update, field.name)
            _feed(update, getattr(x, field.name))
    else:
        raise _NoDigest


@cache
def source_digest() -> str:
    """SHA-256 of the package's source files: code compiled by another version is never taken from the cache."""
    root = Path(__file__).parent.parent
    sha = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        sha.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return sha.hexdigest()
