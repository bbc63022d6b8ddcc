"""What came of a run: each status, and why, without any container."""

from dataclasses import replace

import pytest

from flare.challenge.reading import read_challenge
from flare.measuring.container import ContainerRun, End, log_text
from flare.measuring.engines.interface import Exit
from flare.measuring.exchange import WrongOutputError
from flare.measuring.trial import check_output, status_of_run
from flare.results.efficiency_csv import RunStatus
from flare.results.traces_csv import Trace
from tests.builders import write_cases

RUN = ContainerRun(
    runtime_s=2.34,
    exit=Exit(),
    trace=Trace(samples=(), interval_s=0.1, runtime_s=2.34),
    log=b"",
)


OVER, CODE = "the container was ended after 2.3 s", "the container ended with exit code"


@pytest.mark.parametrize(
    ("own", "ended", "status", "message"),
    [
        ({}, {}, "ok", ""),
        ({}, {"problem": "no\nroom"}, "engine error", "the engine says: no\\nroom"),
        ({"end": End.FILLED_DISK}, {}, "failed", f"{OVER}: it took too much of the disk"
         " (--disk), or left less than 1 GiB"),
        ({"end": End.LOST_DISK}, {}, "engine error", "the disk was filled meanwhile"),
        ({"trace": replace(RUN.trace, problem="gone")}, {}, "engine error",
         "sampling has ended early: gone"),
        ({"end": End.LATE}, {}, "timed out", OVER),
        ({}, {"exit_code": 3}, "failed", f"{CODE} 3 after 2.3"),
        ({}, {"exit_code": 137, "is_out_of_memory": True}, "out of memory",
         f"{CODE} 137 after 2.3 s: its memory did not"),
        # A child that was ended for want of memory has not kept it from working.
        ({}, {"is_out_of_memory": True}, "ok", ""),
        # What was measured with is looked at before what was measured.
        ({"end": End.LATE}, {"exit_code": 137}, "timed out", "the container was ended"),
    ],
    ids=range(10),
)  # fmt: skip
def test_the_end_of_a_run_decides_its_status(own, ended, status, message):
    found = status_of_run(replace(RUN, exit=Exit(**ended), **own))

    assert found[0] is RunStatus(status)
    assert found[1] == message or (message and found[1].startswith(message))


@pytest.fixture
def judge(tmp_path):
    """Judge an output of some files, which are copies of the image, or other bytes."""
    images = write_cases(tmp_path / "images", ["c1_0000"])
    image = (images / "c1_0000.nii.gz").read_bytes()

    def run(files, others=()):
        folder = tmp_path / "outputs"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(image if content is None else content)
        try:
            check_output(folder, dict(others), images, read_challenge("flare21"))
        except WrongOutputError as error:
            return str(error)
        return ""

    return run


@pytest.mark.parametrize(
    ("files", "others"),
    [
        ({"sub/c1.nii.gz": None}, ()),
        ({"c1.nii.gz": None, "predictions.json": b"no JSON"}, ()),
        # As the evaluation leaves out what is no label map by its name.
        ({"c1.nii.gz": None, "plans.json": b"{}"}, [("latest", "a link")]),
    ],
)
def test_a_right_output_is_accepted(judge, files, others):
    assert judge(files, others) == ""


@pytest.mark.parametrize(
    ("files", "others", "message"),
    [
        ({}, (("c1.nii.gz", "a link"),), "c1.nii.gz: it is a link. "),
        ({"c1.nii.gz": None}, (("c2.nii.gz", "a pipe"),), "c2.nii.gz: it"),
        # The channel is the image's, not the label map's.
        ({"c1_0000.nii.gz": None}, (), "c1_0000.nii.gz: "),
        ({"c1.nii.gz": b"x"}, (), "c1.nii.gz: "),
        ({"plans.json": b"{}"}, (), "The submission holds no label map"),
        ({"c1.nii.gz": None, "c2.nii.gz": None}, (), "c2.nii.gz: no case has this"),
    ],
    ids=["link", "pipe", "channel", "text", "other", "second"],
)
def test_a_wrong_output_is_told_with_its_reason(judge, files, others, message):
    assert judge(files, others).startswith(message)


@pytest.mark.parametrize(
    ("log", "text"),
    [
        (b"", ""),
        (b"one\ntwo\n", "one\ntwo\n"),
        (b"no end", "no end\n"),
        (b"10%\r20%\r\ndone\n", "10%\n20%\ndone\n"),  # a progress bar
        (b"\x1b[31mred\x07\n", "\\x1b[31mred\\x07\n"),
        (b"\x9b2J \xe2\x80\xae\n", "\ufffd2J \\u202e\n"),
        (b"a\tb\n", "a       b\n"),
        ("ä €\n".encode(), "ä €\n"),
    ],
)
def test_a_log_that_no_terminal_obeys(log, text):
    assert log_text(log) == text
