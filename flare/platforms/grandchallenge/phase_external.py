"""Settings of a phase of the platform that is evaluated outside, by ``flare serve``."""

from __future__ import annotations

from typing import Any

from flare.challenge.rules import Challenge
from flare.platforms.grandchallenge.phase_templates import TEST, settings_for

PAGE = (
    "Submit an algorithm whose image is made for FLARE: `sh predict.sh` reads CTs in"
    " `/workspace/inputs` and writes a label map for each into `/workspace/outputs`."
    " Labels: {labels}. It is run on the organisers' computer, without a network, and"
    " its running time and GPU memory are measured. A submission that fails does not"
    " count."
)

EFFICIENCY = (
    ("Running time (s)", "runtime_s"),
    ("GPU memory (MB)", "max_gpu_memory_mb"),
)
"""What ``flare serve`` measures and the platform ranks, lower values first."""


def external_settings_for(challenge: Challenge) -> dict[str, dict[str, Any]]:
    """Settings of one phase, with columns of running time and GPU memory.

    The platform ranks by the mean of the ranks of DSC, NSD, running time and memory,
    each of the means over cases: that is nearer to FLARE's ranking than the score
    alone, and still another one.
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
        "submission_page_markdown": PAGE.replace("{labels}", challenge.labels_text),
        "auto_publish_new_results": TEST["auto_publish_new_results"],
    }
    return {"external": settings}
