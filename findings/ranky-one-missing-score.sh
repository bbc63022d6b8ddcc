#!/usr/bin/env bash
# Package: ranky 1.0.0, the average rank of teams where one score is missing (NaN).
#
# A case that one team has no score for counts for nobody: no team gets a rank on it, and
# the average is taken over the other cases, without a warning. So who is first among two
# teams depends on where a third one failed, though that one is last with or without it.
# Copeland's method, on the same table, keeps such a case for the teams that have a score,
# and finds another winner. Filled with a worst score, the table gives what one expects.
#
# Why it matters: leaderboards have gaps, of crashes and time-outs, and on the hardest
# cases; it is these that leave a ranking by ranky, and a team can remove a case that a
# rival is good at by leaving it out.
#
# Usage: findings/ranky-one-missing-score.sh
# Needs Python 3.11 or newer, PyPI, and 600 MB for the packages.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  ranky==1.0.0 numpy==2.4.6 pandas==3.1.1 scipy==1.17.1

cat >"$work/rank.py" <<'PYTHON'
import warnings

import numpy as np
import pandas as pd
import ranky

scores = pd.DataFrame(
    {
        "case 1": [0.9, 0.8, 0.7],
        "case 2": [0.9, 0.8, 0.7],
        "case 3": [0.5, 0.6, 0.4],
        "case 4": [0.5, 0.6, 0.4],
        "case 5": [0.5, 0.6, 0.4],
    },
    index=["A", "B", "C"],
)
gaps = scores.copy()
gaps.loc["C", ["case 3", "case 4", "case 5"]] = np.nan
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for name, table in {
        "A and B alone": scores.drop("C"),
        "C has all scores": scores,
        "C has no score on cases 3 to 5": gaps,
        "0 in their place": gaps.fillna(0),
    }.items():
        print(f"{name}: average ranks {ranky.average_rank(table).round(3).to_dict()}")
    print(f"those gaps, Copeland: wins {ranky.copeland(gaps).to_dict()}")
print("warnings:", len(caught))
PYTHON
said=$("$work/venv/bin/python" "$work/rank.py")
echo "$said"

diff - <(echo "$said") <<'EXPECTED'
A and B alone: average ranks {'A': 1.6, 'B': 1.4}
C has all scores: average ranks {'A': 1.6, 'B': 1.4, 'C': 3.0}
C has no score on cases 3 to 5: average ranks {'A': 1.0, 'B': 2.0, 'C': 3.0}
0 in their place: average ranks {'A': 1.6, 'B': 1.4, 'C': 3.0}
those gaps, Copeland: wins {'A': 1.0, 'B': 2.0, 'C': 0.0}
warnings: 0
EXPECTED
