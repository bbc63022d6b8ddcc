"""The files of a ranking: what is in them, and what is not."""

from dataclasses import replace

import pytest

import flare
from flare.challenge.metrics import SCORES, Better, metric_named
from flare.challenge.rules import RankedMetric
from flare.ranking.decisions import CaseDecision, Decisions
from flare.ranking.inspection import Origin
from flare.ranking.rank import analyse
from flare.ranking.rules import (
    MissingRule,
    RankingOptions,
    RankingRules,
    Ties,
    rules_of,
)
from flare.reports.paper.files import analysis_text, write_analysis
from flare.reports.paper.methods import methods_text
from flare.reports.ranking.standing import OwnResult
from flare.results import efficiency_csv
from tests.builders.results import (
    DSC,
    FLARE21,
    FLARE22,
    METRICS22,
    TIME,
    by_key,
    make_table,
)

NO_DRAWS = RankingOptions(bootstrap=0)


def analysis_of(values, rules=None, challenge=FLARE21, reason=None, **options):
    table = make_table(by_key(values), reason=reason)
    rules = rules or RankingRules(metrics=(DSC, TIME))
    return analyse(table, challenge, rules, options=RankingOptions(**options))


VALUES = {
    "team_a": [(0.9, 3.0), (0.8125, 12.345678)],
    "b & c": [(0.7, None), (0.9, 1234560.0)],
}


@pytest.fixture
def folder(tmp_path):
    write_analysis(analysis_of(VALUES, bootstrap=20), tmp_path)
    return tmp_path


def test_tables_for_papers(folder):
    """Ranks: team_a 1 2 and 1 1, the other 2 1 and 2 2; special characters escaped."""
    assert (folder / "ranking.md").read_text() == (
        "| rank | team | score | mean rank: DSC | mean rank: Running time (s) |\n"
        "|---|---|---|---|---|\n"
        "| 1 | team\\_a | 0.6250 | 1.50 | 1.00 |\n"
        "| 2 | b & c | 0.8750 | 1.50 | 2.00 |\n"
    )
    assert (folder / "ranking.tex").read_text() == (
        "% In the preamble: \\usepackage{booktabs,graphicx}\n"
        "\\begin{table}\n"
        "\\centering\n"
        "\\caption{Ranking of FLARE 2021: scores, and mean ranks by each metric;"
        " smaller is better.}\n"
        "\\label{tab:ranking}\n"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        "\\begin{tabular}{rlrrr}\n"
        "\\toprule\n"
        "Rank & Team & Score & DSC & Running time (s) \\\\\n"
        "\\midrule\n"
        "1 & team\\_a & 0.6250 & 1.50 & 1.00 \\\\\n"
        "2 & b \\& c & 0.8750 & 1.50 & 2.00 \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}}\n"
        "\\end{table}\n"
    )


def test_a_sheet_has_the_team_s_own_values_and_no_other_s(folder):
    assert (folder / "sheets" / "b___c.md").read_text() == (
        "# b & c\n\n"
        "Rank in FLARE 2021: 2 of 2.\n"
        "Score: 0.8750, from the mean ranks: DSC 1.50; Running time (s) 2.00.\n\n"
        "| case | DSC | rank | Running time (s) | rank |\n"
        "|---|---|---|---|---|\n"
        "| c0 | 0.700 | 2 | missing | 2 |\n"
        "| c1 | 0.900 | 1 | 1234560 | 2 |\n\n"
        "Missing results:\n\n"
        "- Case c0, Running time (s): there is no row\n"
    )
    own = (folder / "sheets" / "team_a.md").read_text()
    # Half way between two thousandths: the even one.
    assert "| c1 | 0.812 | 2 | 12.346 | 1 |" in own
    assert "0.8125" not in own
    assert "b & c" not in own


@pytest.mark.parametrize(
    ("metric", "head", "row"),
    [
        ("volume_difference", "", ""),
        ("hd95", " HD95 (mm) | rank |", " 7.10 | 1 |"),
        ("voe", " voe: rank |", " 1 |"),
    ],
)
def test_a_sheet_has_no_value_of_which_a_volume_follows(tmp_path, metric, head, row):
    """Of a case, nothing by metrics for organisers, and ranks by those of others."""
    other = RankedMetric(metric=metric, better=Better.LOWER)
    rules = RankingRules(metrics=(DSC, other))
    values = {("a", "c0", "dsc"): 0.9, ("a", "c0", metric): 7.099}
    values |= {("b", "c0", "dsc"): 0.8, ("b", "c0", metric): None}
    analysis = analyse(make_table(values), FLARE21, rules, options=NO_DRAWS)

    write_analysis(analysis, tmp_path)

    text = (tmp_path / "sheets" / "a.md").read_text()
    assert f"| case | DSC | rank |{head}\n" in text
    assert f"| c0 | 0.900 | 1 |{row}\n" in text
    assert "7.125" not in text


@pytest.mark.parametrize("value", [0.671046, 671.0, True])
def test_what_a_team_may_know_holds_whole_thousandths(value):
    with pytest.raises(ValueError, match="not in whole thousandths"):
        OwnResult(thousandths=value, rank=1.0)


def test_no_two_teams_share_a_sheet_where_large_and_small_letters_are_one(folder):
    """And those of an earlier ranking do not stay."""
    analysis = analysis_of({team: [(0.5, 1.0)] for team in ("A.x", "a_x")}, bootstrap=0)

    write_analysis(analysis, folder)

    names = sorted(file.name for file in (folder / "sheets").iterdir())
    assert names == ["A_x.md", "a_x-2.md"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", r"\<script\>alert(1)\</script\>"),
        ("[click](javascript:alert(1))", r"\[click\](javascript\:alert(1))"),
        ("![x](data:text/html,x)", r"!\[x\](data\:text/html,x)"),
        ("https://evil.org www.evil.org", r"https\://evil.org www\.evil.org"),
        ("WWW.evil.org a@evil.org", r"WWW\.evil.org a\@evil.org"),
        ("&lt;b&gt; &#60; R&D a & b", r"\&lt;b\&gt; \&\#60; R\&D a & b"),
        ("# a | b #", r"\# a \| b \#"),
        ("`a` *b* _c_ ~~d~~ $e$", r"\`a\` \*b\* \_c\_ \~\~d\~\~ \$e\$"),
        (r"a\[b](c)", r"a\\\[b\](c)"),
        ("{{ a }} {: onclick=b }", r"\{\{ a \}\} \{: onclick=b \}"),
        ("- a\n\n# b", r"- a\\n\\n\# b"),
    ],
)
def test_no_text_is_html_or_markdown(tmp_path, text, shown):
    """A team, a case and a reason (which may have a container's file name) of it."""
    values = {(text, text, "dsc"): None, ("b", text, "dsc"): 0.5}
    table = make_table(values, reason=text)
    decisions = Decisions(withdrawn=(CaseDecision(case="x", reason=text, date="1"),))
    rules = RankingRules(metrics=(DSC,))

    write_analysis(
        analyse(table, FLARE21, rules, decisions, NO_DRAWS), tmp_path / "out"
    )

    (sheet,) = (f for f in (tmp_path / "out" / "sheets").iterdir() if f.stem != "b")
    # Of two teams on one case, the one without a result is second: 2 / 2.
    assert sheet.read_text() == (
        f"# {shown}\n\n"
        "Rank in FLARE 2021: 2 of 2.\n"
        "Score: 1.0000, from the mean ranks: DSC 2.00.\n\n"
        "| case | DSC | rank |\n"
        "|---|---|---|\n"
        f"| {shown} | missing | 2 |\n\n"
        "Missing results:\n\n"
        f"- Case {shown}, DSC: {shown}\n"
    )
    assert (tmp_path / "out" / "ranking.md").read_text() == (
        "| rank | team | score | mean rank: DSC |\n"
        "|---|---|---|---|\n"
        "| 1 | b | 0.5000 | 1.00 |\n"
        f"| 2 | {shown} | 1.0000 | 2.00 |\n\n"
        f"- Withdrawn: case x: {shown} (1)\n"
    )


def test_a_sheet_explains_the_gate(tmp_path):
    rules = RankingRules(metrics=(DSC, TIME), gate_dsc=0.5)
    write_analysis(analysis_of(VALUES, rules, bootstrap=0), tmp_path)

    text = (tmp_path / "sheets" / "team_a.md").read_text()
    assert "count only on cases with a DSC of at least 0.5; on others" in text


def test_methods_say_what_was_really_done():
    """Every setting changes the sentence about it."""
    text = methods_text(analysis_of(VALUES, bootstrap=20, seed=4))
    assert text.startswith(
        "Ranked were 2 teams on each of 2 test cases by each of 2 metrics (dsc,"
        " higher is better; runtime_s, lower is better). A team's score is the mean of"
    )
    for part in (
        "1 of 8 results were missing, and got the rank of the number of teams.",
        "20 bootstrap samples of the cases (NumPy's PCG64, seed 4)",
        "Holm's method over the 2 ordered pairs of teams for each metric",
        *("the best of the places", FLARE21.checksum[:12], flare.__version__),
    ):
        assert part in text
    assert "gate" not in text

    rules = RankingRules(
        metrics=(DSC, TIME),
        ties=Ties.AVERAGE,
        missing=MissingRule.WORST_PLUS_ONE,
        gate_dsc=0.25,
    )
    text = methods_text(analysis_of(VALUES, rules, bootstrap=0))
    for part in (
        *("the mean of the places", "the rank behind the highest rank"),
        "reached a DSC of 0.25; elsewhere they got the rank behind the",
    ):
        assert part in text
    assert "bootstrap" not in text


def test_methods_say_how_values_were_made():
    """What DSC and NSD are, by which rules, and how it was measured."""
    analysis = analysis_of(VALUES, bootstrap=0)
    told = methods_text(analysis)
    for sentence in (
        "The values were given as a table, which does not tell their origin; what"
        " follows are the rules of the challenge. The Dice similarity",
        "Tolerances were 1 mm (kidney, liver, pancreas, spleen).",
        f"challenge file flare21 (SHA-256 {FLARE21.checksum[:12]}).",
    ):
        assert sentence in told

    measured = {
        "processor": ("Xeon",),
        "device": ("A100 (driver 570)",),
        "timeout_s": ("3600.0",),
        "memory": ("28g", "2g"),
        "interval_s": ("0.1",),
        "repeats": ("3",),
        "caches": ("cold",),
        "engine": ("27.1",),
        "cpus": ("",),
    }
    origin = Origin(
        references_sha256="ab" * 32,
        challenge_sha256="cd" * 32,
        rules_sha256="ef",
        options="--on-bad-case worst --decimals 4",
        measured=measured,
        teams_measured=1,
    )
    table = replace(analysis.table, origin=origin)
    text = methods_text(replace(analysis, table=table))
    for sentence in (
        "within a tolerance of the other surface (Nikolov et al. 2021,",
        "Tolerances were 1 mm (kidney, liver, pancreas, spleen).",
        "An organ in neither label map scored 1, one that only the prediction has 0,",
        f"The digest (SHA-256) of the reference labels is {'ab' * 32}.",
        "Cases whose label map was missing or could not be used scored 0. Scores were"
        " rounded to 4 decimal places.",
        "1 team of 2 were measured case by case, each case in a container of its own"
        " without network: processor Xeon, A100 (driver 570), Docker 27.1, time limit"
        " 3600.0 s, memory limit 28g or 2g, a sample every 0.1 s, repeats 3, cold"
        " caches.",
        "made with an earlier file, with the same rules of scoring (SHA-256 cdcdcdcd",
    ):
        assert sentence in text
    assert "--" not in text
    far = replace(FLARE21, metrics=("dsc", "nsd", "hd95"))
    assert "used scored 0 by DSC and NSD, the diagonal of the reference's grid by" in (
        methods_text(replace(analysis, table=table, challenge=far))
    )
    other = flare.read_challenge("flare26-pancancer")
    reported = methods_text(replace(analysis, table=table, challenge=other))
    assert "scored by rules as participants report them, not confirmed" in reported
    assert "rules as" not in text
    empty = replace(analysis, table=replace(table, origin=Origin()))
    assert "measured is not on record." in methods_text(empty)


def test_methods_tell_the_rules_of_flare22():
    values = {(team, "1", metric): 0.5 for team in "ab" for metric in METRICS22}
    table = replace(make_table(values | {("b", "1", "dsc"): None}), origin=Origin())
    text = methods_text(analyse(table, FLARE22, rules_of(FLARE22), options=NO_DRAWS))

    for part in (
        "the weighted mean of its ranks",
        "gpu_memory_area_mb_s, lower is better, weight 0.5, of the memory above 2048",
        "(dsc 0, nsd 0, runtime_s 3600,",
        "aorta, esophagus, inferior vena cava: scored only between",
        "The NSD of an organ was 0 where its DSC was below 0.2.",
        "DSC and NSD of organs were rounded to 4 decimals.",
    ):
        assert part in text


def test_missing_results_are_grouped_by_reason_not_by_file_name():
    values = {"a": [(0.9, 3)] * 12, "b": [(None, None)] * 12}
    reason = "CASE_pred.nii.gz: no case has this name"

    text = analysis_text(analysis_of(values, bootstrap=0, reason=reason))

    assert (
        "Missing: b, DSC, Running time (s), 12 of 12 cases (c0, c1, c10, c11, c2, c3,"
        f" c4, c5, c6, c7 and 2 more): {reason}\n"
    ) in text


def test_teams_whose_absence_moves_nobody_are_told_in_one_line():
    values = {
        t: [(v, 3)] * 3 for t, v in zip("abcd", (0.9, 0.8, 0.7, 0.6), strict=True)
    }

    lines = analysis_text(analysis_of(values, bootstrap=0)).splitlines()

    assert lines[-1] == "  without any one of 4 teams: nobody moves"
    assert not [line for line in lines if "without team" in line]


def test_of_a_single_team_nothing_is_said_but_that_it_is_first():
    text = analysis_text(analysis_of({"a": [(0.9, 3)] * 9}))

    assert text.splitlines()[1].split()[:3] == ["1", "a", "1.0000"]
    assert text.endswith("\n\na is first. It is the only team: there is nothing to"
                         " compare it with.")  # fmt: skip
    assert "choices of rules" not in text


NAMES = [name for name in efficiency_csv.VALUES if "_spread" not in name]


@pytest.mark.parametrize("metric", [*SCORES, *NAMES])
def test_every_metric_has_a_title(metric):
    """Other than its key, which no paper prints."""
    assert metric_named(metric).heading != metric
    assert "_" not in metric_named(metric).heading
