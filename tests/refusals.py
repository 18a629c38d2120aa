"""Refusals as tests expect them: by the stable code of an error and the values that its message names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from delassus.errors import DelassusError


@contextmanager
def refuses(
    code: str, *values: object, kind: type[Exception] = DelassusError
) -> Iterator[pytest.ExceptionInfo[DelassusError]]:
    """Fail unless the body raises a Delassus error with this code whose message has each of these values.

    Values are what a message is about: a name, a number, a shape, a file with its line. Wording is none.
    """
    with pytest.raises(kind) as caught:
        yield caught
    assert isinstance(caught.value, DelassusError), f"{type(caught.value).__name__} has no code: {caught.value}"
    assert caught.value.code == code, f"{caught.value.code}: {caught.value}"
    missing = [value for value in map(str, values) if value not in str(caught.value)]
    assert not missing, f"{missing} not in: {caught.value}"
