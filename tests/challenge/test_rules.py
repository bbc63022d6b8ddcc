"""Challenge files: what they hold, and how their mistakes are told."""

import hashlib
import json
from dataclasses import replace

import pytest

import flare
from flare.challenge.formats import NpzRules
from flare.challenge.metrics import Better
from flare.challenge.reading import ChallengeError, challenge_names, read_challenge
from flare.challenge.rules import (
    AbsentOrgans,
    AlgorithmRules,
    BoardRules,
    GridComparison,
    GridRules,
    Organ,
    RankedMetric,
    ReportedRule,
    TopSlice,
    UnknownLabelRules,
    UnknownLabels,
    ZRange,
)
from flare.challenge.summary import challenge_summary
from flare.common.text import safe
from tests.builders import ORGANS, ROOT, run_flare, run_program

SMALL = """
name = "Two organs"

[[organs]]
label = 7
name = "lung"
tolerance_mm = 2

[[organs]]
label = 200
name = "heart"
tolerance_mm = 1.5
in_mean = false
"""

FULL = (
    SMALL.replace(
        'name = "Two organs"',
        'name = "Two organs"\nsmallest_dsc_for_nsd = 0.2\ndecimals = 4',
    )
    + """
[absent_organs]
in_both = 0.5
in_reference = 0.25
in_prediction = 0.125

[z_range]
organs = ["heart"]
top_slice = "dropped"

[unknown_labels]
reference = "ignore"
prediction = "zero"

[grid]
compare = "size"
tolerance_mm = 0.5

[[ranking]]
metric = "dsc"
better = "higher"

[[ranking]]
metric = "gpu_area"
better = "lower"
weight = 0.5
tolerance = 2048
"""
)


@pytest.fixture
def read(tmp_path):
    """Read a challenge from the text of its file."""

    def read_text(text):
        file = tmp_path / "mine.toml"
        file.write_text(text, encoding="utf-8")
        return read_challenge(str(file))

    return read_text


def test_flare21_has_the_published_rules():
    """Labels and tolerance of the official script; the four metrics of the ranking."""
    challenge = read_challenge("flare21")

    assert {organ.label: organ.name for organ in challenge.organs} == ORGANS
    assert {organ.tolerance_mm for organ in challenge.organs} == {1.0}
    assert all(organ.in_mean for organ in challenge.organs)
    assert challenge.absent_organs == AbsentOrgans(
        in_both=1.0, in_reference=0.0, in_prediction=0.0
    )
    assert (challenge.smallest_dsc_for_nsd, challenge.decimals) == (0.0, None)
    assert challenge.z_range.organs == ()
    assert [(rule.metric, rule.better, rule.weight) for rule in challenge.ranking] == [
        ("dsc", Better.HIGHER, 1.0),
        ("nsd", Better.HIGHER, 1.0),
        ("runtime_s", Better.LOWER, 1.0),
        ("max_gpu_memory_mb", Better.LOWER, 1.0),
    ]
    assert challenge.labels_text == (
        "0 background, 1 liver, 2 kidney, 3 spleen, 4 pancreas"
    )


def test_all_bundled_challenges_can_be_read():
    assert "flare21" in challenge_names()
    for name in challenge_names():
        assert read_challenge(name).key == name


def test_the_smallest_file_gets_the_rules_of_flare21(read):
    challenge, flare21 = read(SMALL), read_challenge("flare21")

    assert challenge.key == "mine"
    assert challenge.name == "Two organs"
    assert challenge.checksum == hashlib.sha256(SMALL.encode()).hexdigest()
    assert challenge.organs == (
        Organ(label=7, name="lung", tolerance_mm=2.0, in_mean=True),
        Organ(label=200, name="heart", tolerance_mm=1.5, in_mean=False),
    )
    for rule in ("absent_organs", "z_range", "unknown_labels", "grid", "decimals"):
        assert getattr(challenge, rule) == getattr(flare21, rule)


def test_every_key_is_read(read):
    challenge = read(FULL)

    assert challenge.smallest_dsc_for_nsd == 0.2
    assert challenge.decimals == 4
    assert challenge.absent_organs == AbsentOrgans(
        in_both=0.5, in_reference=0.25, in_prediction=0.125
    )
    assert challenge.z_range == ZRange(organs=("heart",), top_slice=TopSlice.DROPPED)
    assert challenge.unknown_labels == UnknownLabelRules(
        reference=UnknownLabels.IGNORE, prediction=UnknownLabels.ZERO
    )
    assert challenge.grid == GridRules(compare=GridComparison.SIZE, tolerance_mm=0.5)
    assert challenge.ranking == (
        RankedMetric(metric="dsc", better=Better.HIGHER, weight=1, tolerance=0),
        RankedMetric(
            metric="gpu_area", better=Better.LOWER, weight=0.5, tolerance=2048
        ),
    )


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('name = "Two organs"', "", "name is missing"),
        ('"Two organs"', '" "', "name is ' ', expected a name for people"),
        ('"Two organs"', "5", "name is 5, expected a text in quotes"),
        ("tolerance_mm = 2\n", "", "organs[1].tolerance_mm is missing"),
        (
            "tolerance_mm = 2\n",
            "tolerence_mm = 2\n",
            "organs[1].tolerence_mm is an unknown key, expected tolerance_mm",
        ),
        ("label = 7", 'label = "7"', "organs[1].label is '7', expected a whole number"),
        ("label = 7", "label = 0", "organs[1].label is 0, expected 1 to 255"),
        ("label = 7", "label = 256", "organs[1].label is 256, expected 1 to 255"),
        (
            "label = 7",
            "label = 200",
            "organs[2].label is 200, expected another value than organs[1].label",
        ),
        (
            '"lung"',
            '"heart"',
            "organs[2].name is 'heart', expected another value than organs[1].name",
        ),
        (
            '"lung"',
            '"Left lung"',
            "organs[1].name is 'Left lung', expected lower-case letters, digits and"
            " underscores, a letter first",
        ),
        (
            '"lung"',
            '"mean"',
            "organs[1].name is 'mean', expected another name than mean, std, min, max,"
            " median, which metrics.json uses",
        ),
        ("= 1.5", "= 0", "organs[2].tolerance_mm is 0.0, expected a length above 0 mm"),
        (
            "= 1.5",
            "= nan",
            "organs[2].tolerance_mm is nan, expected a length above 0 mm",
        ),
        (
            "= 1.5",
            "= inf",
            "organs[2].tolerance_mm is inf, expected a length above 0 mm",
        ),
        (
            "in_mean = false",
            "in_mean = 0",
            "organs[2].in_mean is 0, expected true or false",
        ),
        (
            "tolerance_mm = 2\n",
            "tolerance_mm = 2\nin_mean = false\n",
            "organs is 'without any in_mean', expected at least one organ that counts"
            " in the mean",
        ),
        (
            "= 0.2\n",
            "= 1.2\n",
            "smallest_dsc_for_nsd is 1.2, expected a number from 0 to 1",
        ),
        ("decimals = 4", "decimals = 16", "decimals is 16, expected 0 to 15"),
        (
            "[z_range]",
            "[board]\ndecimals = 16\n[z_range]",
            "board.decimals is 16, expected 0 to 15",
        ),
        (
            "decimals = 4",
            "decimals = true",
            "decimals is True, expected a whole number",
        ),
        (
            "in_both = 0.5",
            "in_both = -1",
            "absent_organs.in_both is -1.0, expected a number from 0 to 1",
        ),
        (
            '["heart"]',
            '["hart"]',
            "z_range.organs is 'hart', expected names of organs: lung, heart",
        ),
        ('["heart"]', '"heart"', "z_range.organs is 'heart', expected a list"),
        (
            '"dropped"',
            '"cut"',
            "z_range.top_slice is 'cut', expected kept or dropped",
        ),
        (
            '"zero"',
            '"warn"',
            "unknown_labels.prediction is 'warn', expected refuse, ignore or zero",
        ),
        ('"size"', '"none"', "grid.compare is 'none', expected strict or size"),
        (
            "= 0.5\n\n[[",
            "= -1\n\n[[",
            "grid.tolerance_mm is -1.0, expected a length above 0 mm",
        ),
        (
            "[grid]",
            "[[grid]]",
            "grid is [{'compare': 'size', 'tolerance_mm': 0.5}], expected a table",
        ),
        (
            '"gpu_area"',
            '"dsc"',
            "ranking[2].metric is 'dsc', expected another value than ranking[1].metric",
        ),
        ('"lower"', '"less"', "ranking[2].better is 'less', expected higher or lower"),
        (
            "weight = 0.5",
            "weight = 0",
            "ranking[2].weight is 0.0, expected a number above 0, at most 1000, with at"
            " most four decimals",
        ),
        (
            "tolerance = 2048",
            "tolerance = -1",
            "ranking[2].tolerance is -1.0, expected a number of at least 0",
        ),
        (
            "weight = 0.5",
            "weight = 0.12345",
            "ranking[2].weight is 0.12345, expected a number above 0, at most 1000,"
            " with at most four decimals",
        ),
        (
            "tolerance = 2048",
            "trace_tolerance_mb = -1",
            "ranking[2].trace_tolerance_mb is -1.0, expected a number of at least 0",
        ),
        (
            "tolerance = 2048",
            "decimals = 16",
            "ranking[2].decimals is 16, expected 0 to 15",
        ),
        (
            "tolerance = 2048",
            "failed = inf",
            "ranking[2].failed is inf, expected a number",
        ),
        (
            'name = "Two organs"',
            'name = "Two organs"\nefficiency_gate_dsc = 2',
            "efficiency_gate_dsc is 2.0, expected a number from 0 to 1",
        ),
    ],
)
def test_a_mistake_names_file_key_value_and_what_is_allowed(
    read, tmp_path, old, new, problem
):
    assert FULL.count(old) >= 1

    with pytest.raises(ChallengeError) as caught:
        read(FULL.replace(old, new, 1))

    assert str(caught.value) == (
        f"{flare.common.text.safe(tmp_path / 'mine.toml')}: {problem}."
        " The documentation's page Challenge files explains every key. [G01]"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [("decimals = 4", "decimals = 0"), ("decimals = 4", "decimals = 15")],
)
def test_values_at_the_bound_are_allowed(read, old, new):
    assert read(FULL.replace(old, new)).decimals == int(new.split()[-1])
    assert read(FULL.replace("label = 200", "label = 255")).organs[1].label == 255


@pytest.mark.parametrize(
    "text",
    [
        FULL.replace("= 1.5", "= 1" + "0" * 400),
        FULL.replace("= 1.5", "= 1" + "0" * 5000),
        "x = " + "[" * 5000,
        FULL.replace('"lung"', '"' + "x" * 3000 + '"'),
        FULL.replace("decimals", '"\\u001b[31m"'),
    ],
    ids=["400 digits", "5000 digits", "nested", "long", "escape sequence"],
)
def test_hostile_challenge_files_are_one_safe_line(read, text):
    with pytest.raises(ChallengeError) as caught:
        read(text)

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


def test_all_labels_are_told(read):
    """However many: a participant has to know them all."""
    organs = "".join(
        f'[[organs]]\nlabel = {n}\nname = "organ_{n}"\ntolerance_mm = 1\n'
        for n in range(1, 14)
    )

    assert read('name = "Many"\n' + organs).labels_text.endswith(
        "12 organ_12, 13 organ_13"
    )


def test_a_challenge_without_organs_is_refused(read):
    with pytest.raises(ChallengeError, match=r"organs is \[\], expected at least one"):
        read('name = "None"\norgans = []')


def test_a_file_that_is_not_toml_is_refused(read):
    with pytest.raises(ChallengeError, match=r"is not TOML \(.*line 1"):
        read("organs: 4")


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(ChallengeError) as caught:
        read_challenge("/nowhere/mine.toml")

    assert caught.value.problem == "cannot be read (no such file or directory)"


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ChallengeError) as caught:
        read_challenge("flare20")

    assert str(caught.value).startswith("flare20: no such challenge; there are flare21")


def test_every_key_of_the_schema_is_documented():
    """The documentation has a row for each key that a challenge file can hold."""
    text = (ROOT / "docs" / "reference" / "challenge-files.md").read_text(
        encoding="utf-8"
    )
    tables = {
        "": flare.Challenge,
        "organs.": Organ,
        "absent_organs.": AbsentOrgans,
        "z_range.": ZRange,
        "unknown_labels.": UnknownLabelRules,
        "grid.": GridRules,
        "algorithm.": AlgorithmRules,
        "board.": BoardRules,
        "npz.": NpzRules,
        "reported.": ReportedRule,
        "ranking.": RankedMetric,
    }
    for table, kind in tables.items():
        for key in set(kind.__dataclass_fields__) - {"key", "checksum"}:
            if f"{key}." not in tables:
                assert f"| `{table}{key}` |" in text


@pytest.mark.parametrize(
    "metrics", [[], ["dsc"], ["nsd", "dsc"], ["dsc", "nsd", "hd"], ["dsc", "nsd"] * 2]
)
def test_metrics_begin_with_dsc_and_nsd_and_are_known_and_there_once(tmp_path, metrics):
    file = tmp_path / "own.toml"
    file.write_text(f'extends = "flare21"\nmetrics = {json.dumps(metrics)}\n')

    with pytest.raises(ChallengeError, match="metrics"):
        read_challenge(file)


# --- flare challenge --------------------------------------------------------------


def challenge_command(*arguments):
    run = run_program("challenge", *arguments, program=("-m", "flare"))
    return run.returncode, run.stdout.decode(), run.stderr.decode()


def test_list_names_every_challenge():
    status, stdout, stderr = challenge_command("list")

    assert (status, stderr) == (0, "")
    assert [line.split()[0] for line in stdout.splitlines()] == list(challenge_names())


@pytest.mark.parametrize("name", challenge_names())
def test_what_show_prints_is_the_challenge(tmp_path, name):
    status, stdout, stderr = challenge_command("show", name)
    file = tmp_path / f"{name}.toml"
    file.write_text(stdout, encoding="utf-8")

    assert (status, stderr) == (0, "")
    again, challenge = read_challenge(file), read_challenge(name)
    # Of a file that extends another, that one stands below it, in comments.
    is_whole = "\nextends = " not in stdout
    checksum = again.checksum if is_whole else challenge.checksum
    assert replace(again, checksum=checksum) == challenge


def test_validate_says_what_a_file_means(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        """
        name = "Mine"
        decimals = 4
        smallest_dsc_for_nsd = 0.2
        [[organs]]
        label = 7
        name = "aorta"
        tolerance_mm = 2.5
        [[organs]]
        label = 3
        name = "lesion"
        tolerance_mm = 2
        in_mean = false
        [z_range]
        organs = ["aorta"]
        top_slice = "dropped"
        [[ranking]]
        metric = "dsc"
        better = "higher"
        """
    )

    status, stdout, stderr = challenge_command("validate", file)

    assert (status, stderr) == (0, "")
    assert stdout == (
        "Mine (mine)\n"
        "\n"
        "    3  lesion  tolerance 2 mm, not in the means\n"
        "    7  aorta   tolerance 2.5 mm\n"
        "\n"
        "An organ in neither file scores 1, only in the prediction 0, only in the"
        " reference 0.\n"
        "Other labels in references: the file is refused; in predictions: the file is"
        " refused.\n"
        "Grids must agree in size, and in position within 0.1 mm.\n"
        "Scored only where the reference has them, top slice dropped: aorta.\n"
        "NSD is 0 where DSC is below 0.2.\n"
        "Values are rounded to 4 decimals.\n"
        "Ranked by dsc (higher).\n"
        "\n"
        f"This challenge can be used: --challenge {file}\n"
    )


@pytest.mark.parametrize("action", ["show", "validate"])
def test_a_file_with_a_mistake_is_told_in_one_line(tmp_path, action):
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "Mine"\n[[organs]]\nlabel = 0\nname = "a"\ntolerance_mm = 1'
    )

    status, stdout, stderr = challenge_command(action, file)

    assert (status, stdout) == (1, "")
    assert stderr == (
        f"{safe(file)}: organs[1].label is 0, expected 1 to 255."
        " The documentation's page Challenge files explains every key. [G01]\n"
    )


def test_the_program_says_which_actions_there_are():
    status, _, stderr = challenge_command()

    assert status == 2
    assert stderr == (
        "flare challenge: the following arguments are required: COMMAND;"
        " see flare challenge --help\n"
    )


def test_the_board_may_have_decimals_of_its_own(read):
    challenge = read(SMALL + "[board]\ndecimals = 4\n")

    assert (challenge.board.decimals, challenge.decimals) == (4, None)
    assert challenge_summary(challenge).splitlines()[-1] == (
        "For the board, numbers are rounded to 4 decimals."
    )
    assert read(SMALL).board.decimals is None


# --- validate ---------------------------------------------------------------------


def test_validate_says_that_teams_cannot_be_ranked():
    run = run_flare("challenge", "validate", ROOT / "examples" / "two-organs.toml")

    assert run.returncode == 0
    assert run.stdout.rstrip().endswith(
        "Its teams cannot be ranked, as it has no [[ranking]]:"
        " the page Challenge files explains it."
    )
    assert (
        "cannot be ranked" not in run_flare("challenge", "validate", "flare21").stdout
    )


def test_validate_takes_a_metric_of_one_s_own_table(tmp_path):
    """As rank does; a score of no organ, and a slip of the pen, are refused."""
    text = (ROOT / "flare" / "challenge" / "editions" / "flare21.toml").read_text()
    file = tmp_path / "mine.toml"
    for metric, code in (("hd95", 0), ("dsc_heart", 1), ("run_time_s", 1)):
        rule = f'\n[[ranking]]\nmetric = "{metric}"\nbetter = "lower"\n'
        file.write_text(text + rule)

        run = run_flare("challenge", "validate", file)

        assert run.returncode == code
        assert f"othing here makes {metric}:" in run.stdout or code


def test_validate_refuses_a_metric_that_nothing_makes(tmp_path):
    """Those of single organs, and of processor time, can be ranked."""
    text = (ROOT / "flare" / "challenge" / "editions" / "flare21.toml").read_text()
    file = tmp_path / "mine.toml"
    rule = '\n[[ranking]]\nmetric = "{}"\nbetter = "lower"\n'
    file.write_text(text + rule.format("dsc_liver") + rule.format("cpu_s"))
    assert run_flare("challenge", "validate", file).returncode == 0

    file.write_text(text.replace('"runtime_s"', '"runtime"'))
    run = run_flare("challenge", "validate", file)

    assert run.returncode == 1
    assert (
        "ranking[3].metric is 'runtime', which nothing here makes (did you mean"
        " runtime_s?). The documentation"
    ) in run.stderr
