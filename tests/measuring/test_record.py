"""What is kept of runs, without any container: logs, and what was rejected."""

import pytest

from flare.measuring import record
from flare.measuring.record import keep_label_maps, log_text


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


def reject(folder, case, *sizes):
    """Keep some files that are no prediction, in the folder of a team."""
    files = []
    for number, size in enumerate(sizes):
        files.append(folder / f"{case}-{number}.nii.gz")
        files[-1].write_bytes(bytes(size))
    keep_label_maps(folder, case, files, is_right=False)


def kept(folder):
    rejected = folder / "rejected"
    return {
        str(file.relative_to(rejected)): file.stat().st_size
        for file in rejected.glob("*/*")
    }


def test_rejected_files_of_a_team_have_a_budget(tmp_path, monkeypatch):
    """What does not fit is left out; what was there stays."""
    monkeypatch.setattr(record, "REJECTED_BYTES", 100)

    reject(tmp_path, "c1", 40, 70, 30)
    reject(tmp_path, "c2", 31, 30)

    assert kept(tmp_path) == {"c1/0.nii.gz": 40, "c1/2.nii.gz": 30, "c2/1.nii.gz": 30}


def test_what_was_rejected_of_a_case_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "REJECTED_BYTES", 100)
    reject(tmp_path, "c1", 90)

    reject(tmp_path, "c1", 95)

    assert kept(tmp_path) == {"c1/0.nii.gz": 95}
