"""Elementary functions as graph operations: importing this room fills the table of `registry`."""

from delassus.common.discovery import import_modules

import_modules(__name__, __path__)
