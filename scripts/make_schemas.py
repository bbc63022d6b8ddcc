"""Writes the JSON schemas of all files from their records.

Run it after a change of a record; a test tells if a schema is not current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from flare.common.json_schema import json_schema  # noqa: E402
from flare.results.metrics_json import MetricsFile  # noqa: E402

SCHEMAS = ROOT / "flare" / "results" / "schemas"


def schemas() -> dict[str, str]:
    """The text of each schema, by the name of its file."""
    found = {
        "metrics": json_schema(MetricsFile, "metrics.json"),
    }
    return {
        f"{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in found.items()
    }


if __name__ == "__main__":
    for name, text in schemas().items():
        (SCHEMAS / name).write_text(text, encoding="utf-8")
