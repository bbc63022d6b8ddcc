"""Settings of a phase of the platform that is evaluated outside, by ``flare serve``."""

from __future__ import annotations

from typing import Any

from flare.challenge.rules import Challenge
from flare.measuring.contract import FLARE, MODEL_FOLDER, Contract
from flare.platforms.grandchallenge.phase_templates import TEST, settings_for

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
    " on the organisers' computer, without a network, and its running time and GPU"
    " memory are measured. A submission that fails does not count."
)

EFFICIENCY = (
    ("Running time (s)", "runtime_s"),
    ("GPU memory (MB)", "max_gpu_memory_mb"),
)
"""What ``flare serve`` measures and the platform ranks, lower values first."""


def external_settings_for(
    challenge: Challenge, contract: Contract = FLARE
) -> dict[str, dict[str, Any]]:
    """Settings of one phase, with columns of running time and GPU memory.

    The platform ranks by the mean of the ranks of DSC, NSD, running time and memory,
    each of the means over cases: that is nearer to FLARE's ranking than the score
    alone, and still another one.

    Parameters
    ----------
    challenge : Challenge
        Its rules.
    contract : Contract
        How ``flare serve`` runs images, for the submission page.
    """
    columns = settings_for(challenge)["test"]["extra_results_columns"]
    nsd, *organs = columns
    efficiency = [
        {
            "title": title,
            "path": f"aggregates.{metric}_mean",
            "error_path": f"aggregates.{metric}_std",
            "order": "asc",
            "exclude_from_ranking": False,
        }
        for title, metric in EFFICIENCY
    ]
    settings = {
        **settings_for(challenge)["test"],
        "title": "External test",
        "scoring_method_choice": "avg",
        "extra_results_columns": [
            {**nsd, "exclude_from_ranking": False},
            *efficiency,
            *organs,
        ],
        "submission_page_markdown": page_for(challenge, contract),
        "auto_publish_new_results": TEST["auto_publish_new_results"],
    }
    return {"external": settings}


def page_for(challenge: Challenge, contract: Contract) -> str:
    """The text of the submission page: what an image has to do."""
    text = OF_ALGORITHM if contract.is_algorithm else OF_FLARE
    for name, value in {
        "inputs": f"{contract.inputs}/{contract.input_path}",
        "slug": contract.input_slug,
        "outputs": contract.written_to,
    }.items():
        text = text.replace(f"{{{name}}}", value)
    return (
        PAGE.replace("{contract}", text)
        .replace("{labels}", challenge.labels_text)
        .replace("{model}", MODEL_FOLDER)
    )
