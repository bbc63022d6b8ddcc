"""The guide of the service is followed, from its first command to its last."""

import json
import os
import re
import shutil
import stat
from contextlib import nullcontext
from dataclasses import replace

import pytest

from tests.builders import ROOT
from tests.builders.guides import COMMENT, blocks, make_commands, run_block
from tests.builders.teams import BRISK_CODE, PREDICT, example_tags
from tests.fakes.platform import PHASE, TOKEN

GUIDE = ROOT / "docs" / "organisers" / "external-evaluation.md"

FOLDER, PLATFORM = "With a folder", "With a phase of grand-challenge.org"
CONTRACTS = "FLARE's images, and the platform's algorithms"

ALGORITHM = """
mkdir -p /output/images/organ-segmentation
cp /input/images/ct/*.nii.gz /output/images/organ-segmentation/output.nii.gz
"""


def blocks_of(section):
    """The blocks of a section that can be run."""
    found = [b for b in blocks(GUIDE) if b.section == section and not b.reason]
    assert found
    return found


def test_every_block_is_run_here_or_says_why_not():
    run = {FOLDER, PLATFORM, CONTRACTS}

    assert {b.section for b in blocks(GUIDE) if not b.reason} == run
    comments = re.findall(r"<!--.*?-->", GUIDE.read_text(encoding="utf-8"))
    assert all(COMMENT.fullmatch(comment) for comment in comments)


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.tools(package="jinja2")
def test_the_way_with_a_folder(tmp_path, python_base):
    """Four teams are made, measured, ranked and reported, one of which crashes.

    What the words of the guide lack is a small base, and that nothing has to be cold.
    """
    place = tmp_path / "checkout"
    for name in ("examples", "ground-truth", "scripts"):
        shutil.copytree(ROOT / name, place / name)
    warm = "words += ['--caches', 'warm', '--no-warm-up'] * (words[0] == 'serve')"
    commands = make_commands(tmp_path / "bin", warm, BRISK_CODE)
    printed = []

    for block in blocks_of(FOLDER):
        with example_tags() if "make.sh" in block.script else nullcontext():
            said = run_block(block, place, commands, FLARE_BASE=python_base)
        printed.append(said)
        for file in (place / "archives").glob("*.tar.gz"):
            wait_ten_seconds(file)

    served = printed[2]
    assert "careful.tar.gz  careful  returned" in served
    assert "Failed 0 of 5 cases gave a label map: 5 failed" in served
    returned = place / "archives" / "returned"
    answers = {f.stem: json.loads(f.read_text()) for f in returned.iterdir()}
    assert {team: answer["status"] for team, answer in answers.items()} == {
        "careful": "Succeeded",
        "hasty": "Succeeded",
        "empty": "Succeeded",
        "crash": "Failed",
    }
    ranking = (place / "ranking" / "ranking.csv").read_text().splitlines()
    assert ranking[1].startswith("careful,1,")
    assert "careful" in (place / "ranking.html").read_text()


def wait_ten_seconds(file):
    """As whoever follows the guide does, for whom time passes."""
    state = file.stat()
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns - 20_000_000_000))


@pytest.mark.slow
def test_the_way_with_a_phase(bench, external_platform):
    """With a fake of the platform, and an engine by script.

    What the words of the guide lack is only where that platform is, that the service
    shall end, and that this computer has no GPU.
    """
    place = bench.folder / "home"
    place.mkdir()
    (place / "CTs").symlink_to(bench.images)
    (place / "labels").symlink_to(bench.labels)
    (place / "token").write_text(f"{TOKEN}\n")
    (place / "token").chmod(0o644)

    more = ["--api", external_platform.api, "--once", "--gpu", "none"]
    more += ["--caches", "warm", "--no-warm-up", "--interval", "0.02"]
    change = (
        f"words = [{PHASE!r} if word == 'UUID' else word for word in words]\n"
        f"words += {more} if words[0] == 'serve' else []"
    )
    commands = make_commands(bench.folder / "bin", change)

    def hand_in(user, file):
        external_platform.submit(user, file.read_bytes())

    hand_in("jane", bench.archive("image-1", PREDICT))
    (block,) = blocks_of(PLATFORM)
    printed = run_block(block, place, commands)
    hand_in("sam", bench.algorithm("image-2", ALGORITHM))
    (block,) = blocks_of(CONTRACTS)
    export = "export FLARE_GC_TOKEN_FILE=~/token\n"  # of the same shell as before
    block = replace(block, script=f"{export}{block.script}")
    printed += run_block(block, place, commands)

    assert stat.S_IMODE((place / "token").stat().st_mode) == 0o600
    assert printed.startswith("jane (00000000): would be claimed\n")
    for (answer,) in external_platform.answers().values():
        assert answer["metrics"]["aggregates"]["dsc_mean"] == 1
    assert external_platform.calls("claim") == [200, 200]
    assert TOKEN not in printed
    assert bench.engine.left() == []
