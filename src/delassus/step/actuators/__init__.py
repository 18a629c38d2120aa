"""Actuators, one file per type: importing this package fills the tables of `activation` and `force_law`."""

from delassus.common.discovery import import_modules

import_modules(__name__, __path__)
