"""Settings of three phases of the platform, made to fit a challenge."""

from __future__ import annotations

from typing import Any

from flare.challenge.metrics import METRICS, Better, Metric
from flare.challenge.rules import Challenge

COMMON: dict[str, Any] = {
    "score_title": "Mean DSC",
    "score_jsonpath": "aggregates.dsc_mean",
    "score_error_jsonpath": "aggregates.dsc_std",
    "score_default_sort": "desc",
    "score_decimal_places": 4,
    "extra_results_columns": [],
    "scoring_method_choice": "abs",
    "allow_submission_comments": False,
    "display_submission_comments": False,
    "supplementary_file_label": "Short paper",
    "supplementary_file_help_text": "Your short paper as a PDF file.",
    "show_supplementary_file_link": False,
    "supplementary_url_choice": "off",
    "supplementary_url_label": "",
    "supplementary_url_help_text": "",
    "show_supplementary_url": False,
    "display_all_metrics": False,
    "give_algorithm_editors_job_view_permissions": False,
    "evaluation_requires_gpu_type": "",
    "evaluation_requires_memory_gb": 8,
    "public": True,
}
"""Settings that all phases share."""

FILES = (
    "one zip with a .nii.gz label map for each case, named like its CT without `_0000`."
    " Labels: {labels}. Save them with the header of the CT."
)
"""What is to be submitted."""

SANITY: dict[str, Any] = {
    "title": "Sanity check",
    "score_error_jsonpath": "",  # there is none if there is a single case
    "extra_results_columns": [],
    "result_display_choice": "bst",
    "supplementary_file_choice": "off",
    "submissions_limit_per_user_per_period": 10,
    "submission_limit_period": 1,
    "submission_page_markdown": (
        "Try out, as often as you like, whether your files are as the evaluation wants"
        f" them: {FILES} These scores count for nothing."
    ),
    "auto_publish_new_results": True,
}

VALIDATION: dict[str, Any] = {
    "title": "Validation",
    "result_display_choice": "bst",
    "supplementary_file_choice": "req",
    "submissions_limit_per_user_per_period": 5,
    "submission_limit_period": None,
    "submission_page_markdown": (
        f"Submit {FILES} You have five submissions in all; those that fail do not"
        " count. Please try your files in the sanity check first, and attach your short"
        " paper."
    ),
    "auto_publish_new_results": True,
}

TEST: dict[str, Any] = {
    "title": "Test",
    "result_display_choice": "rec",
    "supplementary_file_choice": "req",
    "submissions_limit_per_user_per_period": 1,
    "submission_limit_period": None,
    "submission_page_markdown": (
        f"Submit {FILES} You have one submission, which is final; one that fails does"
        " not count. Please attach your short paper."
    ),
    "auto_publish_new_results": False,
}


def settings_for(challenge: Challenge) -> dict[str, dict[str, Any]]:
    """Settings of three phases for a challenge, as in phase-settings.json.

    ``docs/organisers/phase-settings.md`` says why each field is set as it is.
    """
    first, *others = (METRICS[name] for name in challenge.metrics)
    columns = [_metric_column("Mean", metric) for metric in others]
    for organ in challenge.organs:
        title = organ.name.replace("_", " ").capitalize()
        columns += [
            _metric_column(title, metric, organ.name) for metric in (first, *others)
        ]
    found = {}
    for name, own in (("sanity", SANITY), ("validation", VALIDATION), ("test", TEST)):
        text = own["submission_page_markdown"].replace(
            "{labels}", challenge.labels_text
        )
        found[name] = {
            **COMMON,
            "extra_results_columns": columns,
            **own,
            "submission_page_markdown": text,
        }
    # A single case has no standard deviation.
    found["sanity"]["extra_results_columns"] = [
        {**column, "error_path": ""} for column in columns
    ]
    return found


def _metric_column(title: str, metric: Metric, organ: str = "") -> dict[str, Any]:
    """The column of a metric of label maps, or of one organ."""
    name = f"{metric.name}_{organ}" if organ else metric.name
    order = "desc" if metric.better is Better.HIGHER else "asc"
    return column_of(f"{title} {metric.title_with_unit}", name, order)


def column_of(title: str, metric: str, order: str = "desc") -> dict[str, Any]:
    """A column of the leaderboard that is shown, and not ranked."""
    return {
        "title": title,
        "path": f"aggregates.{metric}_mean",
        "error_path": f"aggregates.{metric}_std",
        "order": order,
        "exclude_from_ranking": True,
    }
