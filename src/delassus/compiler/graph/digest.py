"""Digests that are equal in every process: of a model's content and of this package's source."""

import dataclasses
import enum
import hashlib
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

_PACKAGE = __name__.partition(".")[0]

UNREAD: Final[Mapping[str, bool]] = MappingProxyType({"read by this package's kernels": False})
"""The metadata of fields that no kernel of this package reads, such as the name of a robot: what these compile does not
depend on them. A kernel of somebody else may read them."""


class _NoDigest(Exception):
    """The object holds something whose content is not known to be stable."""


def content_digest(x: Any) -> str | None:
    """SHA-256 of an object made of tuples, numbers, strings, arrays and this package's dataclasses; None for others.

    Fields that are not compared, or `UNREAD`, do not count. Other people's classes have no digest: the next process may
    have another version of their methods.
    """
    sha = hashlib.sha256()
    try:
        _feed(sha.update, x)
    except _NoDigest:
        return None
    return sha.hexdigest()


def _feed(update: Any, x: Any) -> None:
    kind = type(x)
    if x is None or kind in (bool, int, str, bytes):
        text = (hex(x) if kind is int else repr(x)).encode()
        update(b"%s %d " % (kind.__name__.encode(), len(text)) + text)
    elif kind is float:
        update(b"float " + struct.pack("<d", x))
    elif kind is tuple:
        update(b"tuple %d " % len(x))
        for item in x:
            _feed(update, item)
    elif kind is frozenset:
        update(b"set %d " % len(x))
        digests = [content_digest(item) for item in x]
        for digest in sorted(d for d in digests if d):
            _feed(update, digest)
        if None in digests:
            raise _NoDigest
    elif kind is np.ndarray and x.dtype.kind in "biuf":
        update(f"array {x.dtype.str} {x.shape} ".encode() + x.tobytes())
    elif isinstance(x, np.generic) and x.dtype.kind in "biuf":
        update(f"scalar {x.dtype.str} ".encode() + x.tobytes())
    elif kind.__module__.partition(".")[0] != _PACKAGE:
        raise _NoDigest
    elif isinstance(x, enum.Enum):
        update(f"enum {kind.__module__}.{kind.__qualname__}.{x.name} ".encode())
    elif dataclasses.is_dataclass(x):
        fields = [f for f in dataclasses.fields(x) if f.compare and f.metadata != UNREAD]
        update(f"{kind.__module__}.{kind.__qualname__} {len(fields)} ".encode())
        for field in fields:
            _feed(update, field.name)
            _feed(update, getattr(x, field.name))
    else:
        raise _NoDigest


def exact(x: Any, unread: bool = True) -> Any:
    """A key that tells apart what == does not, at any depth: 1, 1.0 and True, 0.0 and -0.0, a tuple and a named one.

    Without `unread`, fields that no kernel of this package reads do not count.
    """
    kind = type(x)
    if isinstance(x, float):
        return kind, struct.pack("<d", x)
    if isinstance(x, np.generic):
        return kind, x.tobytes()
    if kind in (tuple, frozenset):
        return kind, kind(exact(item, unread) for item in x)
    if isinstance(x, tuple):
        return kind, x, tuple(exact(item, unread) for item in x)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        # A function may read a field that == leaves out, except where this package says that none does.
        is_own, fields = kind.__module__.partition(".")[0] == _PACKAGE, dataclasses.fields(x)
        if is_own and not unread:
            return kind, tuple(exact(getattr(x, f.name), unread) for f in fields if f.compare and f.metadata != UNREAD)
        return kind, x, tuple(exact(getattr(x, f.name), unread) for f in fields if f.compare or not is_own)
    return kind, x


def is_frozen(x: Any) -> bool:
    """Whether an object cannot change, so that the same object always has the same content."""
    if isinstance(x, (tuple, frozenset)):
        return all(map(is_frozen, x))
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        kind: Any = type(x)
        return kind.__dataclass_params__.frozen and all(is_frozen(getattr(x, f.name)) for f in dataclasses.fields(x))
    plain = type(x) in (type(None), bool, int, float, str, bytes)  # a subclass may have attributes that change
    return plain or isinstance(x, (enum.Enum, np.generic))


@cache
def source_digest() -> str:
    """SHA-256 of the package's source files: code compiled by another version is never taken from the cache."""
    root = Path(__file__).parents[2]
    sha = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        sha.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return sha.hexdigest()


def check_content_hash(kernel: str, label: str, value: Any) -> None:
    """Refuse what cannot be a key: unhashable objects, and those that compare by identity."""
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"{kernel}: {label} ({type(value).__name__}) cannot be hashed, so its kernel could not be found again: "
            "use frozen data, such as @dataclass(frozen=True) with tuples."
        ) from None
    by_identity: Any = object.__hash__
    if type(value).__hash__ is by_identity and not isinstance(value, type) and value is not None:
        raise TypeError(
            f"{kernel}: {label} ({type(value).__name__}) is compared by identity, so a changed object would keep its "
            "old kernel: make it hashable by content, such as a @dataclass(frozen=True)."
        )
