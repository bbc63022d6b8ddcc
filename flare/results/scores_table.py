"""Shows the means of a submission's scores as a table."""

from __future__ import annotations

from flare.challenge.metrics import METRICS
from flare.results.scores import Results, statistics


def results_table(results: Results, *, has_std: bool = True) -> str:
    """Mean, and standard deviation, of each organ, for people to read."""
    metrics = results.metrics
    names = ("mean", "std") if has_std else ("mean",)
    rest = [""] * (len(names) - 1)
    found = list(results.cases[0].by_metric)
    titles = [cell for name in found for cell in (METRICS[name].title, *rest)]
    rows = [["", *titles], ["", *(names * len(found))]]
    for metric in metrics:
        if metric.startswith("dsc"):
            numbers = [statistics(metrics[f"{kind}{metric[3:]}"]) for kind in found]
            cells = [number[name] for number in numbers for name in names]
            texts = ["-" if cell is None else f"{cell:.4f}" for cell in cells]
            rows.append([metric[4:] or "mean of organs", *texts])
    width = max(len(row[0]) for row in rows)
    lines = [
        f"{row[0]:<{width}}  " + "  ".join(f"{cell:>6}" for cell in row[1:])
        for row in rows
    ]
    return "\n".join([*lines, *(each.text for each in results.free_cases)])
