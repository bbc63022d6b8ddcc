"""What metrics are called in print."""

import pytest

from flare.challenge.metrics import SCORES
from flare.reports.ranking.words import metric_title
from flare.results.efficiency_csv import SPREAD, VALUES

METRICS = [*SCORES, *(name for name in VALUES if not name.endswith(SPREAD))]


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_has_a_title(metric):
    """Other than its key, which no paper prints."""
    assert metric_title(metric) != metric
    assert "_" not in metric_title(metric)
