"""The measuring that README shows is done, with images as its script makes them."""

import csv
import os
import re
import shlex
import subprocess
from contextlib import nullcontext

import pytest

from tests.builders import ROOT
from tests.builders.teams import BRISK, example_tags, left_behind

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.mark.gate
@pytest.mark.tools(package="matplotlib")
def test_the_testing_phase_as_readme_shows_it(python_base, tmp_path):
    """Its commands, one after the other, in another folder for the results.

    Nothing has to be cold, and the base is a small one.
    """
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("\n## Measuring\n")[1]
    commands = re.search(r"```sh\n(.*?)```", section, flags=re.DOTALL)[1]
    assert commands.count("\n") == 4
    script = commands.replace("results/", f"{tmp_path}/")
    limits = "--gpu none --memory 1g --shm-size 64m --caches warm --no-warm-up"
    script = script.replace("--gpu none", limits)

    printed = b""
    for line in script.splitlines():
        command = line.replace("./flare.sh measure", f"{shlex.join(BRISK)} measure")
        makes = "make.sh" in command
        with example_tags() if makes else nullcontext():
            run = subprocess.run(
                ["bash", "-e", "-c", command],
                cwd=ROOT,
                env=os.environ | {"FLARE_BASE": python_base},
                capture_output=True,
                check=False,
            )
        assert run.returncode == 0, run.stderr.decode()
        printed += run.stdout

    quoted = re.findall(r"`(\w+: \d \w+)`", section)
    assert len(quoted) == 2
    for line in quoted:
        assert f"\n{line}\n" in printed.decode()
    with (tmp_path / "ranking" / "ranking.csv").open() as content:
        ranks = {row["team"]: int(row["rank"]) for row in csv.DictReader(content)}
    assert (ranks["careful"], ranks["hasty"], ranks["crash"]) == (1, 2, 4)
    assert left_behind(tmp_path) == []
