"""Pages of made-up results: 11 teams on 100 cases, as `flare simulate` writes them."""

from flare.challenge.reading import read_challenge
from flare.ranking.options import RankingOptions
from flare.ranking.simulation import write_simulation
from flare.reports.report import write_report


def make_results(folder):
    """The results of all teams, made once."""
    if not folder.exists():
        write_simulation(read_challenge("flare21"), folder)
    return folder


def write_plain_page(folder, kind):
    """A page of a kind, such as ``organiser-ranking``: its file, made once."""
    audience, _, what = kind.partition("-")
    file = folder / f"{kind}.html"
    if not file.exists():
        source = {"ranking": make_results}[what](folder / "results")
        options = RankingOptions(bootstrap=100)
        is_organiser = audience == "organiser"
        write_report([source], file, is_organiser=is_organiser, ranking=options)
    return file
