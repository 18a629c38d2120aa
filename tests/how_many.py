"""How many examples property tests try: a third of those that are written where `make test` is to be short."""

from hypothesis import settings


def examples(count: int) -> int:
    """All of them, or a third of them, and no fewer than ten, in the profile "quick"."""
    quick = settings.get_current_profile_name() == "quick"
    return min(count, max(10, count // 3)) if quick else count
