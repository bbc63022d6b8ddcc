"""Pages of made-up results: 11 teams on 100 cases, and two cases of 13 organs."""

import numpy as np

from flare.challenge.reading import read_challenge
from flare.ranking.rules import RankingOptions
from flare.ranking.simulation import write_simulation
from flare.reports.measuring import measuring_page
from flare.reports.render.html import page_html
from tests.builders.case_pages import evaluated
from tests.builders.measured import write_measured
from tests.builders.pages import write_report
from tests.builders.results import write_table
from tests.builders.running import eventful


def make_results(folder):
    """The results of all teams, made once."""
    if not folder.exists():
        write_simulation(read_challenge("flare21"), folder)
    return folder


def make_cases(folder):
    """The pages of two cases of 13 organs, of one of which three are wrong."""
    if not folder.exists():
        organs = np.zeros((24, 80, 100), dtype=np.uint8)
        for number in range(13):
            y, x = 8 + 22 * (number // 4), 8 + 23 * (number % 4)
            organs[4 + number // 4 : 20, y : y + 14, x : x + 12] = number + 1
        names = np.arange(256, dtype=np.uint8)
        names[[2, 8, 13]] = 13, 0, 2
        cases = {"hard": (organs, names[organs]), "easy": (organs, organs)}
        evaluated(folder, cases, challenge="flare22", spacing=(5, 2, 2)).write()
    return folder / "pages" / "cases"


def make_measured(folder):
    """Two measured teams of 13 organs and 30 cases: the new one misses the eighth."""
    organs = [organ.name for organ in read_challenge("flare22").organs]
    cases = [f"case_{n:02}" for n in range(30)]
    for name, missed in (("old", ()), ("new", (7,))):
        scores = {
            organ: [
                0.0 if k in missed and n % 2 else 0.9 - (n + k) % 9 / 100
                for n in range(30)
            ]
            for k, organ in enumerate(organs)
        }
        write_measured(folder / name, cases, scores=scores, doubts="only 8 samples")


def write_plain_page(folder, kind):
    """A page of a kind, such as ``organiser-ranking``: its file, made once."""
    audience, _, what = kind.partition("-")
    if what in ("case", "cases"):
        name = {"case": "hard", "cases": "index"}[what]
        return make_cases(folder / "cases") / f"{name}.html"
    file = folder / f"{kind}.html"
    if what == "measuring":
        found = eventful([f"team_{n:02}" for n in range(1, 12)])
        file.write_text(page_html(measuring_page(found)), encoding="utf-8")
    if not file.exists():
        results, made = folder / "results", folder / "made"
        sources = {
            "ranking": [results],
            "fifty": [folder / "fifty.csv"],
            "rank": [results],
            "team": [made / "new"],
            "evaluation": [made / "new" / "metrics.json"],
            "comparison": [made / name / "metrics.json" for name in ("old", "new")],
        }[what]
        if sources == [results]:
            make_results(results)
        elif what == "fifty":
            rows = [
                (f"team_{n:02}", f"case_{m}", metric, (n * 7 + m) % 100 / 100)
                for n in range(50)
                for m in range(7)
                for metric in ("dsc", "nsd")
            ]
            write_table(*sources, rows)
        else:
            make_measured(made)
        output = folder / audience if what == "rank" else file
        metrics = ("dsc", "nsd") if what == "fifty" else None
        options = RankingOptions(bootstrap=100, metrics=metrics)
        is_organiser = audience == "organiser"
        write_report(sources, output, is_organiser=is_organiser, ranking=options)
        if what == "rank":
            file.write_bytes((output / "teams" / "team_08.html").read_bytes())
    return file
