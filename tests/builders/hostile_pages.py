"""A page of each kind, in which every name is hostile."""

import re
from dataclasses import replace

import numpy as np

from flare.common.files import csv_text, write_whole
from flare.ranking.rules import RankingOptions
from flare.reports.cases.options import CaseOptions
from flare.reports.measuring import measuring_page
from flare.reports.render.html import page_html
from tests.builders import organ_boxes, write_nifti
from tests.builders.case_pages import evaluated, write_teams_on_cases
from tests.builders.measured import write_measured
from tests.builders.pages import HOSTILE, metrics_content, write_json, write_report
from tests.builders.results import write_table
from tests.builders.running import eventful

ORGANS = ("liver", "kidney", "spleen", "pancreas")

EVALUATIONS = ("organiser", "participant")

COMPARISONS = (
    *("organiser-comparison-2", "participant-comparison-2"),
    "organiser-comparison-3",
)

KINDS = (
    *(*EVALUATIONS, "organiser-ranking", "participant-ranking", *COMPARISONS),
    *("running", "stopped", "organiser-index", "participant-index"),
    *("organiser-team", "participant-team"),
    *("organiser-ranked-team", "participant-ranked-team"),
    *("case", "case-ct", "case-index", "case-evaluation", "case-all-teams"),
)
"""Of pages; the file of each has its name, and .html."""


def write_pages(folder):
    content = hostile_metrics()
    write_evaluations(folder, content)
    write_rankings(folder)
    for name in ("running", "stopped"):
        page = replace(
            measuring_page(hostile_run(name)), refresh_s=900 * (name == "running")
        )
        write_whole(folder / f"{name}.html", page_html(page))
    write_comparisons(folder, content)
    write_teams(folder)
    write_case_pages(folder)


def hostile_metrics():
    content = metrics_content(scores_of(len(HOSTILE) + 3), warnings=[*HOSTILE])
    for number, name in enumerate(HOSTILE):
        content["case"]["gt_fname"][str(number)] = f"{number} {name}"
        content["case"]["alg_fname"][str(number)] = f"{number} {name}"
    content["failed"] = {f"{n} {name}": name for n, name in enumerate(HOSTILE)}
    return content


def scores_of(count):
    """Scores of cases by organ, of which no two of an organ are equal."""
    return {
        organ: [(17 * n + 29 * k) % 101 / 100 for n in range(count)]
        for k, organ in enumerate(ORGANS)
    }


def write_evaluations(folder, content):
    source = write_json(folder / "metrics.json", content)
    cases = [f"{number} {name}" for number, name in enumerate(HOSTILE)]
    groups = write_groups(folder / "groups.csv", [c for c in cases if c.isprintable()])
    for name in EVALUATIONS:
        output = folder / f"{name}.html"
        is_organiser = name == "organiser"
        write_report([source], output, is_organiser=is_organiser, groups=groups)


def hostile_run(name):
    ended = HOSTILE[3] if name == "stopped" else ""
    return eventful(names=(*HOSTILE[1:], HOSTILE[0]), ended=ended)


def write_comparisons(folder, content):
    sources = []
    for number, name in enumerate(("old", HOSTILE[0], HOSTILE[10])):
        own = {**content, "case": {**content["case"]}}
        own["evaluation"] = {**content["evaluation"], "references_sha256": number}
        for organ in ("", *(f"_{organ}" for organ in ORGANS)):
            for score in ("dsc", "nsd"):
                values = content["case"][score + organ]
                own["case"][score + organ] = {
                    case: (value + 0.01 * number * (int(case) % 7 - 3)) % 1
                    for case, value in values.items()
                }
        file = folder / name.replace("/", "") / "metrics.json"
        sources.append(write_json(file, own))
    for name in COMPARISONS:
        count, is_organiser = int(name[-1]), name.startswith("organiser")
        output = folder / f"{name}.html"
        write_report(sources[:count], output, is_organiser=is_organiser)


def write_groups(file, cases):
    rows = [
        (case, "AB"[n % 2], HOSTILE[n % len(HOSTILE)]) for n, case in enumerate(cases)
    ]
    file.write_text(csv_text(("case", "centre", HOSTILE[0]), rows), encoding="utf-8")
    return file


def write_case_pages(folder):
    """Pages of cases, with and without CTs; the first case has a hostile name."""
    boxes = organ_boxes()
    moved = organ_boxes(shift=3)
    moved[9, 15, 17:] = 3
    cases = {f"{HOSTILE[0].replace('/', ' ')}": (boxes, moved), "other": (boxes, boxes)}
    made = evaluated(folder / "evaluated", cases)
    made.write()
    for name in cases:
        ct = np.where(boxes, 100, -20).astype(np.int16)
        write_nifti(folder / "images" / f"{name}.nii.gz", ct, dtype="<i2")
    replace(made, pages=folder / "over-ct").write(images=folder / "images")
    (first,) = [f for f in (made.pages / "cases").iterdir() if "script" in f.name]
    for kind, page in (
        ("case", first),
        ("case-index", made.pages / "cases" / "index.html"),
        ("case-ct", folder / "over-ct" / "cases" / "other.html"),
        ("case-evaluation", made.pages / "index.html"),
    ):
        (folder / f"{kind}.html").write_bytes(page.read_bytes())
    write_all_teams(folder, *cases)


def write_all_teams(folder, case, other):
    """The page of a hostile case by teams of hostile names; one has none of it."""
    boxes = organ_boxes()
    predictions = {case: organ_boxes(shift=2), other: boxes}
    seen = [name for name in HOSTILE if name.isprintable() and "/" not in name]
    teams = {name[:80]: predictions for name in seen}
    teams["late"] = {other: boxes}
    results, labels = write_teams_on_cases(
        folder / "all-teams", {case: boxes, other: boxes}, teams
    )
    options = CaseOptions(ground_truth=labels, case=(case,))
    page = folder / "case-all-teams.html"
    write_report([results], page, is_organiser=True, cases=options)


def write_rankings(folder):
    seen = [name for name in HOSTILE if name.isprintable()]
    teams = [*seen, *(f"team {number}" for number in range(6))]  # rows are dense
    rows = [
        (team, f"{case} {seen[case]}", metric, (17 * n + 29 * case) % 97 / 100 + 0.001)
        for n, team in enumerate(teams)
        for case in range(5)
        for metric in ("dsc", "runtime_s")
        if (n, case) != (2, 2)
    ]
    source = write_table(folder / "table.csv", rows)
    groups = write_groups(
        folder / "groups.csv", [f"{n} {case}" for n, case in enumerate(seen[:5])]
    )
    options = {
        "ranking": RankingOptions(metrics=("dsc", "runtime_s"), bootstrap=20),
        "groups": groups,
    }
    for name in ("organiser-ranking", "participant-ranking"):
        is_organiser = name.startswith("organiser")
        output = folder / f"{name}.html"
        write_report([source], output, is_organiser=is_organiser, **options)


def write_teams(folder):
    """The pages of a measured team, and of teams of a ranking, with hostile names.

    As a ranking has it, one page is in a folder, and named by its team.
    """
    seen = [name for name in HOSTILE if name.isprintable() and "/" not in name]
    cases = [f"{n} {name[:60]}" for n, name in enumerate(seen)]
    failed = {cases[1]: ("failed", seen[0]), cases[2]: ("timed out", seen[1])}
    results = folder / "results"
    names = (seen[1], seen[2], "team")
    for number, team in enumerate(names):
        write_measured(
            results / team,
            cases,
            failed=failed,
            scores=scores_of(len(cases)),
            doubts=seen[3],
            off=number,
        )
    for is_organiser in (True, False):
        audience = "organiser" if is_organiser else "participant"
        page = folder / f"{audience}-team.html"
        write_report([results / names[0]], page, is_organiser=is_organiser)
        pages = folder / f"{audience}-pages"
        options = RankingOptions(bootstrap=20)
        write_report([results], pages, is_organiser=is_organiser, ranking=options)
        (file,) = (pages / "teams").glob(f"{re.sub('[^A-Za-z0-9_-]', '_', names[0])}*")
        file.replace(folder / f"{audience}-ranked-team.html")
        (pages / "index.html").replace(folder / f"{audience}-index.html")
