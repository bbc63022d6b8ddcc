"""Teams that were measured on unlike computers, as a ranking points them out."""

import json

import pytest

import flare
from flare.reports.pages.report import write_report
from flare.results.calibration import (
    FLAGGED,
    Calibration,
    GpuSpeed,
    Times,
    find_unlike,
    ratios,
)
from flare.results.measurement_json import Measurement, read_measurement
from flare.results.unlike_hosts import unlike_notes
from tests.builders.pages import Page
from tests.builders.results import write_team


def times(seconds):
    return Times(median=seconds, smallest=seconds / 2, largest=seconds * 2)


def speed(integers, memory, **gpu):
    """A computer on which a round takes so many seconds."""
    return Calibration(
        integers=times(integers),
        memory=times(memory),
        gpu=GpuSpeed(**gpu) if gpu else None,
    )


def measured(calibration=None, **told):
    return Measurement(
        **{"settings": {"memory": "28g"}, "made_with": {}, "noise_s": None, **told},
        calibration=calibration,
    )


# --- Two of them ------------------------------------------------------------------


def test_the_fastest_round_counts():
    first = Calibration(integers=Times(median=0.03, smallest=0.02, largest=0.9))
    second = Calibration(integers=Times(median=0.03, smallest=0.03, largest=0.03))

    assert ratios(first, second) == {"integers": pytest.approx(1.5)}


def test_what_both_tell_is_compared():
    """Nothing, without times; GPUs by their names, clocks and limits alone."""
    gpu = {"name": "A", "max_sm_clock_mhz": 1980, "power_limit_w": 350.0}
    hot = {**gpu, "temperature_c": 90, "sm_clock_mhz": 210, "is_throttled": True}
    other = {**gpu, "power_limit_w": 250.0, "max_sm_clock_mhz": None}
    usual = speed(0.02, 0.02, **gpu)

    assert find_unlike(usual, Calibration(problem="none")) == ()
    assert find_unlike(usual, speed(0.0218, 0.0135, **hot)) == ()
    assert find_unlike(usual, speed(0.02, 0.02, **other)) == (
        "power_limit_w of the GPU is 250.0 instead of 350.0",
    )


@pytest.mark.parametrize(
    "content", [None, [], {"integers_s": 5}, {"integers_s": {"median": "x"}}]
)
def test_what_another_program_wrote_tells_nothing(content):
    assert Calibration.from_json(content) == Calibration()


def test_no_time_is_zero_or_without_end():
    for bad in (0.0, float("inf"), float("nan")):
        both = {"median": bad, "smallest": 0.1, "largest": 0.1}
        assert Calibration.from_json({"memory_s": both}) == Calibration()


def test_what_was_written_comes_back():
    found = speed(0.02, 0.03, name="A", is_throttled=False)

    assert Calibration.from_json(json.loads(json.dumps(found.to_json()))) == found


# --- All teams --------------------------------------------------------------------


def test_slower_computers_are_named_with_their_ratios():
    """Against the fastest, c; b is 5 % slower, and so alike."""
    teams = {
        "a": measured(speed(0.030, 0.020)),
        "b": measured(speed(0.021, 0.020)),
        "c": measured(speed(0.020, 0.020)),
        "d": measured(speed(0.040, 0.032)),
    }

    notes = unlike_notes(teams)

    assert notes[0] == (
        "Teams were measured on unlike computers: integers take 2.00 times as long on"
        " that of d, 1.50 times as long on that of a, compared with that of c"
    )
    assert notes[1] == (
        "Teams were measured on unlike computers: memory takes 1.60 times as long on"
        " that of d, compared with that of a"
    )
    assert len(notes) == 2


def test_computers_that_are_alike_are_not_mentioned():
    calibrations = (speed(0.020, 0.020), speed(0.0215, 0.024), speed(0.021, 0.022))
    teams = {str(n): measured(own) for n, own in enumerate(calibrations)}

    assert unlike_notes(teams) == ()


def test_a_flag_comes_earlier_than_a_refusal():
    """1.2 and 1.8 times as long."""
    first, second = speed(0.020, 0.020), speed(0.024, 0.036)

    assert find_unlike(first, second) == ()
    assert find_unlike(first, second, FLAGGED) == (
        "integers take 1.20 times as long",
        "memory takes 1.80 times as long",
    )
    assert find_unlike(first, speed(0.026, 0.041)) == (
        "integers take 1.30 times as long",
        "memory takes 2.05 times as long",
    )


def test_devices_and_limits_of_gpus():
    teams = {
        "a": measured(
            speed(0.02, 0.02, name="A100", power_limit_w=400.0),
            made_with={"device": "A100 (driver 570)"},
        ),
        "b": measured(
            speed(0.02, 0.02, name="H100", power_limit_w=350.0),
            made_with={"device": "H100 (driver 570)"},
        ),
    }

    assert unlike_notes(teams) == (
        "Teams were measured with different device: a A100 (driver 570), b H100"
        " (driver 570)",
        "Teams were measured with different power_limit_w of the GPU: a 400.0, b 350.0",
    )


def test_teams_without_a_calibration_are_named_if_others_have_one():
    with_one, without = measured(speed(0.02, 0.02)), measured()

    assert unlike_notes({"a": without, "b": without}) == ()
    assert unlike_notes({"a": with_one, "b": without}) == (
        "Whether the computer of b was like that of the other teams is not known: it"
        " was not calibrated",
    )


# --- From the file to the ranking -------------------------------------------------


def session(integers, after=None, unlike=None):
    both = [speed(s, 0.02).to_json() if s else None for s in (integers, after)]
    return {
        "calibration": dict(zip(("before", "after"), both, strict=True)),
        "unlike": unlike,
    }


def write_measurement(folder, *sessions):
    content = {"settings": {"memory": "28g"}, "sessions": list(sessions)}
    (folder / "measurement.json").write_text(json.dumps(content))


def test_the_first_computer_counts_and_all_that_was_odd_is_told(tmp_path):
    accepted = {"reason": "it broke", "found": ["integers take 1.50 times as long"]}
    write_measurement(
        tmp_path, session(0.02, 0.023), session(0.03, unlike=accepted), "no session"
    )

    found = read_measurement(tmp_path / "measurement.json")

    assert found.calibration == speed(0.02, 0.02)
    assert found.unlike == (
        "integers take 1.15 times as long afterwards",
        "integers take 1.50 times as long (accepted: it broke)",
    )


@pytest.mark.slow
def test_a_ranking_and_its_report_point_them_out(tmp_path):
    """As all other flags: in ranking.json, and on the page of the organisers."""
    results, output = tmp_path / "results", tmp_path / "ranking"
    for team, integers in (("a", 0.02), ("b", 0.03)):
        write_team(results / team, {"c1": 0.9, "c2": 0.8}, [])
        write_measurement(results / team, session(integers, integers))

    flare.rank(results, metrics=["dsc"]).write(output)

    flag = (
        "Teams were measured on unlike computers: integers take 1.50 times as long on"
        " that of b, compared with that of a"
    )
    assert flag in json.loads((output / "ranking.json").read_text())["flags"]
    page = tmp_path / "ranking.html"
    write_report([output], page, is_organiser=True)
    assert flag in " ".join(Page(page.read_text(encoding="utf-8")).text.split())
