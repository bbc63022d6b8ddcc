"""Takes away what the program does to be sure of an engine, which one by script is.

What tests of images, of processes and of submissions look at is not concerned; others
have the program as it is (test_measure.py, test_cleanup.py).
"""

from flare.measuring import cleanup, team
from flare.measuring.lanes import process

LANE = f"from tests.fakes.quick import lighten; lighten(); {process.PROGRAM}"
"""What a process runs that measures a team on a lane."""


def lighten():
    """Run one empty container for each team instead of three, on lanes as well.

    One is enough to see that the engine works.
    """
    team.EMPTY_RUNS = 1
    process.PROGRAM = LANE


def skip_empty():
    """Run no empty container: most of the time that a tiny image takes.

    Where a test is about images of teams, nothing of it matters.
    """
    lighten()
    team.run_empty = lambda *_: [0.05]


def hurry():
    """Do without it, and let guards look sooner: nothing is on its way to the engine.

    Not where a program is killed at any moment: a busy computer may take a second for
    what the engine had been asked for.
    """
    lighten()
    cleanup.PAUSE_S, cleanup.LOADING_S = 0.1, 1
