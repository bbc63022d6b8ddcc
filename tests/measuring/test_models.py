"""Images that are measured with a model beside them, with an engine by script."""

from flare.cli.main import main
from flare.measuring import host
from flare.measuring.host import Room
from flare.results.archives_csv import read_ledger
from flare.results.errors import MeasurementError
from tests.builders.archives import FILES, save, sha256
from tests.builders.errors import told
from tests.builders.models import WEIGHTS, entry, write_model
from tests.builders.schemas import file_problems
from tests.builders.teams import PREDICT

NEEDS_MODEL = f"""
test -s /opt/ml/model/weights/fold_0.pt || exit 7
{PREDICT}
"""


def test_a_team_is_measured_with_its_model(bench, measure):
    """It is there for every case, under its name, and gone in the end."""
    bench.archive("a", NEEDS_MODEL)
    model = write_model(bench.sent, name="a.model.tar.gz")

    assert measure()[0] == 0

    assert {row["status"] for row in bench.rows("a").values()} == {"ok"}
    record = bench.record("a")
    digest = sha256(model.read_bytes())
    assert record["settings"]["model_sha256"] == digest
    (session,) = record["sessions"]
    assert session["model"] == "a.model.tar.gz"
    assert "--volume MODEL:/opt/ml/model/:ro" in session["command"]
    assert file_problems(bench.results / "ledger.csv", "ledger-row") == []
    assert read_ledger(bench.results / "ledger.csv")[0].model_sha256 == digest
    assert bench.engine.left() == []
    assert [name for name in bench.hidden() if "work" in name] == []


def test_a_broken_model_is_the_teams_mistake(bench, measure):
    """The other team is measured; refused.csv has the line."""
    bench.archive("a", NEEDS_MODEL)
    bench.archive("b", PREDICT)
    write_model(bench.sent, WEIGHTS, entry("../x"), name="a.model.tar.gz")

    status, _, err = measure()

    assert (status, told(err)) == (1, ("F19", "a.model.tar.gz"))
    row = (bench.results / "refused.csv").read_text().splitlines()[1]
    assert row.startswith('a,a.model.tar.gz,,"a.model.tar.gz: it holds ../x, w')
    assert not (bench.results / "a").exists()
    assert {row["status"] for row in bench.rows("b").values()} == {"ok"}


def test_a_model_needs_room(bench, monkeypatch):
    """A GiB more than it has; no fault of the team, and nothing is run."""
    archive = bench.archive("a", NEEDS_MODEL)
    write_model(archive.parent, name="a.model.tar.gz")
    little, real = Room(2**29, 0), host.room
    monkeypatch.setattr(
        host, "room", lambda folder: little if ".work" in str(folder) else real(folder)
    )

    error = bench.measure(archive)["a"]

    assert isinstance(error, MeasurementError)
    assert "0.5 GiB are free in" in str(error)
    assert "and the model needs 1.0. Make room there." in str(error)
    assert bench.engine.calls("create") == []


def test_check_reads_the_model_too(tmp_path, capfd):
    archive = save(tmp_path, FILES)
    digest = sha256(write_model(tmp_path).read_bytes())

    assert main(["check", str(archive)]) == 0
    said = capfd.readouterr().out.splitlines()
    assert said[1] == (
        f"team_a.model.tar.gz: model {digest[:12]}, 0 MB unpacked, can be unpacked."
    )

    broken = write_model(tmp_path / "x", {})
    assert main(["check", str(archive), "--model", str(broken)]) == 1
    assert capfd.readouterr().out.startswith("team_a.model.tar.gz: it holds no file. ")
