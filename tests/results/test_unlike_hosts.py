"""Teams that were measured on unlike computers, as a ranking points them out."""

import json

import flare
from flare.results.measurement_json import Measurement, read_measurement, unlike_hosts
from tests.builders.results import write_team

TIMES = {"median": 0.02, "smallest": 0.02, "largest": 0.03}

OLD = {
    "calibration": {
        "before": {"integers_s": TIMES, "memory_s": TIMES, "gpu": None, "problem": ""},
        "after": None,
    },
    "unlike": {
        "reason": "it broke",
        "found": ["integers take 1.50 times as long"],
    },
}
"""A session as earlier versions wrote it."""


def measured(device):
    return Measurement(
        settings={"memory": "28g"}, made_with={"device": device}, noise_s=None
    )


def write_measurement(folder, *sessions):
    content = {"settings": {"memory": "28g"}, "sessions": list(sessions)}
    (folder / "measurement.json").write_text(json.dumps(content))


def test_devices_and_drivers():
    teams = {"a": measured("A100 (driver 570)"), "b": measured("H100 (driver 570)")}

    assert tuple(unlike_hosts(teams)) == (
        "Teams were measured with different device: a A100 (driver 570), b H100"
        " (driver 570)",
    )
    assert list(unlike_hosts({"a": teams["a"], "c": teams["a"]})) == []


def test_what_was_accepted_is_told_of_old_files_too(tmp_path):
    now = {"unlike": {"reason": "moved", "found": ["cpus is 1-3 instead of 1-7"]}}
    write_measurement(tmp_path, OLD, now, {"unlike": None}, {"unlike": 3}, "none")

    found = read_measurement(tmp_path / "measurement.json")

    assert found.unlike == (
        "integers take 1.50 times as long (accepted: it broke)",
        "cpus is 1-3 instead of 1-7 (accepted: moved)",
    )


def test_a_ranking_points_them_out(tmp_path):
    """As all other flags, in ranking.json."""
    results, output = tmp_path / "results", tmp_path / "ranking"
    for team in ("a", "b"):
        write_team(results / team, {"c1": 0.9, "c2": 0.8}, [])
    write_measurement(results / "b", OLD)

    flare.rank(results, metrics=["dsc"]).write(output)

    flag = (
        "b was not measured on one steady computer: integers take 1.50 times as long"
        " (accepted: it broke)"
    )
    assert flag in json.loads((output / "ranking.json").read_text())["flags"]
