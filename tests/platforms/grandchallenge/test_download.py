"""Results off the platform, whose API a server on this computer stands in for."""

import json
import os
from types import SimpleNamespace

import pytest

from flare.cli.main import main
from flare.platforms.grandchallenge import client as client_module
from flare.platforms.grandchallenge import download as download_module
from flare.platforms.grandchallenge.download import _folders, choose
from flare.platforms.grandchallenge.errors import PlatformError
from tests.builders import write_file
from tests.builders.errors import told
from tests.builders.npz import zip_bytes
from tests.builders.schemas import file_problems
from tests.fakes.platform import PHASE, TOKEN, described

USERS = ("alice", "bob", "carl")
STRANGER = "it does not answer as grand-challenge.org"
METRICS = {"case": {"dsc": {"0": 0.1}}, "aggregates": {"dsc_mean": 0.1}}


def evaluation(
    number, username, *, rank=0, day=1, file=None, metrics=None, key="socket", **changes
):
    """An entry with a metrics.json, by default one of its own."""
    pk, created = f"00000000-0000-0000-0000-{number:012}", f"2026-09-{day:02}T10:00:00Z"
    value = {**METRICS, "number": number} if metrics is None else metrics
    outputs = [{"pk": number, "value": value, key: {"slug": "metrics-json-file"}}]
    entry = described(pk, username, created, file=file)
    return {**entry, "outputs": outputs, "rank": rank, **changes}


def uploaded(platform, **users):
    """An evaluation of each user, with what was uploaded, if anything was."""
    for number, (user, content) in enumerate(users.items(), start=1):
        file = content and address(platform, platform.submit(user, content))
        platform.listed.append(evaluation(number, user, file=file))


def address(platform, pk):
    host = platform.api.removesuffix("/api/v1/")
    return f"{host}/media/docker/images/{pk}/x.tar.gz"


@pytest.fixture
def platform(external_platform, monkeypatch):
    """The server, which tests give its evaluations; nobody waits for it."""
    monkeypatch.setattr(client_module, "FIRST_PAUSE_S", 0.0)
    return external_platform


@pytest.fixture
def fetch(platform, monkeypatch, capfd):
    """`flare download`, which never tells the token; status, stdout and stderr."""

    def run(output, *words, token=TOKEN, phase=PHASE):
        monkeypatch.setenv("FLARE_GC_TOKEN", token)
        command = ["download", "--phase", phase, "--output", str(output), *words]
        status = main([*command, "--api", platform.api])
        stdout, stderr = capfd.readouterr()
        assert token not in stdout + stderr
        return status, stdout, stderr

    return run


def line_of(run):
    status, stdout, stderr = run
    assert status == 1, stdout
    (line,) = stderr.splitlines()
    return line


def numbers(output):
    """Which evaluation each team has."""
    files = sorted(output.glob("*/metrics.json"))
    return {file.parent.name: json.loads(file.read_text())["number"] for file in files}


def names(folder):
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    return sorted(path.as_posix() for path in found)


# --- Which evaluation counts, and where -------------------------------------------


@pytest.mark.parametrize(
    ("ranks_and_days", "expected"),
    [
        pytest.param([(0, 1), (2, 2), (0, 3)], 1, id="best: only that one has a rank"),
        pytest.param([(0, 1), (0, 2), (3, 3)], 2, id="most recent: likewise"),
        pytest.param([(2, 1), (1, 2), (3, 3)], 1, id="all: the first of them"),
        pytest.param([(2, 1), (2, 2)], 1, id="equal ranks: the newest"),
        pytest.param([(0, 1), (0, 3), (0, 2)], 1, id="not published: the newest"),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_the_one_on_the_board_counts(ranks_and_days, expected, backwards):
    found = [
        SimpleNamespace(user="a", rank=rank, created=day, number=number)
        for number, (rank, day) in enumerate(ranks_and_days)
    ]

    (chosen,) = choose(reversed(found) if backwards else found)

    assert chosen.number == expected


def test_folders_are_called_like_users_where_that_is_possible(tmp_path):
    """The digits are the first of `printf %s NAME | sha256sum`."""
    expected = {
        "a.b-c_1": "a.b-c_1",
        "x@y.org": "x@y.org",
        "Über": "Über",
        "..": "user-5ec1f7e7",
        "a/b": "a-b-c14cddc0",
        "": "user-e3b0c442",
        "refused.csv": "refused-csv-10c4a026",
        "jane-00000000": "jane-00000000-92ef361f",
    }

    assert _folders(tmp_path, [*expected]) == expected


def test_a_folder_of_an_earlier_download_stays_with_its_user(tmp_path):
    """Also under a name that was given otherwise."""
    kept = {"user-x_y_org-12345678": "x@y.org", "Carl": "Carl", "eve": "mallory"}
    for folder, user in kept.items():
        write_file(tmp_path / folder / "platform.json", json.dumps({"username": user}))

    folders = _folders(tmp_path, ["x@y.org", "Carl", "carl", "eve"])

    assert folders["x@y.org"] == "user-x_y_org-12345678"
    assert folders["Carl"] == "Carl"
    assert folders["carl"].startswith("carl-")
    assert folders["eve"].startswith("eve-")


def test_two_users_never_share_a_folder(tmp_path, monkeypatch):
    """Eight digits can be equal, if somebody tries long enough."""
    monkeypatch.setattr(download_module, "derived_folder", lambda _: "same-00000000")

    with pytest.raises(PlatformError, match="it would be of Carl, CARL"):
        _folders(tmp_path, ["Carl", "CARL"])


def test_a_folder_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "alice").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PlatformError, match="alice: the folder is a link"):
        _folders(tmp_path, ["alice"])


# --- Downloads --------------------------------------------------------------------


def test_results_are_as_rank_reads_them(platform, fetch, tmp_path):
    """Of all pages; what failed, or has no metrics, is left out."""
    platform.limit = 4
    platform.listed = [
        evaluation(1, "alice", rank=2, day=1),
        evaluation(2, "alice", rank=0, day=2),
        evaluation(3, "bob", rank=0, day=1, key="interface"),
        evaluation(4, "bob", rank=1, day=2, key="interface"),
        evaluation(5, "carl", status="Failed"),
        evaluation(6, "dora", outputs=[]),
        *(evaluation(n, f"user{n}", rank=n) for n in (7, 8, 9)),
    ]

    status, stdout, stderr = fetch(tmp_path / "results")

    assert (status, stderr) == (0, "")
    assert stdout == (
        "[1/5] alice: rank 2, of 2026-09-01 10:00\n"
        "[2/5] bob: rank 1, of 2026-09-02 10:00\n"
        + "".join(
            f"[{n - 4}/5] user{n}: rank {n}, of 2026-09-01 10:00\n" for n in (7, 8, 9)
        )
        + f"5 teams are in {tmp_path / 'results'}\n"
    )
    assert platform.calls("list") == [200] * 3
    others = {f"user{n}": n for n in (7, 8, 9)}
    assert numbers(tmp_path / "results") == {"alice": 1, "bob": 4, **others}
    text = (tmp_path / "results" / "alice" / "metrics.json").read_text()
    assert text == json.dumps({**METRICS, "number": 1}, indent=2) + "\n"
    record = tmp_path / "results" / "bob" / "platform.json"
    assert file_problems(record, "platform") == []
    ranked = json.loads(record.read_text())
    assert ranked["evaluation"] == "00000000-0000-0000-0000-000000000004"


@pytest.mark.parametrize(("mib", "limits"), [(1, [20, 10, 5, 2, 2, 2]), (3, None)])
def test_long_pages_are_asked_for_in_smaller_ones(
    platform, fetch, tmp_path, monkeypatch, mib, limits
):
    """Of five evaluations of 3 MiB each, an answer of 8 MiB has at most two."""
    metrics = {**METRICS, "x": "x" * (3 * mib * 2**20)}
    users = [f"user{number}" for number in range(5)]
    platform.listed = [
        evaluation(number, user, metrics=metrics) for number, user in enumerate(users)
    ]
    asked, real = [], download_module.Client.call

    def call(client, *words, params, **more):
        asked.append(int(params["limit"]))
        return real(client, *words, params=params, **more)

    monkeypatch.setattr(download_module.Client, "call", call)

    run = fetch(tmp_path)

    if limits:
        assert (run[0], asked) == (0, limits)
        assert sorted(path.name for path in tmp_path.iterdir()) == users
    else:
        assert "localhost: its answer is longer than 8 MiB" in line_of(run)
        assert asked == [20, 10, 5, 2, 1]


def test_a_second_download_goes_on_where_the_first_was(platform, fetch, tmp_path):
    """What is there stays, what is not is fetched, and what is newer replaces it."""
    uploaded(
        platform,
        alice=zip_bytes([("one", b"1")]),
        bob=None,
        carl=zip_bytes([("a.nii.gz", b"A"), ("old.nii.gz", b"O")]),
    )
    assert fetch(tmp_path, "--predictions")[0] == 0
    (tmp_path / "bob" / "metrics.json").unlink()  # as if it had been ended before
    (tmp_path / "alice" / "predictions" / "one").write_bytes(b"edited")
    before = (tmp_path / "alice" / "metrics.json").stat().st_mtime_ns
    upload = zip_bytes([("a.nii.gz", b"B"), ("new.nii.gz", b"N")])
    newer = platform.submit("carl", upload)
    file = address(platform, newer)
    platform.listed += [evaluation(4, "carl", rank=1, day=2, file=file)]

    status, stdout, _ = fetch(tmp_path, "--predictions")

    assert status == 0
    assert "[1/3] alice: not on the board, as a ranked value is missing, of" in stdout
    assert numbers(tmp_path) == {"alice": 1, "bob": 2, "carl": 4}
    assert (tmp_path / "alice" / "metrics.json").stat().st_mtime_ns == before
    assert (tmp_path / "alice" / "predictions" / "one").read_bytes() == b"edited"
    kept = tmp_path / "carl" / "predictions"
    assert names(kept) == ["a.nii.gz", "inputs.json", "new.nii.gz"]
    assert (kept / "a.nii.gz").read_bytes() == b"B"
    assert len(platform.calls("file")) == 3


def test_results_that_are_not_from_the_platform_are_left_alone(
    platform, fetch, tmp_path
):
    write_file(tmp_path / "alice" / "metrics.json", "mine")
    platform.listed = [evaluation(1, "alice", rank=1)]

    line = line_of(fetch(tmp_path))

    assert "/alice/metrics.json: it is there, and not from the platform" in line
    assert (tmp_path / "alice" / "metrics.json").read_text() == "mine"


@pytest.mark.parametrize(
    "metrics",
    [
        pytest.param({**METRICS, "x": float("nan")}, id="nan"),
        pytest.param({**METRICS, "x": [float("inf")]}, id="inf"),
        pytest.param({"aggregates": {}}, id="no cases"),
    ],
)
def test_metrics_that_are_none_keep_nobody_else_from_theirs(
    platform, fetch, tmp_path, metrics
):
    """All teams are named of which something is missing, and why, in their lines."""
    uploaded(platform, alice=None, bob=b"\x1f\x8b", carl=None)
    platform.listed[0]["outputs"][0]["value"] = metrics

    run = fetch(tmp_path, "--predictions")

    line = line_of(run)
    assert told(line)[0] == "H09"
    assert line.startswith("alice, bob: the platform")
    assert "of 2026-09-01 10:00, is not whole: predictions.zip is not" in run[1]
    assert numbers(tmp_path) == {"bob": 2, "carl": 3}


def test_answers_come_with_their_table(platform, fetch, tmp_path):
    """Their metrics.json has no value of a case, and their upload may be no zip."""
    table = b"name,prediction\na,0.5\n"
    uploaded(platform, alice=table)
    metrics = {"case": {}, "aggregates": {"auroc_task": 0.5}, "number": 1}
    platform.listed[0]["outputs"][0]["value"] = metrics

    status, _, stderr = fetch(tmp_path, "--predictions")

    assert (status, stderr) == (0, "")
    team = tmp_path / "alice"
    assert json.loads((team / "metrics.json").read_text()) == metrics
    assert (team / "predictions" / "predictions.csv").read_bytes() == table


def test_a_deleted_account_is_a_team_of_its_own(platform, fetch, tmp_path):
    """The platform then has no creator; that of each evaluation may be another one.

    No user can be called so that the folder of one is theirs.
    """
    uploaded(platform, alice=None, bob=None, carl=None)
    platform.listed += [evaluation(4, "deleted-00000002")]
    for entry, first in zip(platform.listed[1:3], "26", strict=True):
        entry["submission"]["creator"] = None
        entry["pk"] = f"0000000{first}-0000-0000-0000-000000000000"

    status, _, stderr = fetch(tmp_path)

    assert (status, stderr) == (0, "")
    teams = numbers(tmp_path)
    assert teams.pop("deleted-00000002") == 2
    assert teams.pop("deleted-00000006") == 3
    assert teams.pop("alice") == 1
    (name,) = teams
    assert name.startswith("deleted-00000002-")
    assert file_problems(tmp_path / "deleted-00000002/platform.json", "platform") == []


def test_an_account_that_is_deleted_later_keeps_its_folder(platform, fetch, tmp_path):
    """Its result would else be there twice."""
    uploaded(platform, alice=None, bob=None)
    fetch(tmp_path)
    platform.listed[0]["submission"]["creator"] = None

    assert fetch(tmp_path)[0] == 0

    assert numbers(tmp_path) == {"alice": 1, "bob": 2}


def test_what_the_board_does_not_count_is_told(platform, fetch, tmp_path):
    """A second time: alice has a new name, bob was unpublished, carl is gone.

    Somebody else may take the name that alice had.
    """
    platform.listed = [evaluation(n, user, rank=n) for n, user in enumerate(USERS, 1)]
    assert "flare rank counts" not in fetch(tmp_path)[1]
    hidden, unranked = evaluation(2, "bob"), evaluation(6, "dora")
    hidden["published"] = False
    platform.listed = [
        evaluation(1, "alicia", rank=1),
        hidden,
        evaluation(5, "alice", rank=2),
        unranked,
    ]

    status, stdout, stderr = fetch(tmp_path)

    assert (status, stderr) == (0, "")
    assert "alice: the user alice is now called alicia; the folder k" in stdout
    assert "carl: gone from the platform, but flare rank counts them: move" in stdout
    assert "bob: unpublished, but flare rank counts them: move away" in stdout
    assert "dora: not on the board, as a ranked value is missing, but f" in stdout
    record = json.loads((tmp_path / "alice" / "platform.json").read_text())
    assert record["username"] == "alicia"
    teams = numbers(tmp_path)
    (new_folder,) = teams.keys() - {*USERS, "dora"}
    assert teams == {"alice": 1, "bob": 2, "carl": 3, new_folder: 5, "dora": 6}
    assert new_folder.startswith("alice-")


@pytest.mark.parametrize(
    "change",
    [
        {"outputs": None},
        {"submission": None},
        {"submission": {"creator": {}}},
        {"rank": float("inf")},
        {"created": "2026-09-01"},
        {"pk": 7},
        None,
    ],
    ids=str,
)
def test_one_odd_evaluation_keeps_nobody_else_from_theirs(
    platform, fetch, tmp_path, change
):
    """It is named, after all others; nobody is ranked without it by accident."""
    uploaded(platform, alice=None, bob=None)
    odd = evaluation(3, "carl")
    platform.listed.insert(1, change and {**odd, **change})

    run = fetch(tmp_path)

    key = (change or {"pk": None}).get("pk", odd["pk"])
    assert line_of(run).startswith(f"{key}: the platform describes this evaluation")
    assert numbers(tmp_path) == {"alice": 1, "bob": 2}


@pytest.mark.parametrize(
    ("first", "more", "calls", "last"), [(100_000, 0, 1, 100_000), (4, 2, 3, 8)]
)
def test_a_phase_in_tiny_pages_is_not_asked_for_thousands_of_times(
    platform, fetch, tmp_path, monkeypatch, first, more, calls, last
):
    """Neither when a page tells it at once, nor when the count grows as it is read."""
    monkeypatch.setattr(download_module, "MOST_CALLS", 3)
    grown = property(lambda server: first + more * len(server.calls("list")))
    monkeypatch.setattr(type(platform), "count", grown, raising=False)
    platform.limit = 2
    platform.listed = [evaluation(number, "alice") for number in range(9)]

    line = line_of(fetch(tmp_path))

    assert platform.calls("list") == [200] * calls
    assert f"/api/v1/: it has {last} evaluations, 2 at a time, which takes mo" in line
    assert "more than 3 calls. Is --api right?" in line


# --- What was submitted -----------------------------------------------------------


@pytest.mark.parametrize("how", ["address", "redirection"])
def test_the_token_goes_to_the_platform_alone(platform, fetch, tmp_path, how):
    """A signed address at another host needs none, and would tell it to others.

    What was uploaded is fetched only if it is asked for, and is the team's alone.
    """
    uploaded(platform, alice=zip_bytes([("s/a", os.urandom(500_000)), ("t/b", b"B")]))
    (pk,), submission = platform.evaluations, platform.listed[0]["submission"]
    if how == "address":
        host = f"https://127.0.0.1:{platform.server_port}"
        submission["predictions_file"] = f"{host}/signed/{pk}/archive?Signature=s"
    output = tmp_path / "results"
    assert fetch(output)[0] == 0
    assert not (output / "alice" / "predictions.zip").exists()

    assert fetch(output, "--predictions")[0] == 0

    content = (output / "alice" / "predictions.zip").read_bytes()
    assert content == platform.evaluations[pk]["archive"]
    assert platform.calls("file") == [(200, len(content))]
    assert "Signature" not in (output / "alice" / "platform.json").read_text()
    made = [output, *output.rglob("*")]
    assert len(made) == 11
    assert {path.stat().st_mode & 0o007 for path in made} == {0}


@pytest.mark.parametrize("status", [401, 403])
def test_uploads_that_a_token_does_not_get_are_named(platform, fetch, tmp_path, status):
    """As in the platform's edition of December 2025; the results are written."""
    uploaded(platform, alice=b"", bob=None)
    platform.listed[0]["submission"]["predictions_file"] = address(
        platform, platform.submit("alice", b"x")
    )
    platform.faults["download"] = [status]

    status, stdout, stderr = fetch(tmp_path, "--predictions")

    assert (status, stderr) == (0, "")
    assert "alice: the platform gives no token what was uploaded; " in stdout
    assert numbers(tmp_path) == {"alice": 1, "bob": 2}
    assert "/x.tar.gz" in (tmp_path / "alice" / "platform.json").read_text()


def test_a_download_that_breaks_off_is_of_one_team_alone(platform, fetch, tmp_path):
    """Five times, as often as it is tried; what has arrived is no upload yet.

    What lies in its place, such as a pipe, is not waited for.
    """
    content = zip_bytes([("a", os.urandom(1000))])
    uploaded(platform, alice=content, bob=content)
    platform.faults["file"] = ["short"] * 5
    for name in ("platform.json", ".predictions.zip.part"):
        (tmp_path / "alice").mkdir(exist_ok=True)
        os.mkfifo(tmp_path / "alice" / name)

    line = line_of(fetch(tmp_path, "--predictions"))

    assert line.startswith("alice: ")
    assert "has sent fewer bytes than it said, 5 times" in line
    assert not (tmp_path / "alice" / "predictions.zip").exists()
    assert names(tmp_path / "bob" / "predictions") == ["a", "inputs.json"]
    assert numbers(tmp_path) == {"alice": 1, "bob": 2}
    assert fetch(tmp_path, "--predictions")[0] == 0
    assert (tmp_path / "alice" / "predictions.zip").read_bytes() == content
    assert not [*(tmp_path / "alice").glob(".*")]


def test_a_disk_without_room_is_no_fault_of_the_program(
    platform, fetch, tmp_path, monkeypatch
):
    def full(*_):
        raise OSError(28, "No space left on device")

    uploaded(platform, alice=zip_bytes([("a", b"x")]))
    monkeypatch.setattr(download_module, "prepare_input", full)

    run = fetch(tmp_path, "--predictions")

    assert told(line_of(run))[0] == "H02"
    assert "Traceback" not in run[1]


# --- Refusals ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "fault", "asked", "problem"),
    [
        # The platform's answer repeats the token, which is not printed.
        ([], None, {"token": "another"}, "/api/v1/: it does not accept the token. "),
        ([], None, {"phase": "0" * 8 + PHASE[8:]}, ": status 400: {"),
        ([], 403, {}, "/api/v1/: status 403: A fault of Bearer [token]. "),
        ([{"status": "Succeeded"}], None, {}, STRANGER),
        ([evaluation(1, "a", rank=float("inf"))], None, {}, STRANGER),
        ([evaluation(1, "a", created="yesterday")], None, {}, STRANGER),
        ([evaluation(1, "a")], None, {"count": 10**18}, "more than 1000 calls. Is"),
        ([evaluation(1, "a")], None, {"count": float("nan")}, STRANGER),
        ([evaluation(1, "a")], None, {"count": float("inf")}, STRANGER),
        ([evaluation(1, "a", submission=None)], None, {}, STRANGER),
        ([evaluation(1, "a", outputs=[{"socket": 1}])], None, {}, STRANGER),
        ([], None, {}, "the phase has no values of cases that this token may see"),
        (
            [evaluation(1, "alice", metrics={"aggregates": {}})],
            *(None, {}),
            "values of cases that this token may see. The token has to be of an admin",
        ),
    ],
)
def test_what_the_platform_refuses_is_one_line(
    platform, fetch, tmp_path, listed, fault, asked, problem
):
    """Also of one that is another program, whose phase has no end."""
    platform.listed, platform.faults["list"] = listed, [fault]
    platform.count = asked.get("count")

    words = {key: value for key, value in asked.items() if key != "count"}
    line = line_of(fetch(tmp_path, **words))

    assert problem in line
    assert line.endswith("[H09]")
    assert list(tmp_path.iterdir()) == []


def test_results_that_cannot_be_written(platform, fetch, tmp_path):
    (tmp_path / "results").write_text("a file")
    platform.listed = [evaluation(1, "alice")]

    assert told(line_of(fetch(tmp_path / "results")))[0] == "H02"
