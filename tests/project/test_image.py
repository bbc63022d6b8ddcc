"""The image: built by build.sh, run as the platform and README run it, exported."""

import json
import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.builders import (
    ROOT,
    case_names,
    metaimage_bytes,
    organ_boxes,
    read_metrics,
    run_evaluate,
    write_cases,
)
from tests.builders.engine import IMAGE, build, built, call
from tests.builders.errors import all_told

pytestmark = pytest.mark.docker

STRICT = (
    *("--network", "none", "--read-only", "--cap-drop", "ALL", "--memory", "2g"),
    *("--security-opt", "no-new-privileges", "--cpus", "2"),
)
"""Nothing that a run does not need."""

ANYBODY = 12345
"""A user whom the image does not know."""


def text_of(*command):
    run = call(*command)
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout.decode()


def run_image(image, folder, output, *flags, user=ANYBODY):
    """Run the image on a folder; its user may write to the output folder."""
    output.mkdir(exist_ok=True)
    output.chmod(0o777)
    return call(
        *("docker", "run", "--rm", *STRICT, "--user", f"{user}:{user}"),
        *("-v", f"{folder}:/input:ro", "-v", f"{output}:/output"),
        *flags,
        image,
    )


@pytest.mark.gate
def test_the_image_gives_what_the_checkout_gives(image, tmp_path):
    """Byte for byte, but for what is said of the machine."""
    predictions = ROOT / "examples" / "predictions"
    inside, outside = tmp_path / "inside", tmp_path / "outside"

    run = run_image(image, predictions, inside)
    checkout = run_evaluate(predictions, None, outside)

    assert (run.returncode, run.stderr) == (0, b""), run.stdout.decode()
    assert checkout.returncode == 0
    files = [folder / "metrics.json" for folder in (inside, outside)]
    found, expected = (file.read_bytes() for file in files)
    machines = [
        json.dumps(read_metrics(folder)["evaluation"]["machine"], indent=2)
        .replace("\n", "\n    ")
        .encode()
        for folder in (inside, outside)
    ]
    assert machines[0] in found
    assert found.replace(machines[0], machines[1]) == expected
    assert [path.name for path in inside.iterdir()] == ["metrics.json"]


def test_the_image_equals_the_official_values(image, shared, tmp_path):
    """With the references mounted where the platform unpacks a tarball."""
    data = shared / "data" / "flare21"

    run = run_image(
        image,
        data / "predictions",
        tmp_path / "out",
        *("-v", f"{data / 'reference'}:/opt/ml/input/data/ground_truth:ro"),
    )

    assert (run.returncode, run.stderr) == (0, b"")
    compare = call(
        *("python3", shared / "checks" / "compare.py"),
        *(tmp_path / "out" / "metrics.json", data / "official.csv", "1e-12"),
    )
    assert compare.returncode == 0, compare.stdout.decode()


def test_refusals_in_the_image_are_one_line(image, tmp_path):
    """A damaged file, somebody else's submission, an output folder of another user."""
    damaged = write_cases(tmp_path / "damaged", ["demo_001", "demo_002"])
    path = damaged / "demo_001.nii.gz"
    path.write_bytes(path.read_bytes()[:-9])
    others = write_cases(tmp_path / "others", case_names(2))
    (tmp_path / "closed").mkdir(mode=0o755)
    closed = (*("docker", "run", "--rm", *STRICT), "-v", f"{damaged}:/input:ro")

    runs = [
        run_image(image, damaged, tmp_path / "out"),
        run_image(image, others, tmp_path / "out"),
        call(*closed, "-v", f"{tmp_path / 'closed'}:/output", image),
    ]

    assert [run.returncode for run in runs] == [1, 1, 1]
    assert [all_told(run.stderr.decode())[0] for run in runs] == [
        *(("F05", ""), ("G03", ""), ("H02", "/output/.metrics.json")),
    ]
    assert all(run.stderr.count(b"\n") == 1 for run in runs)
    assert list((tmp_path / "out").iterdir()) == []


def inside(image, *command, user="flare"):
    start = ("docker", "run", "--rm", "--user", user, "--entrypoint", command[0], image)
    return text_of(*start, *command[1:])


def test_the_image_installs_exactly_the_requirements(image):
    """And nothing else: pip is gone. It has refused files of other hashes."""
    assert "--require-hashes" in (ROOT / "Dockerfile").read_text("utf-8")
    text = (ROOT / "requirements.txt").read_text("utf-8")
    here = {"python_version": "3.13", "python_full_version": "3.13.0"}
    required = {
        f"{canonicalize_name(pin.name)}{pin.specifier}"
        for pin in map(Requirement, re.findall(r"^(\w[^\\\n]+)", text, re.MULTILINE))
        if not pin.marker or pin.marker.evaluate(here)
    }
    program = (
        "from importlib.metadata import distributions\n"
        "for found in distributions():\n"
        "    print(found.name, found.version)"
    )

    lines = [
        line.split() for line in inside(image, "python", "-c", program).splitlines()
    ]

    assert {
        f"{canonicalize_name(name)}=={version}" for name, version in lines
    } == required


def test_the_image_holds_only_what_a_run_needs_and_can_be_imported(image):
    """The platform wants a named user with a home; no program changes the user."""
    app = ("find", "/opt/app")
    top = inside(image, *app, "-mindepth", "1", "-maxdepth", "1").split()
    names = "evaluate.py flare ground-truth references.txt requirements.txt"
    assert sorted(top) == [f"/opt/app/{name}" for name in names.split()]
    assert len(inside(image, *app, "-path", "*/ground-truth/*").split()) == 5
    assert inside(image, *app, "!", "-perm", "-o=r") == ""
    everywhere = ("find", "/", "-xdev", "-type", "f", "-perm", "/6000")
    assert inside(image, *everywhere, user="0") == ""
    inspect = json.loads(text_of("docker", "image", "inspect", image))[0]
    assert inspect["Architecture"] == "amd64"
    assert inspect["Config"]["User"] == "flare"
    assert inspect["Config"]["Entrypoint"] == ["python", "/opt/app/evaluate.py"]
    who = inside(image, "sh", "-c", "whoami; cd; pwd").split()
    assert who == ["flare", "/home/flare"]


@pytest.fixture(scope="module")
def own_image(image, tmp_path_factory):
    """The image of a challenge of one's own, and its labels, named in its own way.

    They are nested, linked, their owner's alone, and of two formats.
    """
    folder = tmp_path_factory.mktemp("own")
    labels = write_cases(
        folder / "labels" / "nested", case_names(2), suffix="_gt.nii.gz"
    )
    (labels / "validation_002_gt.nii.gz").rename(folder / "elsewhere")
    (labels / "validation_002_gt.nii.gz").symlink_to(folder / "elsewhere")
    (labels / "validation_001_gt.nii.gz").chmod(0o600)
    (labels / "validation_003_gt.mha").write_bytes(metaimage_bytes(organ_boxes()))
    example = (ROOT / "examples" / "two-organs.toml").read_text("utf-8")
    names = '[names]\nreference = "{case}_gt"\nprediction = "{case}_pred"\n'
    metrics = 'metrics = ["dsc", "nsd", "hd95"]\n'
    (folder / "hepatic.toml").write_text(metrics + example + names, "utf-8")
    options = ("--ground-truth", folder / "labels", "--decimals", "3")
    options += ("--challenge", folder / "hepatic.toml")
    with built(f"{IMAGE}-own", *options) as name:
        yield name, folder / "labels"


def test_a_challenge_and_labels_of_ones_own_are_baked_in(own_image, tmp_path):
    """With decimals for the board, as an option."""
    moved = organ_boxes(shift=1)
    cases = case_names(3)
    folder = write_cases(tmp_path / "input", cases, labels=moved, suffix="_pred.nii.gz")

    run = run_image(own_image[0], folder, tmp_path / "out")

    assert (run.returncode, run.stderr) == (0, b"")
    content = read_metrics(tmp_path / "out")
    assert content["evaluation"]["challenge"] == "hepatic"
    assert "dsc_spleen" in content["case"]
    assert "dsc_kidney" not in content["case"]
    assert len(content["case"]["dsc"]) == 3
    assert content["evaluation"]["options"]["decimals"] == "3"
    assert len(str(content["aggregates"]["dsc_mean"])) <= len("0.859")
    assert not (ROOT / "flare/challenge/editions/hepatic.toml").exists()


@pytest.mark.gate
def test_a_challenge_of_ones_own_is_rehearsed_with_its_labels(own_image):
    """As the pages say: only `build.sh` is told the challenge."""
    name, labels = own_image

    run = call("./rehearse.sh", labels, image=name)

    assert (run.returncode, run.stderr) == (0, b"")
    row = re.sub(" +", " ", run.stdout.decode().partition("board's row:\n")[2])
    assert row.splitlines() == [
        *(" Mean DSC 1.0000 ± 0.0000", " Mean NSD 1.0000 ± 0.0000"),
        " Mean HD95 (mm) 0.0000 ± 0.0000",
        *(" Liver DSC 1.0000 ± 0.0000", " Liver NSD 1.0000 ± 0.0000"),
        " Liver HD95 (mm) 0.0000 ± 0.0000",
        *(" Spleen DSC 1.0000 ± 0.0000", " Spleen NSD 1.0000 ± 0.0000"),
        " Spleen HD95 (mm) 0.0000 ± 0.0000",
    ]


def test_a_challenge_of_ones_own_is_exported(own_image, tmp_path):
    name, _ = own_image

    run = call("./export.sh", tmp_path, image=name)

    assert (run.returncode, run.stderr) == (0, b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(f"{name}-ground-truth.tar.gz", f"{name}.tar.gz"),
    ]
    assert "Its numbers are rounded to 3 decimals." in run.stdout.decode()


ANSWERS = """
name = "Answers"
[[answers]]
name = "task"
kind = "binary"
file = "results.csv"
reference_file = "reference.csv"
metrics = ["auroc", "accuracy"]
[[ranking]]
metric = "auroc_task"
better = "higher"
"""


def test_an_image_of_answers_scores_tables(image, tmp_path):
    """Baked in, rehearsed as a table by itself, or in a tarball; else G03."""
    (tmp_path / "tables.toml").write_text(ANSWERS, "utf-8")
    texts = {
        "reference/gt/reference.csv": "name,gt\na,0\nb,1\nc,1\n",
        "zipped/mine/results.csv": "name,prediction\na,0.4\nb,0.3\nc,0.9\n",
        "broken/reference.csv": "name,gt\na,0\nb,maybe\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text, "utf-8")
    options = ("--challenge", tmp_path / "tables.toml", "--ground-truth")
    table = tmp_path / "zipped" / "mine" / "results.csv"

    with built(f"{IMAGE}-answers", *options, tmp_path / "reference") as name:
        scored = run_image(name, tmp_path / "zipped", tmp_path / "out")
        rehearsed = [
            call("./rehearse.sh", s, image=name) for s in (table, table.parent)
        ]
    broken = build(f"{IMAGE}-broken", *options, tmp_path / "broken")
    with built(f"{IMAGE}-empty", *options[:2]) as name:
        place = "/opt/ml/input/data/ground_truth"
        unsupplied = run_image(name, tmp_path / "zipped", tmp_path / "none")
        tarball = ("-v", f"{tmp_path / 'reference'}:{place}:ro")
        supplied = run_image(name, tmp_path / "zipped", tmp_path / "own", *tarball)

    # Of the two pairs of a with another case, c is above it and b is not.
    assert (scored.returncode, scored.stderr) == (0, b""), scored.stdout.decode()
    metrics = read_metrics(tmp_path / "out")
    assert metrics["case"] == {}
    assert metrics["aggregates"] == {"auroc_task": 0.5, "accuracy_task": 2 / 3}
    assert metrics["evaluation"]["references"] == "bundled"
    for run in rehearsed:
        assert (run.returncode, run.stderr) == (0, b"")
        row = run.stdout.decode().partition("board's row:\n")[2].split("\n")
        assert [line.split() for line in row[:2]] == [
            *(["Task", "AUROC", "0.5000"], ["Task", "Accuracy", "0.6667"]),
        ]
    assert broken.returncode == 1
    text = "Reference labels: reference.csv: line 3 (b: maybe): not a number"
    assert text in (broken.stdout + broken.stderr).decode()
    assert all_told(unsupplied.stderr.decode()) == [("G03", "")]
    assert (supplied.returncode, supplied.stderr) == (0, b"")
    own_metrics = read_metrics(tmp_path / "own")
    assert own_metrics["aggregates"] == metrics["aggregates"]
    assert own_metrics["evaluation"]["references"] == "tarball"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "--challenge",
            "broken: organs is [], expected at least one organ, or [[answers]]. The"
            " documentation's page",
        ),
        (
            "--ground-truth",
            "Reference labels: validation_001.nii.gz: it has labels that",
        ),
    ],
)
def test_a_mistake_of_the_organisers_fails_the_build(image, tmp_path, option, message):
    (tmp_path / "broken.toml").write_text('name = "Broken"')
    write_cases(tmp_path / "labels", case_names(1), labels=organ_boxes() * 2)
    values = {
        "--challenge": tmp_path / "broken.toml",
        "--ground-truth": tmp_path / "labels",
    }

    run = build(f"{IMAGE}-broken", option, values[option])

    assert run.returncode != 0
    assert message in (run.stdout + run.stderr).decode()
