"""Runs the program without what it does to tell how fast a computer is.

For each team that is three empty containers, where one is enough to see that the
engine works, besides a calibration before its cases, another one behind them: most of
the time that a tiny image takes. Where a test is about images of teams, nothing of it
matters; test_measure.py, test_calibration.py have the program as it is.

It is started as a file, so that whoever asks for it imports nothing.
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # the checkout, as with `python -m flare`
    sys.path[0] = str(Path(__file__).parents[2])

# ruff: noqa: E402  nothing can be imported before
from flare.cli.main import main
from flare.measuring import team
from flare.results.calibration import Calibration


def no_calibration(_):
    """What the record has where a computer cannot be calibrated."""
    return Calibration(problem="left out by a test")


if __name__ == "__main__":
    team.EMPTY_RUNS = 1
    team.calibrate = no_calibration
    sys.exit(main())
