"""One file a shape: importing this room registers all of them."""

from delassus.common.discovery import import_modules

import_modules(__name__, __path__)
