"""Writes the JSON schemas of all files, made of their records, into results/schemas.

The site has them beside its page Files, and tests hold against them what is written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from schema_writing import json_schema, row_schema  # noqa: E402

from flare.challenge.metrics import METRICS  # noqa: E402
from flare.common.schema import Is  # noqa: E402
from flare.platforms.grandchallenge.download import Record  # noqa: E402
from flare.platforms.grandchallenge.phase import PHASES  # noqa: E402
from flare.platforms.leaderboard import (  # noqa: E402
    BOARD_COLUMNS,
    BoardRow,
)
from flare.platforms.serving.journal import JournalFile  # noqa: E402
from flare.platforms.serving.source import RETURNED, Answer  # noqa: E402
from flare.ranking.comparison import ComparisonFile  # noqa: E402
from flare.ranking.means import Mean  # noqa: E402
from flare.ranking.ranking_json import (  # noqa: E402
    MEAN_RANK_COLUMNS,
    CaseRankRow,
    RankingFile,
    RankingRow,
)
from flare.results.answers_csv import AnswerRow  # noqa: E402
from flare.results.archives_csv import (  # noqa: E402
    Flag,
    LedgerEntry,
    Refusal,
)
from flare.results.csv_rows import ValueRow  # noqa: E402
from flare.results.efficiency_csv import VALUES, CaseRecord  # noqa: E402
from flare.results.groups_csv import GROUPS  # noqa: E402
from flare.results.measurement_json import MeasurementFile  # noqa: E402
from flare.results.metrics_json import MetricsFile  # noqa: E402
from flare.results.traces_csv import Sample  # noqa: E402

SCHEMAS = ROOT / "results" / "schemas"

CLOSED = Is(additionalProperties=False)
NO_VALUES = {
    "if": {"not": {"properties": {"status": {"const": "ok"}}}},
    "then": {"properties": {name: {"type": "null"} for name in VALUES}},
}
"""A run that failed has none."""
SIGNED = "|".join(name for name, metric in METRICS.items() if metric.range[0] < 0)
NOT_SIGNED = {
    "if": {"not": {"properties": {"metric": {"pattern": f"^({SIGNED})(_|$)"}}}},
    "then": {"properties": {"value": {"minimum": 0}}},
}
"""Other metrics are 0 or more."""


def schemas() -> dict[str, str]:
    """The text of each schema, by the name of its file."""
    rows = {
        "answers": (Annotated[AnswerRow, CLOSED], "answers.csv"),
        "efficiency": (
            Annotated[CaseRecord, Is(optional=True, **NO_VALUES)],
            "efficiency.csv",
        ),
        "groups": (GROUPS, "CASES.csv"),
        "ledger": (
            Annotated[LedgerEntry, Is(optional=True, additionalProperties=False)],
            "ledger.csv",
        ),
        "flags": (Annotated[Flag, CLOSED], "flags.csv"),
        "means": (Annotated[Mean, CLOSED], "means.csv"),
        "refused": (Annotated[Refusal, CLOSED], "refused.csv"),
        "trace": (Annotated[Sample, CLOSED], "traces/CASE.csv"),
        "values": (Annotated[ValueRow, Is(**NOT_SIGNED)], "values.csv"),
        "ranking": (
            Annotated[RankingRow, Is(families=[MEAN_RANK_COLUMNS])],
            "ranking.csv",
        ),
        "case-ranks": (Annotated[CaseRankRow, CLOSED], "case_ranks.csv"),
        "leaderboard": (
            Annotated[BoardRow, Is(families=[BOARD_COLUMNS])],
            "LEADERBOARD.csv",
        ),
    }
    files = {
        "comparison": (ComparisonFile, "comparison.json"),
        "metrics": (MetricsFile, "metrics.json"),
        "measurement": (MeasurementFile, "measurement.json"),
        "ranking": (RankingFile, "ranking.json"),
        "phase-settings": (PHASES, "phase-settings.json"),
        "platform": (Record, "platform.json"),
        "serve-journal": (Annotated[JournalFile, CLOSED], "journal.json"),
        "serve-returned": (Annotated[Answer, Is(**RETURNED)], "TEAMNAME.json"),
    }
    schemas_by_name = {f"{name}-row": row_schema(*row) for name, row in rows.items()}
    schemas_by_name |= {name: json_schema(*record) for name, record in files.items()}
    return {
        f"{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas_by_name.items()
    }


if __name__ == "__main__":
    SCHEMAS.mkdir(parents=True, exist_ok=True)
    for name, text in schemas().items():
        (SCHEMAS / name).write_text(text, encoding="utf-8")
