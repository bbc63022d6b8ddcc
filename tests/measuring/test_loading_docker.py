"""Images that a real engine gets from two measurements at once, or cannot load."""

import subprocess

import pytest

from flare.common.docker import Docker
from flare.measuring import image as loading
from flare.measuring.archive.reading import read_archive
from flare.measuring.image import LoadError
from tests.builders.archives import FILES, save
from tests.builders.teams import SCRIPTS, write_team

pytestmark = [pytest.mark.docker, pytest.mark.slow]

OURS = "flare-measure-team-0123456789abcdef:latest"


@pytest.mark.parametrize(
    "other",
    ["flare-measure-team-fedcba9876543210:latest", "flare-test-somebody:latest"],
)
def test_a_tag_that_comes_while_an_image_is_loaded(
    docker, team_base, tmp_path, monkeypatch, other
):
    """D3: by another measurement of the same image, or by somebody else."""
    archive = read_archive(write_team(tmp_path, "good", SCRIPTS["good"]))
    feed = loading._feed

    def feed_and_tag(engine, fed):
        feed(engine, fed)
        found, _ = loading.find_image(engine, fed)
        subprocess.run([docker, "tag", found, other], check=True)

    monkeypatch.setattr(loading, "_feed", feed_and_tag)
    engine = Docker(docker)
    try:
        image = loading.load_image(engine, archive, OURS)

        assert archive.is_image(image)
        assert engine.tags_of(image)[image] == {OURS, other}
    finally:
        engine.remove_tags(OURS, other)
    assert not next(iter(engine.tags_of(image)), "")


@pytest.mark.parametrize("name", ["usr/bin/pkill", "tmp/a: no space left on device"])
def test_a_name_that_sounds_like_the_computer_s_fault(docker, tmp_path, name):
    """No file system takes a name of more than 255 bytes."""
    archive = read_archive(save(tmp_path, FILES, {name + 300 * "x": b"y"}))
    assert archive.problems == ()

    with pytest.raises(LoadError, match="file name too long"):
        loading.load_image(Docker(docker), archive, OURS)
