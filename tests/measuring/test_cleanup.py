"""What a measurement leaves behind: nothing, even where it is killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from flare.common.errors import OutputError, StoppedError
from flare.measuring import cleanup, team
from flare.measuring.cleanup import LeftoverError, clean_up, guarded, label_of
from flare.measuring.engines.interface import NoAnswerError
from flare.results.errors import MeasurementError
from flare.results.team_folder import FolderLock
from tests.builders import ROOT, error_of, wait_until
from tests.builders.teams import SCRIPTS

pytestmark = pytest.mark.newest  # they wait for processes

KILLED = """
import sys, time
from pathlib import Path
from flare.measuring.engines.docker import Docker
from flare.measuring import cleanup
from flare.measuring.cleanup import guarded, label_of
from flare.measuring.image import image_tar
from flare.results.team_folder import FolderLock
from flare.measuring.image import output_volume

cleanup.PAUSE_S = 0.05
engine, folder, images = Docker(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
with (
    FolderLock(folder) as lock,
    guarded(engine, folder, images=images, lock=lock) as place,
):
    if images:
        with place.loading():
            print("ready", flush=True)
            time.sleep(600)
    empty = engine.import_image(image_tar(), place.tags[0])
    with output_volume(engine, empty, label_of(place.key), "1m"):
        print("ready", flush=True)
        time.sleep(600)
"""
"""A measurement that is killed when all is made, or while an image is loaded."""


@pytest.fixture
def start(scripted_engine, tmp_path, monkeypatch):
    """Start a measurement that waits to be killed, with a guard that sleeps little."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def run(*images):
        program = scripted_engine.program
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, program, tmp_path / "team", *images],
            stdout=subprocess.PIPE,
        )
        assert process.stdout.readline() == b"ready\n"
        return process

    return run


def end(process, number):
    process.send_signal(number)
    process.communicate()


def test_after_a_kill_the_guard_removes_everything(start, scripted_engine, tmp_path):
    """Container, volume, image and folder; until then the folder is locked."""
    process = start()
    assert len(scripted_engine.left()) == 4

    end(process, signal.SIGKILL)

    with FolderLock(tmp_path / "team"):
        assert scripted_engine.left() == []
        assert [p.name for p in (tmp_path / "team").iterdir()] == [".measuring.json"]


def test_what_the_engine_has_loaded_only_after_a_kill_is_removed(
    start, scripted_engine, tmp_path
):
    """Otherwise the guard would have ended after three looks."""
    image = "a" * 64
    process = start(image)
    end(process, signal.SIGKILL)
    wait_until((scripted_engine.state / "calls").exists)
    wait_until(lambda: len(scripted_engine.calls("image inspect")) > 5)

    (scripted_engine.state / "images" / image).mkdir()

    with FolderLock(tmp_path / "team"):
        assert scripted_engine.left() == []


def test_what_somebody_else_loads_after_an_interruption_is_left_to_him(
    scripted_engine, tmp_path, monkeypatch
):
    """Nothing was being loaded here: an image without a tag is about to get one."""
    image = "a" * 64
    monkeypatch.setattr(cleanup, "PAUSE_S", 0.3)

    def cut_off(somebody):
        somebody.start()
        raise KeyboardInterrupt

    def load_later():
        """When the measurement has cleaned up, and the guard looks once more."""
        wait_until((scripted_engine.state / "calls").exists)
        wait_until(lambda: len(scripted_engine.calls("volume ls")) > 2)
        (scripted_engine.state / "images" / image).mkdir()

    somebody = threading.Thread(target=load_later)
    with (
        pytest.raises(KeyboardInterrupt),
        FolderLock(tmp_path) as lock,
        guarded(scripted_engine, tmp_path, images=(image,), lock=lock),
    ):
        cut_off(somebody)
    somebody.join()

    assert scripted_engine.left() == [f"images/{image}"]


def end_guard(folder):
    """End the process that removes what was made in a folder, and what it has begun."""
    groups = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = file.read_bytes().decode(errors="replace").split("\0")
            if words[:2] == ["sh", "-c"] and str(folder) in " ".join(words[3:]):
                groups.add(os.getpgid(int(file.parent.name)))
    (guard,) = groups
    os.killpg(guard, signal.SIGKILL)


def test_what_a_guard_has_left_is_removed_by_the_next_measurement(
    start, scripted_engine, tmp_path
):
    """Where the engine failed until the guard was ended, too."""
    process = start()
    for command in ("rm", "volume-rm", "image-rm"):
        scripted_engine.fail(command)
    end(process, signal.SIGKILL)
    wait_until(lambda: len(scripted_engine.calls("rm --force")) > 1)
    end_guard(tmp_path)
    assert len(scripted_engine.left()) == 4
    for command in ("rm", "volume-rm", "image-rm"):
        scripted_engine.work(command)

    clean_up(scripted_engine, tmp_path / "team")

    assert scripted_engine.left() == []
    assert not (tmp_path / "team" / ".measuring.json").exists()


@pytest.mark.parametrize("how", [KeyboardInterrupt, StoppedError])
def test_what_an_engine_does_only_after_an_interruption_is_removed(
    scripted_engine, tmp_path, monkeypatch, how
):
    """The command was on its way, and what is there was removed before it was done."""
    monkeypatch.setattr(cleanup, "PAUSE_S", 0.05)
    engine, keys, clean = scripted_engine, [], cleanup.clean_up

    def clean_too_early(*what):
        clean(*what)
        for key in keys:
            make_volume(engine, key)
            assert len(scripted_engine.left()) == 1

    def cut_off(place):
        keys.append(place.key)
        raise how if how is KeyboardInterrupt else how("The service was ended")

    monkeypatch.setattr(cleanup, "clean_up", clean_too_early)

    with (
        pytest.raises(how),
        FolderLock(tmp_path) as lock,
        guarded(engine, tmp_path, images=(), lock=lock) as place,
    ):
        cut_off(place)

    assert scripted_engine.left() == []


def note(folder, *images):
    """Note that something was made, as a measurement does that is killed then."""
    made = {"key": "k", "tags": [], "images": images, "work": ".work-k"}
    (folder / ".measuring.json").write_text(json.dumps(made))


def test_what_cannot_be_removed_is_told(scripted_engine, tmp_path, monkeypatch):
    note(tmp_path)
    (tmp_path / ".work-k").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(cleanup, "remove_tree", lambda _: None)
        with pytest.raises(MeasurementError, match=r"as root: sudo rm -r .*work"):
            clean_up(scripted_engine, tmp_path)
    make_volume(scripted_engine, "k")
    scripted_engine.fail("volume-rm")

    assert str(error_of(LeftoverError, clean_up, scripted_engine, tmp_path)) == (
        f"{tmp_path.name}: what its measurement has made stays in the engine"
        " (containers or volumes cannot be removed (1)). Restart Docker, and go on."
        " [H07]"
    )


@pytest.fixture
def impatient(scripted_engine, monkeypatch):
    """An engine that is waited for a second, by us and by guards."""
    run = partial(scripted_engine.run, timeout_s=1)
    monkeypatch.setattr(scripted_engine, "run", run)
    for name, seconds in (("PAUSE_S", 0.05), ("GUARD_ANSWER_S", 1), ("GUARD_S", 3)):
        monkeypatch.setattr(cleanup, name, seconds, raising=False)
    return scripted_engine


def measured(engine, folder, hangs, then=lambda: None):
    """A measurement that has made a volume, and a command that hangs from then on."""
    with (
        FolderLock(folder) as lock,
        guarded(engine, folder, images=(), lock=lock) as place,
    ):
        make_volume(engine, place.key)
        engine.hang(hangs)
        then()


def make_volume(engine, key):
    words = ("--driver", "local", "--label", label_of(key))
    return engine.call("volume", "create", *words)


def test_an_engine_that_hangs_lets_a_measurement_end(impatient, tmp_path, caplog):
    """One line says what may remain; the guard goes on with what does not hang."""
    caplog.set_level("INFO")
    folder = tmp_path / "team"
    start = time.monotonic()

    with pytest.raises(LeftoverError, match=r"team: .*volume: no answer for 1 s\)"):
        measured(impatient, folder, "volume-rm")

    assert time.monotonic() - start < 60
    (line,) = caplog.messages
    assert line.startswith("team: in the engine may remain what has the label flare.me")
    assert impatient.calls("image rm --force flare-measure-team-")
    assert len(impatient.left()) == 1
    with FolderLock(folder):  # the guard has ended
        impatient.work("volume-rm")
        clean_up(impatient, folder)
    assert impatient.left() == []


def test_a_guard_asks_again_until_the_engine_answers(
    impatient, tmp_path, monkeypatch, caplog
):
    """A list that is not given is no list of nothing."""
    caplog.set_level("INFO")
    monkeypatch.setattr(cleanup, "GUARD_S", 60, raising=False)

    def repair():
        """When we have asked once, and the guard at least once."""
        wait_until(lambda: len(impatient.calls("volume ls")) > 2)
        impatient.work("volume-ls")

    repairer = threading.Thread(target=repair)
    with pytest.raises(LeftoverError):
        measured(impatient, tmp_path / "team", "volume-ls", then=repairer.start)
    repairer.join()

    assert (impatient.left(), caplog.messages) == ([], [])


def test_an_engine_that_answers_nothing_is_no_fault_of_a_team(impatient, tmp_path):
    note(tmp_path)
    for command in ("ps", "info"):
        impatient.hang(command)

    with pytest.raises(NoAnswerError, match="info: no answer for 1 s"):
        clean_up(impatient, tmp_path)


def test_what_a_team_has_left_for_ever_stops_that_team_alone(impatient, bench):
    """Its image was run before, and nobody can remove what that has left."""
    (bench.results / "a").mkdir(parents=True)
    note(bench.results / "a")
    volume = make_volume(impatient, "k")
    (impatient.state / "volumes" / volume / "hang").touch()
    archives = [bench.archive(team, SCRIPTS["good"]) for team in "ab"]

    errors = bench.measure(*archives)

    assert str(errors["a"]) == (
        "a.tar.gz: nothing more of this team is run: a: what its measurement has made"
        f" stays in the engine ({impatient.program} volume: no answer for 1 s). Restart"
        " Docker, and go on. [F15]"
    )
    assert list(errors) == ["a"]
    assert {row["status"] for row in bench.rows("b").values()} == {"ok"}
    assert impatient.left() == [f"volumes/{volume}"]


def test_what_a_team_has_left_is_removed_again_right_before_it_is_measured(
    bench, monkeypatch
):
    """Where it is planned on another computer, nothing of it was seen there."""
    folders = []
    monkeypatch.setattr(team, "clean_up", lambda _, folder: folders.append(folder))

    assert bench.measure(bench.archive("a", SCRIPTS["good"]), cases=1) == {}

    assert folders == [bench.results / "a"] * 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"key": 1, "tags": 2}', "\0"])
def test_a_state_of_another_program_is_left_alone(scripted_engine, tmp_path, text):
    (tmp_path / ".measuring.json").write_text(text)

    clean_up(scripted_engine, tmp_path)

    assert not (scripted_engine.state / "calls").exists()


def test_if_the_state_cannot_be_read_the_name_of_a_folder_tells_the_key(
    scripted_engine, tmp_path, caplog
):
    caplog.set_level("INFO")
    key, other_key = cleanup.new_key(tmp_path), cleanup.new_key(tmp_path / "b")
    for folder_key in (key, other_key):
        (tmp_path / f".work-{folder_key}").mkdir()
        make_volume(scripted_engine, folder_key)
    (tmp_path / ".measuring.json").write_text('{"key": "')

    clean_up(scripted_engine, tmp_path)

    assert len(scripted_engine.left()) == 1
    assert [path.name for path in tmp_path.glob(".*")] == [f".work-{other_key}"]
    (line,) = caplog.messages
    assert line.endswith(
        ": .measuring.json cannot be read; an image without a tag may remain in the"
        " engine"
    )


def test_an_image_of_ours_that_lacks_a_tag_is_removed(scripted_engine, tmp_path):
    """Loading was ended before it got one; an image with a tag stays."""
    for image, tag in (("a" * 64, ""), ("b" * 64, "theirs:latest")):
        (scripted_engine.state / "images" / image).mkdir()
        if tag:
            (scripted_engine.state / "tags" / tag).write_text(f"{image}\n")
    note(tmp_path, "a" * 64, "b" * 64)

    clean_up(scripted_engine, tmp_path)

    assert scripted_engine.left() == ["tags/theirs:latest", f"images/{'b' * 64}"]


def test_a_folder_of_work_that_cannot_be_made(scripted_engine, tmp_path, monkeypatch):
    monkeypatch.setattr(cleanup, "new_key", lambda _: "k")
    folder = tmp_path / "team"

    with FolderLock(folder) as lock:
        (folder / ".work-k").write_text("not ours")
        with (
            pytest.raises(OutputError, match=r"\.work-k: it cannot be made \("),
            guarded(scripted_engine, folder, images=(), lock=lock),
        ):
            pass

    assert not (folder / ".measuring.json").exists()
