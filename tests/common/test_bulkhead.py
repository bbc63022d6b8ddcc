"""What ends the work on one team, and what ends the program."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from flare.common.bulkhead import FAULTS, as_flare_error, bulkhead
from flare.common.errors import (
    FlareError,
    InputError,
    OutputError,
    ProgramError,
    WorkerError,
)


def _raise(error: BaseException) -> None:
    raise error


def _told(results: Path, error: BaseException) -> FlareError:
    found: list[FlareError] = []
    with bulkhead(results, "team", found.append):
        raise error
    return found[0]


def test_what_nobody_expected_keeps_its_traceback(tmp_path: Path) -> None:
    found = _told(tmp_path, OverflowError("65535"))

    assert isinstance(found, ProgramError)
    assert "OverflowError" in str(found)
    text = (tmp_path / FAULTS / "team.txt").read_text(encoding="utf-8")
    assert "Traceback" in text
    assert "OverflowError: 65535" in text


def test_a_name_that_is_no_utf_8_does_not_end_it(tmp_path: Path) -> None:
    """Names of files are their authors', and stand in tracebacks."""
    _told(tmp_path, ValueError("a\udcff.nii.gz"))

    assert "\\udcff" in (tmp_path / FAULTS / "team.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(28, "No space left on device", "a.csv"), OutputError),
        (MemoryError(), WorkerError),
        (InputError("a"), InputError),
    ],
    ids=["disk", "memory", "ours"],
)
def test_what_the_computer_lacks_is_no_fault_of_the_program(
    tmp_path: Path, error: BaseException, kind: type[FlareError]
) -> None:
    assert isinstance(_told(tmp_path, error), kind)
    assert not (tmp_path / FAULTS).exists()


def test_a_stop_goes_on_even_if_an_error_takes_its_place(tmp_path: Path) -> None:
    """What cleans up after Ctrl-C may fail; the program ends all the same."""
    found: list[FlareError] = []

    with pytest.raises(KeyboardInterrupt):
        _stop_within_a_bulkhead(tmp_path, found)

    assert not found


def _stop_within_a_bulkhead(results: Path, found: list[FlareError]) -> None:
    with bulkhead(results, "team", found.append):
        try:
            raise KeyboardInterrupt
        finally:
            _raise(InputError("while cleaning up"))


def test_a_traceback_survives_the_way_back_from_a_worker() -> None:
    try:
        _raise(OverflowError("65535"))
    except OverflowError as error:
        found = as_flare_error(error)

    again = pickle.loads(pickle.dumps(found))

    assert "OverflowError: 65535" in again.trace
    assert str(again) == str(found)
