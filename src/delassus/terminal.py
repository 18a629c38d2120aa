"""Terminal output: any characters, any width, and streams that cannot be written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape

_LEAST = {"COLUMNS": 20, "LINES": 1}  # what a terminal has; less is said where there is none


def escape_text(text: str) -> str:
    """A text as part of what a console prints: brackets are no markup, and what cannot be printed is escaped.

    Names come from files, and a terminal obeys the control characters in them.
    """
    return escape(_printable(text))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def format_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table as lines, the titles first: columns are as wide as they need to be, and no line is cut or broken."""
    cells = [list(map(_printable, row)) for row in (titles, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def console(stderr: bool = False) -> Console:
    """Where to print to; words between colons stay as they are."""
    return Console(stderr=stderr, emoji=False)


class App(typer.Typer):
    """Commands that end with a sentence where their output cannot be written."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command that the arguments name."""
        _settle()
        try:
            try:
                return super().__call__(*args, **kwargs)
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
        except OSError as error:
            _end(error)


def _settle() -> None:
    """See to it that all characters can be written, and that the width of the terminal is one."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    for name, least in _LEAST.items():
        size = os.environ.get(name, "")
        if not (size.isascii() and size.isdigit() and len(size) < 6 and int(size) >= least):
            os.environ.pop(name, None)


def _end(error: OSError) -> NoReturn:
    """Say what went wrong with a file, or else with the output, and end."""
    what = "the output cannot be written" if error.filename is None else repr(error.filename)
    with suppress(OSError, ValueError):
        print(f"error  {what}: {error.strerror or error}.", file=sys.stderr, flush=True)
    with suppress(OSError, ValueError, AttributeError):
        # Python writes what is left once more at its end: let it go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(1) from None
