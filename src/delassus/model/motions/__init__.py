"""Elementary joint motions, one file each: importing this package fills the table of `motion`."""

from delassus.common.discovery import import_modules

import_modules(__name__, __path__)
