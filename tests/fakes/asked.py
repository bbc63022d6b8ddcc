"""Asks once what each copy of `tests.builders.warm` would ask: git, and versions."""

import gc

from flare.common.environment import library_version, source_commit
from flare.evaluation.plan import LIBRARIES

source_commit()
for name in LIBRARIES:
    library_version(name)
gc.freeze()  # what is never looked at again is shared with the copies
