"""What is kept of runs, without any container."""

import pytest

from flare.measuring.record import log_text


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
