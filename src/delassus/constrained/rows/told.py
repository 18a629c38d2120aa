"""Results that know what they are of."""

from __future__ import annotations

from typing import Any, NoReturn, Self


class Told:
    """What a class of results derives from, next to a named tuple, to have attributes beside its fields.

    They are as frozen as the fields, and go along when some of these are replaced.
    """

    def __setattr__(self, name: str, _: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be changed; _replace makes another one.")

    def telling(self, **facts: Any) -> Self:
        """The same results, told some facts."""
        vars(self).update(facts)
        return self

    def _replace(self, **fields: Any) -> Self:
        replaced: Self = super()._replace(**fields)  # type: ignore[misc]  # that of the named tuple
        return replaced.telling(**vars(self))
