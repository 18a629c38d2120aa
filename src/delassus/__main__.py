"""`python -m delassus` is the command `delassus`."""

from delassus.cli import app

app()
