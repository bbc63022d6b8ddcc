"""Runs the program without what it does to tell what an engine costs.

For each team that is three empty containers: most of the time that a tiny image takes.
Where a test is about images of teams, nothing of it matters; test_measure.py has the
program as it is. Whether our own image can be run is still asked where a team's cannot.

It is started as a file, so that whoever asks for it imports nothing.
"""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[2])  # the checkout, as with `python -m flare`

# ruff: noqa: E402  nothing can be imported before
from flare.cli.main import main
from flare.measuring import team
from tests.fakes.quick import lighten


def no_empty_runs(*_):
    return [0.05]


if __name__ == "__main__":
    lighten()
    team.run_empty = no_empty_runs
    sys.exit(main())
