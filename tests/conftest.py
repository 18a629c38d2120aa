"""Every test process has a cache of its own, so that tests neither use nor fill the user's.

Property tests try the same examples each time and have no deadline: machines may be slow and busy.
"""

import os
import tempfile

from hypothesis import settings

_folder = tempfile.TemporaryDirectory(prefix="delassus-tests-")
os.environ["DELASSUS_CACHE"] = _folder.name

settings.register_profile("delassus", deadline=None, derandomize=True)
settings.load_profile("delassus")
