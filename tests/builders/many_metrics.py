"""Results of many teams: five metrics of 13 organs, and one team that is bad."""

import numpy as np

from flare.challenge.reading import read_challenge, scoring_rules
from tests.builders.measured import write_measured
from tests.builders.pages import content_of_columns, write_json

RANKED = ("dsc", "nsd", "hd95", "assd", "runtime_s")

METRICS = ("dsc", "nsd", "hd95", "assd", "volume_difference")


def write_challenge(folder):
    lines = ['extends = "flare22"', f"metrics = {[*METRICS]}"]
    for metric in RANKED:
        better = "higher" if metric in METRICS[:2] else "lower"
        lines += ["[[ranking]]", f'metric = "{metric}"', f'better = "{better}"']
    file = folder / "many.toml"
    file.write_text("\n".join(lines))
    return file


def write_teams(folder, teams, challenge, *, cases=100, organs=13):
    """Write a folder for each team: its metrics.json and efficiency.csv."""
    generator = np.random.default_rng(7)
    rules = read_challenge(challenge)
    titles = [organ.name for organ in rules.organs][:organs]
    names = [f"case_{n:03}" for n in range(1, cases + 1)]
    for number, team in enumerate(teams):
        loss = 0.6 if number == len(teams) - 1 else 0.04 + 0.05 * number / len(teams)
        dsc = 1 - loss * generator.gamma(4, 0.25, (organs, cases))
        dsc[generator.random(dsc.shape) < 0.01] = 0
        dsc = dsc.clip(0, 1)
        values = {
            "dsc": dsc,
            "nsd": (dsc - 0.05).clip(0, 1),
            "hd95": (1 - dsc) * 30,
            "assd": (1 - dsc) * 8,
            "volume_difference": (dsc - 1) * generator.choice([-1, 1], dsc.shape) / 2,
        }
        columns = {}
        for metric, own in values.items():
            columns[metric] = own.mean(axis=0).round(4).tolist()
            for title, row in zip(titles, own.round(4).tolist(), strict=True):
                columns[f"{metric}_{title}"] = row
        write_measured(folder / team, names, off=number, traced=())
        content = content_of_columns(columns, names)
        content["evaluation"] |= {"challenge": rules.key, "challenge_name": rules.name}
        content["evaluation"]["rules"] = scoring_rules(rules)
        write_json(folder / team / "metrics.json", content)
