"""Results that keep the inputs they were computed from."""

from __future__ import annotations

from typing import Any, NoReturn, Self


class Provenance:
    """Base class of results, together with a named tuple, that keep their inputs as attributes besides the fields.

    Inputs are frozen like fields, and `_replace` copies them.
    """

    def __setattr__(self, name: str, _: Any) -> NoReturn:
        raise AttributeError(
            f"{type(self).__name__} is frozen, so {name} cannot be changed: create a changed copy by _replace."
        )

    def with_inputs(self, **inputs: Any) -> Self:
        """The results together with the inputs that they were computed from."""
        vars(self).update(inputs)
        return self

    def _replace(self, **fields: Any) -> Self:
        replaced: Self = super()._replace(**fields)  # type: ignore[misc]  # that of the named tuple
        return replaced.with_inputs(**vars(self))
