"""Runs the program without what it does to tell how fast a computer is.

Where a test is about images of teams, nothing of it matters.

It is started as a file, so that whoever asks for it imports nothing.
"""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[2])  # the checkout, as with `python -m flare`

# ruff: noqa: E402  nothing can be imported before
from flare.cli.main import main
from tests.fakes.quick import lighten

if __name__ == "__main__":
    lighten()
    sys.exit(main())
