"""Reads files of RESULTS/TEAM as pandas tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flare.common.text import safe
from flare.results.csv_rows import read_rows
from flare.results.efficiency_csv import COLUMNS, TEXTS, WHOLE, read_cases
from flare.results.errors import RankingError
from flare.results.metrics_json import read_scores
from flare.results.traces_csv import COLUMNS as TRACE_COLUMNS
from flare.results.values import number

if TYPE_CHECKING:
    import pandas as pd


def read_efficiency(file: str | Path) -> pd.DataFrame:
    """What was measured of a team, a row for each case.

    Parameters
    ----------
    file : str or Path
        An efficiency.csv, as ``flare measure`` writes it into the folder of a team.

    Returns
    -------
    DataFrame
        By case: its ``status``, and the other columns of the file. What was not
        measured is NaN; only the status ``ok`` has values.

    Raises
    ------
    RankingError
        If the file cannot be read; the message names the line.
    """
    import pandas as pd

    file = Path(file)
    rows: dict[str, dict[str, object]] = {}
    for row in read_cases(file):
        if row.case in rows:
            problem = f"{row.where}: {safe(row.case)} is there twice"
            raise RankingError(str(file), problem)
        rows[row.case] = {"status": row.status}
        for name in COLUMNS:
            if name in row.cells and name not in ("case", "status"):
                is_text = name in TEXTS
                rows[row.case][name] = row.text(name) if is_text else row.number(name)
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("case")
    kinds = {name: "Int64" if name in WHOLE else "float64" for name in frame}
    return frame.astype({n: k for n, k in kinds.items() if n not in (*TEXTS, "status")})


def read_metrics(file: str | Path) -> pd.DataFrame:
    """What a submission scores, as `flare.Results.to_frame` gives it.

    Parameters
    ----------
    file : str or Path
        A metrics.json, as ``flare evaluate`` and ``flare score`` write it.

    Returns
    -------
    DataFrame
        By case: a column for each metric, and ``failure``, which says why a case was
        not scored, and got the worst value instead; it is empty for all others.

    Raises
    ------
    RankingError
        If the file cannot be read.
    """
    import pandas as pd

    scores = read_scores(Path(file), ())
    columns: dict[str, dict[str, object]] = {}
    for (case, metric), value in scores.values.items():  # noqa: PD011  no table yet
        columns.setdefault(metric, {})[case] = value
    columns["failure"] = {case: scores.failed.get(case, "") for case in scores.cases}
    return pd.DataFrame(columns, index=pd.Index(scores.cases, name="case"))


def read_trace(file: str | Path) -> pd.DataFrame:
    """What was sampled while the container of a case ran.

    Parameters
    ----------
    file : str or Path
        A traces/CASE.csv, as ``flare measure`` writes it into the folder of a team.

    Returns
    -------
    DataFrame
        By seconds since the container was started: memory in MB (2^20 bytes), clock,
        temperature and processor time. What was not sampled is NaN.

    Raises
    ------
    RankingError
        If the file cannot be read; the message names the line.
    """
    import pandas as pd

    file = Path(file)
    rows = list(read_rows(file, ("seconds",)))
    columns = [c for c in TRACE_COLUMNS if not rows or c in rows[0][1]]
    numbers = [
        [number(cells[column], file, where) for column in columns]
        for where, cells in rows
    ]
    return pd.DataFrame(numbers, columns=columns, dtype="float64").set_index("seconds")
