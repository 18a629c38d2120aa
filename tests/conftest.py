"""Every test process has a cache of its own, so that tests neither use nor fill the user's."""

import os
import tempfile

_folder = tempfile.TemporaryDirectory(prefix="delassus-tests-")
os.environ["DELASSUS_CACHE"] = _folder.name
