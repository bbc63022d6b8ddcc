"""What we make of an engine's answers, with a program that stands in for it."""

import os

import pytest

from flare.common.errors import EngineError
from flare.measuring.engines.docker import Docker, is_of_content
from flare.measuring.engines.interface import NoAnswerError
from tests.builders import error_of


@pytest.mark.parametrize("program", ["nvidia-ctk", "nvidia-container-cli"])
def test_the_version_of_the_toolkit(make_engine, tmp_path, monkeypatch, program):
    engine = make_engine('print(\'{"ServerVersion": "1"}\')')
    file = tmp_path / "bin" / program
    file.parent.mkdir()
    file.write_text("#!/bin/sh\necho 'NVIDIA Container Toolkit CLI version 1.17.4'\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{file.parent}:{os.environ['PATH']}")

    assert engine.describe()["nvidia_toolkit"] == "1.17.4"


def test_an_engine_that_does_not_answer(make_engine):
    engine = make_engine("time.sleep(600)")

    assert str(error_of(NoAnswerError, engine.call, "ps", timeout_s=0.3)).endswith(
        "docker ps: no answer for 0 s. Restart Docker, and go on. [H05]"
    )


def test_how_long_an_engine_has_worked(tmp_path):
    """The 14th and 15th field of the kernel's list."""
    times = {"1": "(dockerd) S", "2": "(a) dockerd) S", "3": "(containerd) R"}
    for number, name in times.items():
        (tmp_path / number).mkdir()
        fields = " ".join(map(str, range(4, 30)))  # each has its number in the list
        (tmp_path / number / "stat").write_text(f"{number} {name} {fields}")
    (tmp_path / "4").mkdir()  # it has just ended

    ticks = os.sysconf("SC_CLK_TCK")
    assert Docker().busy_s(tmp_path) == 2 * (14 + 15) / ticks
    assert Docker().busy_s(tmp_path / "1") is None


def test_one_answer_tells_the_tags_of_all_images_that_are_there(make_engine):
    """One answer for all that are asked for, without those that are not there."""
    engine = make_engine(
        """print('sha256:1 ["a:latest","b:latest"]')""",
        "print('sha256:2 null')",
        "sys.exit('Error: No such image: 3')",
    )

    assert engine.tags_of("sha256:1", "sha256:2", "sha256:3") == {
        "1": {"a:latest", "b:latest"},
        "2": frozenset(),
    }
    engine.remove_untagged("sha256:1", "sha256:2", "sha256:3")

    removed = [call for call in make_engine.state()["calls"] if call[1] == "rm"]
    assert removed == [["image", "rm", "sha256:2"]]


def test_a_container_that_cannot_be_removed(make_engine):
    engine = make_engine(
        "if words[0] == 'rm': sys.exit('device or resource busy')",
        "if words[0] == 'ps': print('0123456789abcdef')",
    )

    with pytest.raises(EngineError, match="container 0123456789ab cannot be removed"):
        engine.remove_container("0123456789abcdef")


# --- Whose fault it is that an image cannot be loaded -------------------------------

LAYER = "Error response from daemon: failed to register layer: "


OF_THE_CONTENT, OF_THE_COMPUTER, OF_NEITHER = (
    [
        # Docker 20.10 and 28, of a configuration.
        "json: cannot unmarshal number into Go struct field Config.config.StopTimeout"
        " of type int",
        r'parsing time "\"yesterday\"" as "\"2006-01-02T15:04:05Z07:00\"": cannot parse'
        r' "yesterday\"" as "2006"',
        r'parsing time "\"2026-01-01T10:00:60Z\"": second out of range',
        "Error response from daemon: invalid character 'ÿ' looking for beginning of"
        " value",
        LAYER + "lsetxattr /usr/bin/pkill: operation not supported",
        LAYER + "lsetxattr /opt/memory/timeout.py: operation not supported",
        LAYER + "lsetxattr /a no space left on device/x: operation not supported",
        LAYER + "lsetxattr /a: no space left on device: operation not supported",
        LAYER + "lchown /usr/bin/pkill: invalid argument: unknown",
        LAYER + "lsetxattr security.capability /usr/bin/pkill",
        LAYER + 'invalid symlink "/x" -> "a: no space left on device"',
        LAYER + r'invalid symlink "/x" -> "a\": no space left on device"',
        "Error processing tar file(lsetxattr /bin/kill: not supported): exit status 1",
    ],
    [
        "Error response from daemon: open /opt/unpack/xattr: device or resource busy",
        'Error response from daemon: rename "/unpack" "/xattr": permission denied',
        LAYER + "write /usr/bin/x: no space left on device",
        LAYER + "write /usr/bin/pkill: no space left on device: unknown",
        LAYER + "write /usr/bin/a name: input/output error",
        "Error processing tar file(write /x: no space left on device): exit status 1",
        "Error processing tar file(signal: killed): ",
        "processing tar file: i/o timeout",
        # A proxy on the way to an engine elsewhere answers with a page.
        "error during connect: invalid character '<' looking for beginning of value",
        "unexpected EOF",
        "",
    ],
    [
        "Error response from daemon: invalid manifest, layers length mismatch",
        "Error response from daemon: no such thing /opt/busy: unheard of",
    ],
)


@pytest.mark.parametrize("said", [*OF_THE_CONTENT, *OF_THE_COMPUTER, *OF_NEITHER])
def test_names_in_an_image_do_not_change_whose_fault_it_is(said):
    expected = None if said in OF_NEITHER else said in OF_THE_CONTENT

    assert is_of_content(said) is expected
