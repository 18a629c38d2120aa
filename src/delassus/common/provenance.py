"""Results that keep the inputs they were computed from."""

from __future__ import annotations

from typing import Any, NoReturn, Self


class Provenance:
    """What a class of results derives from, next to a named tuple, to keep its inputs as attributes beside its fields.

    They are as frozen as the fields, and go along when some of these are replaced.
    """

    def __setattr__(self, name: str, _: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be changed; _replace makes another one.")

    def with_inputs(self, **inputs: Any) -> Self:
        """The results together with the inputs that they were computed from."""
        vars(self).update(inputs)
        return self

    def _replace(self, **fields: Any) -> Self:
        replaced: Self = super()._replace(**fields)  # type: ignore[misc]  # that of the named tuple
        return replaced.with_inputs(**vars(self))
