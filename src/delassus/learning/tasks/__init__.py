"""Tasks, one file each, registered by name."""

from delassus.common.discovery import import_modules

import_modules(__name__, __path__)
