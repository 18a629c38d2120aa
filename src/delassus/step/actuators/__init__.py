"""Actuators, one file a kind: importing this room fills the tables of `activation` and `force_law`."""

from delassus.common.discovery import import_modules

import_modules(__name__, __path__)
