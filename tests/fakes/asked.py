"""Asks once what each copy of `tests.builders.warm` would ask: git, and versions."""

import gc

from flare.common.environment import source_commit
from flare.evaluation.plan import library_versions

source_commit()
library_versions()
gc.freeze()  # what is never looked at again is shared with the copies
