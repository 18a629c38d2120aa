"""From files to models: importing this room registers the readers of all its formats."""

from delassus.common.discovery import import_modules

import_modules(__name__, __path__)
