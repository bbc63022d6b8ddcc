"""Results off the platform, whose API a server on this computer stands in for."""

import io
import json
import os
import zipfile
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from flare.platforms.grandchallenge import download as download_module
from flare.platforms.grandchallenge.access import PlatformError
from flare.platforms.grandchallenge.download import Evaluation, _folders, choose
from tests.builders import run_flare
from tests.builders.errors import told
from tests.builders.schemas import file_problems
from tests.fakes.platform import PHASE, described, running, secure

TOKEN = "df41b403eac8ca19"
STRANGER = "it does not answer as grand-challenge.org"
METRICS = {"case": {"dsc": {"0": 0.1}}, "aggregates": {"dsc_mean": 0.1}}


def zipped(**files):
    """What a team uploads."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


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
        path = f"/media/{number}.zip"
        if content is not None:
            platform.files[path] = content
        file = None if content is None else platform.url + path
        platform.evaluations.append(evaluation(number, user, file=file))


class Platform(BaseHTTPRequestHandler):
    """What of the platform's API is needed, with its status codes."""

    def do_GET(self):
        server = self.server
        url = urlsplit(self.path)
        token = self.headers.get("Authorization", "")
        server.requests.append((url.path, token))
        if url.path.startswith("/elsewhere/"):  # a signed address: no token
            self.answer(200 if not token else 400, server.files[url.path])
        elif token != f"BEARER {TOKEN}" and token != f"Bearer {TOKEN}":
            self.answer(401, {"detail": f"Invalid token {token}."})
        elif url.path == "/api/v1/evaluations/":
            query = {key: value[0] for key, value in parse_qs(url.query).items()}
            self.page(query)
        elif isinstance(server.files.get(url.path), str):
            self.send_response(302)
            self.send_header("Location", server.files[url.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif url.path in server.files:
            content = server.files[url.path]
            self.answer(content if isinstance(content, int) else 200, content)
        else:
            self.answer(404, {"detail": "Not found."})

    def page(self, query):
        server = self.server
        if server.status:
            self.answer(server.status, {"detail": "No."})
            return
        if query["submission__phase"] != PHASE:
            self.answer(400, {"submission__phase": ["Select a valid choice."]})
            return
        start = int(query["offset"])
        limit = min(int(query["limit"]), server.limit)
        self.answer(
            200,
            {
                "count": server.count or len(server.evaluations),
                "next": None,
                "previous": None,
                "results": server.evaluations[start : start + limit],
            },
        )

    def answer(self, status, content):
        is_file = isinstance(content, bytes)
        data = content if is_file else json.dumps(content).encode()
        self.send_response(status)
        kind = "application/zip" if is_file else "application/json"
        self.send_header("Content-Type", kind)
        is_short = is_file and self.server.short_files > 0
        self.server.short_files -= is_short
        self.send_header("Content-Length", str(len(data) + 10 * is_short))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def platform(certificate):
    """The server, which tests give its evaluations."""
    server = ThreadingHTTPServer(("localhost", 0), Platform)
    server.evaluations, server.files, server.requests = [], {}, []
    server.status, server.limit, server.short_files = 0, 1000, 0
    server.count = None
    secure(server, certificate)
    server.url = f"https://localhost:{server.server_port}"
    with running(server):
        yield server


def fetch(platform, output, *arguments, token=TOKEN, phase=PHASE, api=None, **options):
    """`flare download`, which never tells the token."""
    environment = {k: v for k, v in os.environ.items() if "PROXY" not in k.upper()}
    environment |= {
        "FLARE_GC_TOKEN": token,
        "SSL_CERT_FILE": str(platform.certificate),
    }
    run = run_flare(
        *("download", "--phase", phase, "--output", output),
        *("--api", api or f"{platform.url}/api/v1/", *arguments),
        env=environment,
        **options,
    )
    assert not token or token not in run.stdout + run.stderr
    return run


def error_of(run):
    """The only line on stderr of a run that failed."""
    assert run.returncode == 1, run.stdout
    (line,) = run.stderr.splitlines()
    return line


def numbers(output):
    """Which evaluation each team has."""
    files = sorted(output.glob("*/metrics.json"))
    return {file.parent.name: json.loads(file.read_text())["number"] for file in files}


# --- Which evaluation counts ------------------------------------------------------


def result(number, rank, day):
    return Evaluation(
        record={"evaluation": number, "username": "a"},
        created=datetime(2026, 9, day, tzinfo=UTC),
        rank=rank,
        metrics={},
        predictions_url="",
    )


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
    found = [result(n, *pair) for n, pair in enumerate(ranks_and_days)]

    (chosen,) = choose(reversed(found) if backwards else found)

    assert chosen.record["evaluation"] == expected


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


def test_a_user_who_looks_like_another_one_has_a_folder_of_its_own(tmp_path):
    """Nobody can tell who is the true one; the third is of full width."""
    folders = _folders(tmp_path, ["carl", "Carl", "\uff23arl", "dora"])

    assert folders["carl"].startswith("carl-")
    assert folders["dora"] == "dora"
    assert folders["Carl"] == "carl-dc953bc5"
    assert folders["\uff23arl"].startswith("arl-")


def keep(output, folder, user):
    """A folder of an earlier download."""
    (output / folder).mkdir(parents=True)
    (output / folder / "platform.json").write_text(json.dumps({"username": user}))


def test_a_folder_of_an_earlier_download_stays_with_its_user(tmp_path):
    """Also under the name that an older version of the program gave it."""
    keep(tmp_path, "user-x_y_org-12345678", "x@y.org")
    keep(tmp_path, "Carl", "Carl")
    keep(tmp_path, "eve", "mallory")

    folders = _folders(tmp_path, ["x@y.org", "Carl", "carl", "eve"])

    assert folders["x@y.org"] == "user-x_y_org-12345678"
    assert folders["Carl"] == "Carl"
    assert folders["carl"].startswith("carl-")
    assert folders["eve"].startswith("eve-")


@pytest.mark.parametrize("twin", ["user-x_y_org-1056e7d3", "x-y-org-1056e7d3"])
def test_nobody_takes_the_folder_that_is_made_for_another_user(
    platform, tmp_path, twin
):
    """Neither by the rule of an older version nor by the one of this one."""
    platform.evaluations = [evaluation(1, "x@y.org"), evaluation(2, twin)]

    assert fetch(platform, tmp_path).returncode == 0

    assert sorted(numbers(tmp_path).values()) == [1, 2]


def test_two_users_never_share_a_folder(tmp_path, monkeypatch):
    """Eight digits can be equal, if somebody tries long enough."""
    monkeypatch.setattr(download_module, "derived_folder", lambda _: "same-00000000")

    with pytest.raises(PlatformError, match="it would be of Carl, CARL"):
        _folders(tmp_path, ["Carl", "CARL"])


def test_a_folder_that_is_a_link_is_refused(platform, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    output = tmp_path / "results"
    output.mkdir()
    (output / "alice").symlink_to(tmp_path / "elsewhere")
    platform.evaluations = [evaluation(1, "alice", rank=1)]

    line = error_of(fetch(platform, output))

    assert "alice: the folder is a link" in line
    assert [*(tmp_path / "elsewhere").iterdir()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["platform.json", ".predictions.zip.part", ".predictions.zip.part.json"]
)
def test_a_pipe_in_a_folder_is_not_waited_for(platform, tmp_path, name):
    uploaded(platform, alice=zipped(a=b"1"))
    (tmp_path / "alice").mkdir()
    if name.endswith(".part.json"):
        (tmp_path / "alice" / ".predictions.zip.part").write_bytes(b"P")
    os.mkfifo(tmp_path / "alice" / name)

    run = fetch(platform, tmp_path, "--predictions", timeout=60)

    if name == ".predictions.zip.part":
        assert told(error_of(run))[0] == "H02"
    else:
        assert run.returncode == 0


# --- Downloads --------------------------------------------------------------------


def test_results_are_as_rank_reads_them(platform, tmp_path):
    platform.evaluations = [
        evaluation(1, "alice", rank=2, day=1),
        evaluation(2, "alice", rank=0, day=2),
        evaluation(3, "bob", rank=0, day=1, key="interface"),
        evaluation(4, "bob", rank=1, day=2, key="interface"),
        evaluation(5, "carl", status="Failed"),
        evaluation(6, "dora", outputs=[]),
    ]

    run = fetch(platform, tmp_path / "results")

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == (
        "[1/2] alice: rank 2, of 2026-09-01 10:00\n"
        "[2/2] bob: rank 1, of 2026-09-02 10:00\n"
        f"2 teams are in {tmp_path / 'results'}\n"
    )
    assert numbers(tmp_path / "results") == {"alice": 1, "bob": 4}
    text = (tmp_path / "results" / "alice" / "metrics.json").read_text()
    assert text == json.dumps({**METRICS, "number": 1}, indent=2) + "\n"
    record = tmp_path / "results" / "bob" / "platform.json"
    assert file_problems(record, "platform") == []
    ranked = json.loads(record.read_text())
    assert ranked["evaluation"] == "00000000-0000-0000-0000-000000000004"


def test_all_pages_are_read(platform, tmp_path):
    platform.limit = 3
    platform.evaluations = [evaluation(n, f"user{n}", rank=n) for n in range(1, 9)]

    run = fetch(platform, tmp_path)

    assert run.returncode == 0
    assert numbers(tmp_path) == {f"user{n}": n for n in range(1, 9)}
    pages = [path for path, _ in platform.requests if path.endswith("/evaluations/")]
    assert len(pages) == 3


def test_a_second_download_goes_on_where_the_first_was(platform, tmp_path):
    """What is there stays, what is not is fetched, and what is newer replaces it."""
    uploaded(platform, alice=zipped(one=b"1"), bob=None, carl=None)
    assert fetch(platform, tmp_path, "--predictions").returncode == 0
    (tmp_path / "bob" / "metrics.json").unlink()  # as if it had been ended before
    before = (tmp_path / "alice" / "metrics.json").stat().st_mtime_ns
    platform.evaluations += [evaluation(4, "carl", rank=1, day=2)]
    platform.requests.clear()

    run = fetch(platform, tmp_path, "--predictions")

    assert run.returncode == 0
    assert "[1/3] alice: not on the board, of 2026-09-01 10:00, is there" in run.stdout
    assert numbers(tmp_path) == {"alice": 1, "bob": 2, "carl": 4}
    assert (tmp_path / "alice" / "metrics.json").stat().st_mtime_ns == before
    assert "/media/1.zip" not in [path for path, _ in platform.requests]


def test_results_that_are_not_from_the_platform_are_left_alone(platform, tmp_path):
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / "metrics.json").write_text("mine")
    platform.evaluations = [evaluation(1, "alice", rank=1)]

    line = error_of(fetch(platform, tmp_path))

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
    platform, tmp_path, metrics
):
    platform.evaluations = [
        evaluation(1, "alice", metrics=metrics),
        evaluation(2, "bob"),
    ]

    line = error_of(fetch(platform, tmp_path))

    assert told(line) == ("H09", "alice")
    assert numbers(tmp_path) == {"bob": 2}


def test_all_teams_are_named_of_which_something_is_missing(platform, tmp_path):
    """And why, in the lines of each."""
    uploaded(platform, alice=None, bob=b"case,dsc", carl=None)
    platform.evaluations[0]["outputs"][0]["value"]["x"] = float("nan")

    run = fetch(platform, tmp_path, "--predictions")

    assert error_of(run).startswith("alice, bob: the platform's metrics.json is no")
    assert "of 2026-09-01 10:00, is not whole: predictions.zip is not" in run.stdout
    assert numbers(tmp_path) == {"bob": 2, "carl": 3}


# --- What was submitted -----------------------------------------------------------


def test_submissions_are_fetched_only_if_asked_for(platform, tmp_path):
    uploaded(platform, alice=zipped(one=os.urandom(500_000)), bob=None)

    assert fetch(platform, tmp_path).returncode == 0
    assert not (tmp_path / "alice" / "predictions.zip").exists()
    assert fetch(platform, tmp_path, "--predictions").returncode == 0

    content = (tmp_path / "alice" / "predictions.zip").read_bytes()
    assert content == platform.files["/media/1.zip"]
    assert not (tmp_path / "bob" / "predictions.zip").exists()


@pytest.mark.parametrize("how", ["address", "redirection"])
def test_the_token_goes_to_the_platform_alone(platform, tmp_path, how):
    """A signed address at another host needs none, and would tell it to others."""
    content = platform.files["/elsewhere/1.zip"] = zipped(one=b"1")
    other = f"https://127.0.0.1:{platform.server_port}/elsewhere/1.zip?Signature=s"
    platform.files["/media/1.zip"] = other
    url = other if how == "address" else f"{platform.url}/media/1.zip"
    platform.evaluations = [evaluation(1, "alice", file=url)]

    assert fetch(platform, tmp_path, "--predictions").returncode == 0

    assert (tmp_path / "alice" / "predictions.zip").read_bytes() == content
    assert ("/elsewhere/1.zip", "") in platform.requests
    record = (tmp_path / "alice" / "platform.json").read_text()
    assert "Signature" not in record


def test_what_is_of_teams_is_closed_to_other_users(platform, tmp_path):
    """Their zip, what was in it, and their scores; the group has what umask leaves."""
    uploaded(platform, alice=zipped(**{"s/a": b"A", "t/b": b"B"}))

    assert fetch(platform, tmp_path / "results", "--predictions").returncode == 0

    made = [tmp_path / "results", *(tmp_path / "results").rglob("*")]
    assert len(made) == 11
    assert {path.stat().st_mode & 0o007 for path in made} == {0}


def test_what_was_uploaded_is_unpacked_as_the_platform_does(platform, tmp_path):
    """The folder that all share and macOS's files are gone; no archive is opened."""
    files = {"mine/a.nii.gz": b"A", "mine/b/b.zip": b"B", "__MACOSX/._a": b"C"}
    uploaded(platform, alice=zipped(**files))
    (tmp_path / "alice" / ".predictions.part" / "left").mkdir(parents=True)

    assert fetch(platform, tmp_path, "--predictions").returncode == 0

    team = tmp_path / "alice"
    assert names(team / "predictions") == ["a.nii.gz", "b", "b/b.zip", "inputs.json"]
    assert (team / "predictions" / "a.nii.gz").read_bytes() == b"A"
    assert names(team)[:2] == ["metrics.json", "platform.json"]
    assert not (team / ".predictions.part").exists()


def names(folder):
    """Everything in a folder."""
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    return sorted(path.as_posix() for path in found)


@pytest.mark.slow
def test_a_newer_upload_takes_the_place_of_the_one_that_was_unpacked(
    platform, tmp_path
):
    uploaded(platform, alice=zipped(**{"a.nii.gz": b"A", "old.nii.gz": b"O"}))
    platform.files["/media/9.zip"] = zipped(**{"a.nii.gz": b"B", "new.nii.gz": b"N"})
    assert fetch(platform, tmp_path, "--predictions").returncode == 0
    (tmp_path / "alice" / "predictions" / "a.nii.gz").write_bytes(b"edited")
    assert fetch(platform, tmp_path, "--predictions").returncode == 0
    kept = tmp_path / "alice" / "predictions"
    assert (kept / "a.nii.gz").read_bytes() == b"edited"
    newer = f"{platform.url}/media/9.zip"
    platform.evaluations += [evaluation(2, "alice", day=2, file=newer)]

    assert fetch(platform, tmp_path, "--predictions").returncode == 0

    assert names(kept) == ["a.nii.gz", "inputs.json", "new.nii.gz"]
    assert (kept / "a.nii.gz").read_bytes() == b"B"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (zipped(**{"../../x": b"1", "a": b"2"}), '"Zip file contains invalid paths"'),
        (zipped(a=b"1")[:-9], '"Input zip file could not be extracted"'),
        (b"case,dsc", "the platform takes a zip file, and this is none"),
    ],
    ids=["path", "damaged", "table"],
)
def test_an_upload_that_cannot_be_unpacked_stays_packed(
    platform, tmp_path, content, reason
):
    """The results of all teams are written, and nothing lies outside of the folder."""
    uploaded(platform, alice=content, bob=zipped(b=b"2"))
    output = tmp_path / "results"

    line = error_of(fetch(platform, output, "--predictions"))

    assert line.startswith("alice: predictions.zip is not unpacked: ")
    assert line.endswith(f"{reason}. Unpack it into predictions yourself. [H09]")
    assert numbers(output) == {"alice": 1, "bob": 2}
    alice = ["metrics.json", "platform.json", "predictions.zip"]
    assert names(output / "alice") == alice
    assert names(tmp_path) == ["results", *(f"results/{n}" for n in names(output))]
    assert names(output / "bob" / "predictions") == ["b", "inputs.json"]


@pytest.mark.parametrize("status", [401, 403])
def test_uploads_that_a_token_does_not_get_are_named(platform, tmp_path, status):
    """As in the platform's edition of December 2025; the results are written."""
    uploaded(platform, alice=status, bob=None)

    run = fetch(platform, tmp_path, "--predictions")

    assert (run.returncode, run.stderr) == (0, "")
    assert "alice: the platform gives no token what was uploaded; " in run.stdout
    assert numbers(tmp_path) == {"alice": 1, "bob": 2}
    assert "/media/1.zip" in (tmp_path / "alice" / "platform.json").read_text()


@pytest.mark.slow
def test_a_download_that_breaks_off_goes_on_where_it_was(platform, tmp_path):
    """Three times, as often as it is tried; what has arrived is no upload yet.

    The other team has its own.
    """
    content = platform.files["/media/1.zip"] = zipped(a=os.urandom(1000))
    url = f"{platform.url}/media/1.zip"
    users = ["alice", "bob"]
    platform.evaluations = [evaluation(n, u, file=url) for n, u in enumerate(users)]
    platform.short_files = 3

    line = error_of(fetch(platform, tmp_path, "--predictions"))

    assert line.startswith("alice: ")
    assert "localhost has sent fewer bytes than it said, 3 times" in line
    assert not (tmp_path / "alice" / "predictions.zip").exists()
    assert names(tmp_path / "bob" / "predictions") == ["a", "inputs.json"]
    assert numbers(tmp_path) == {"alice": 0, "bob": 1}
    assert fetch(platform, tmp_path, "--predictions").returncode == 0
    assert (tmp_path / "alice" / "predictions.zip").read_bytes() == content
    assert not [*(tmp_path / "alice").glob(".*")]


# --- Refusals ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "asked", "problem"),
    [
        # The platform's answer repeats the token, which is not printed.
        ({}, {"token": "another-token"}, "/api/v1/: it does not accept the token. "),
        ({}, {"phase": "0" * 8 + PHASE[8:]}, ": status 400: {"),
        ({"status": 403}, {}, "/api/v1/: status 403: No. "),
        ({"status": 404}, {}, "/api/v1/: status 404: No. "),
        ({"status": 410}, {}, "/api/v1/: status 410: No. "),
        ({"evaluations": [{"status": "Succeeded"}]}, {}, STRANGER),
        ({}, {}, "the phase has no result that this token may see"),
        (
            {"evaluations": [evaluation(1, "alice", metrics={"aggregates": {}})]},
            {},
            "alice: the platform gives only the ranked values. The token has to be of",
        ),
    ],
)
def test_what_the_platform_refuses_is_one_line(
    platform, tmp_path, state, asked, problem
):
    vars(platform).update(state)

    line = error_of(fetch(platform, tmp_path, **asked))

    assert problem in line
    assert line.endswith("[H09]")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"rank": float("inf")},
        {"created": "yesterday"},
        {"submission": None},
        {"outputs": [{"socket": 1}]},
    ],
)
def test_an_evaluation_that_is_none_is_no_fault_of_the_program(
    platform, tmp_path, change
):
    platform.evaluations = [evaluation(1, "alice") | change]

    assert told(error_of(fetch(platform, tmp_path)))[0] == "H09"


@pytest.mark.parametrize("count", [10**18, float("nan"), float("inf")])
def test_a_phase_has_an_end(platform, tmp_path, count):
    platform.evaluations = [evaluation(1, "alice")]
    platform.count = count

    assert error_of(fetch(platform, tmp_path)).endswith("[H09]")
    assert list(tmp_path.iterdir()) == []


def test_results_that_cannot_be_written(platform, tmp_path):
    (tmp_path / "results").write_text("a file")
    platform.evaluations = [evaluation(1, "alice")]

    assert told(error_of(fetch(platform, tmp_path / "results")))[0] == "H02"
