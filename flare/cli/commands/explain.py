"""Say what the code of a message means, or a metric."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import flare
from flare.challenge.lesion_metrics import LesionMetric
from flare.challenge.lesions import DEFINITIONS
from flare.challenge.metrics import METRICS
from flare.cli.command import takes
from flare.cli.console import say
from flare.common.errors import FlareError
from flare.common.options import argument
from flare.common.text import nearest, safe

PLACE = ("For everybody", 2)


def error_classes() -> Iterator[type[FlareError]]:
    """Every class of errors that has a code of its own."""
    # Errors lie in the rooms that raise them; to import them is to know them.
    package = Path(flare.__file__).parent
    for file in package.rglob("*.py"):
        if re.search(r'^    code = "', file.read_text(encoding="utf-8"), re.MULTILINE):
            parts = file.relative_to(package.parent).with_suffix("").parts
            import_module(".".join(parts))
    kinds = [FlareError]
    for kind in kinds:  # which grows meanwhile
        kinds += kind.__subclasses__()
    yield from (kind for kind in kinds if "code" in vars(kind))


def explanations() -> dict[str, str]:
    """Explain every code, in the order of the codes: a sentence, and Markdown."""
    return {
        kind.code: inspect.getdoc(kind) or ""
        for kind in sorted(error_classes(), key=lambda kind: kind.code)
    }


def metric_text(name: str) -> str:
    """Explain a metric, by each definition of lesions that has a rule for it."""
    metric = METRICS[name]
    blocks = [f"{metric.heading}: {metric.definition}."]
    if isinstance(metric, LesionMetric):
        for definition in filter(metric.is_defined_by, DEFINITIONS.values()):
            blocks.append(definition.text([metric.needs]))
    return "\n\n".join(blocks)


def code(text: str) -> str:
    """Explain a metric, a definition or a code, which may have brackets around it."""
    if text in METRICS:
        return metric_text(text)
    if text in DEFINITIONS:
        return DEFINITIONS[text].text()
    texts = explanations()
    name = text.strip("[]").upper()
    if name not in texts:
        if not re.fullmatch(r"[A-Z]\d+", name):
            end = f"{safe(text)}{nearest(text, (*METRICS, *DEFINITIONS))}"
            raise ValueError(f"there is no code, metric or definition {end}")
        padded = re.sub(r"^([A-Z])(\d)$", r"\g<1>0\2", name)
        raise ValueError(f"there is no code {name}{nearest(padded, texts)}")
    return f"{name}: {texts[name]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplanationRequest:
    """What is explained."""

    meaning: str | None = argument(
        "The code in brackets at the end of a message, such as F07, a metric of label"
        " maps, such as lesion_dsc, or a definition of lesions, such as brats23-gli;"
        " without one, all codes are listed.",
        default=None,
        parse=code,
        metavar="CODE",
    )


@takes(ExplanationRequest)
def command(request: ExplanationRequest) -> None:
    if request.meaning:
        say(request.meaning)
    else:
        for name, text in explanations().items():
            title = text.partition("\n")[0]
            say(f"{name}  {title}")
