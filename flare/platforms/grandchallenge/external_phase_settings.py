"""Settings of a phase of the platform that is evaluated outside, by ``flare serve``."""

from __future__ import annotations

from typing import Any

from flare.challenge.rules import Challenge
from flare.measuring.contract import FLARE, MODEL_FOLDER, Contract
from flare.platforms.grandchallenge.phase_templates import (
    TEST,
    column_of,
    settings_for,
)

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
    for name, value in {
        "inputs": f"{contract.inputs}/{contract.input_path}",
        "slug": contract.input_slug,
        "outputs": contract.written_to,
    }.items():
        text = text.replace(f"{{{name}}}", value)
    return (
        PAGE.replace("{contract}", text)
        .replace("{measured}", f"its {measured}")
        .replace("{labels}", challenge.labels_text)
        .replace("{model}", MODEL_FOLDER)
    )
