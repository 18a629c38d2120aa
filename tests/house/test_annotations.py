"""Public signatures say what they take and return."""

from public_annotations import annotations

MOST = 0.1
"""The share of parameters and results that may be `Any`. This may only shrink."""


def test_public_signatures_are_annotated():
    assert not [one.place for one in annotations() if not one.text]


def test_few_public_annotations_say_nothing():
    every = annotations()
    empty = [one.place for one in every if one.says_nothing]
    assert len(empty) <= MOST * len(every), f"{len(empty)} of {len(every)}: use the types of delassus.common.types"
