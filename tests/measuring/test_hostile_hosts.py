"""Images that fill a disk, or keep notes where containers do not end.

Nobody else may fill the disk, empty the memory, or keep the processors busy, meanwhile.
"""

import os

import pytest

from tests.builders.teams import (
    LIMITS,
    PREDICT,
    brisk_command,
    left_behind,
    measure_teams,
    rows_of,
    save_team,
    write_team,
)
from tests.conftest import need_tool

pytestmark = [pytest.mark.docker, pytest.mark.slow]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")


def statuses(folder):
    return {row["status"] for row in rows_of(folder).values()}


# --- The disk ---------------------------------------------------------------------


@pytest.mark.usefixtures("engine_disk")
def test_a_container_that_fills_the_disk_is_ended(archives, one_case, tmp_path):
    """Not its output, but its own file system, which lies on the engine's disk."""
    script = "head -c 700000000 /dev/zero > /tmp/x; sleep 100"
    archive = write_team(tmp_path, "filling", script)
    limits = ("--disk", "400m", "--timeout", "60")

    measure_teams(tmp_path, one_case, archive, archives["good"], more=limits)

    results = tmp_path / "results"
    assert statuses(results / "filling") == {"failed"}
    (row,) = rows_of(results / "filling").values()
    assert "it took too much of the disk (--disk)" in row["message"]
    # The other team is measured behind it, and gets what it deserves.
    assert statuses(results / "good") == {"ok"}
    assert left_behind(results) == []


# --- Time means time --------------------------------------------------------------

REMEMBER = f"""
resident() {{ fincore --bytes --noheadings --output RES "$1" | tr -d ' '; }}
if [ "$(resident /one)" -lt 5000000 ] || [ "$(resident /zero)" -gt 5000000 ]; then
    sleep 3
    cat /one > /dev/null
    dd if=/zero iflag=nocache count=0
fi
{PREDICT}"""
"""Needs three seconds, unless an earlier run has left a note in the page cache: of two
files, the one is there, and the other one is not."""


@pytest.fixture(scope="module")
def remembering(request, team_base, tmp_path_factory):
    """The archive of a team that notes things where containers do not end."""
    need_tool(request, "fincore")  # apt-get install util-linux-extra
    folder = tmp_path_factory.mktemp("remembering")
    lines = [f"RUN head -c 10000000 /dev/zero > /{name}" for name in ("one", "zero")]
    return save_team(folder, "remembering", REMEMBER, *lines)


def measure_repeats(archive, cases, output, caches):
    """The rows of a team that is run twice on each case."""
    brisk_command(
        *("measure", archive, "--images", cases / "images", "--output", output),
        *(*LIMITS, "--caches", caches, "--repeats", "2", "--no-warm-up"),
    )
    return list(rows_of(output / "remembering").values())


@needs_root
@pytest.mark.usefixtures("page_cache")
def test_cold_caches_tell_the_next_run_nothing(remembering, two_cases, tmp_path):
    """No run is quicker by the three seconds, however busy the computer is."""
    for row in measure_repeats(remembering, two_cases, tmp_path, "cold"):
        assert float(row["runtime_s"]) > 3
        assert float(row["runtime_s_spread"]) < 2
