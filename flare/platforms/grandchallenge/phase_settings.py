"""Settings of phases of the platform, made to fit a challenge.

Three phases are evaluated by the platform, and an external one by ``flare serve``.
``docs/organisers/phase-settings.md`` says why each field is set as it is.
"""

from __future__ import annotations

from typing import Any

from flare.challenge.metrics import METRICS, Better, Metric
from flare.challenge.rules import Challenge
from flare.measuring.contract import FLARE, MODEL_FOLDER, Contract

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
    """Settings of three phases for a challenge, as in phase-settings.json."""
    first, *others = (METRICS[name] for name in challenge.metrics)
    columns = [_metric_column("Mean", metric) for metric in others]
    for organ in challenge.organs:
        title = organ.name.replace("_", " ").capitalize()
        columns += [
            _metric_column(title, metric, organ.name) for metric in (first, *others)
        ]
    found = {}
    for name, own in (("sanity", SANITY), ("validation", VALIDATION), ("test", TEST)):
        text = own["submission_page_markdown"]
        found[name] = {
            **COMMON,
            "extra_results_columns": columns,
            **own,
            "submission_page_markdown": text.format(labels=challenge.labels_text),
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


OF_FLARE = (
    "Submit an algorithm whose image is made for FLARE: `sh predict.sh` reads CTs in"
    " `/workspace/inputs` and writes a label map for each into `/workspace/outputs`."
)

OF_ALGORITHM = (
    "Submit an algorithm. Its image is run once for each case, by its own ENTRYPOINT"
    " and CMD: it reads the one CT in `{inputs}` (listed in `/input/inputs.json` as"
    " `{slug}`), and writes one label map into `{outputs}`, under any name, with the"
    " header of the CT. No other outputs count."
)

PAGE = (
    "{contract} Labels: {labels}. Upload the image as a .tar.gz; its Dockerfile needs a"
    " `USER`, as the platform refuses images that run as root. A model that is uploaded"
    " beside the image is in `{model}`, where nothing can be written. The image is run"
    " on the organisers' computer, without a network, and {measured} measured. A"
    " submission that fails does not count."
)

EFFICIENCY = (
    column_of("Running time (s)", "runtime_s", "asc"),
    column_of("GPU memory (MB)", "max_gpu_memory_mb", "asc"),
)
"""What ``flare serve`` measures, the second only on a GPU."""


def external_settings_for(
    challenge: Challenge, contract: Contract = FLARE, *, has_gpu: bool = True
) -> dict[str, dict[str, Any]]:
    """Settings of one phase, with columns of running time and GPU memory.

    The platform ranks by the mean of the ranks of some columns, each of the means over
    cases: that is nearer to FLARE's ranking than the score alone, and still another
    one. They are those that the challenge file ranks by; if it names none, DSC, NSD,
    running time and memory.

    Parameters
    ----------
    challenge : Challenge
        Its rules.
    contract : Contract
        How ``flare serve`` runs images, for the submission page.
    has_gpu : bool
        Whether it gives them a GPU: a result without a value that is ranked would be
        on no board.
    """
    own = settings_for(challenge)["test"]
    dsc = column_of(own["score_title"], "dsc")
    nsd, *organs = own["extra_results_columns"]
    efficiency = EFFICIENCY if has_gpu else EFFICIENCY[:1]
    columns = [dsc, nsd, *efficiency, *organs]
    asked = {f"aggregates.{rule.metric}_mean" for rule in challenge.ranking}
    ranked = [c for c in columns if c["path"] in asked] or [dsc, nsd, *efficiency]
    score = ranked[0]
    settings = {
        **own,
        "title": "External test",
        "score_title": score["title"],
        "score_jsonpath": score["path"],
        "score_error_jsonpath": score["error_path"],
        "score_default_sort": score["order"],
        "scoring_method_choice": "avg",
        "extra_results_columns": [
            {**column, "exclude_from_ranking": column not in ranked}
            for column in columns
            if column is not score
        ],
        "submission_page_markdown": page_for(challenge, contract, has_gpu=has_gpu),
        "auto_publish_new_results": TEST["auto_publish_new_results"],
    }
    return {"external": settings}


def not_ranked(challenge: Challenge, settings: dict[str, Any]) -> tuple[str, ...]:
    """Metrics of the challenge file by which such a phase cannot rank."""
    paths = {settings["score_jsonpath"]}
    paths |= {column["path"] for column in settings["extra_results_columns"]}
    metrics = [rule.metric for rule in challenge.ranking]
    return tuple(m for m in metrics if f"aggregates.{m}_mean" not in paths)


def page_for(challenge: Challenge, contract: Contract, *, has_gpu: bool) -> str:
    """The text of the submission page: what an image has to do."""
    measured = "running time and GPU memory are" if has_gpu else "running time is"
    text = OF_ALGORITHM if contract.is_algorithm else OF_FLARE
    return PAGE.format(
        contract=text.format(
            inputs=f"{contract.inputs}/{contract.input_path}",
            slug=contract.input_slug,
            outputs=contract.written_to,
        ),
        labels=challenge.labels_text,
        measured=f"its {measured}",
        model=MODEL_FOLDER,
    )
