"""Pairs of shapes: importing this package registers them."""

from delassus.common.discovery import import_modules

import_modules(__name__, __path__)
