"""Records of files: what is read strictly, and what a lenient reader passes by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from flare.common.schema import Positive, build


@dataclass(frozen=True, kw_only=True)
class Image:
    """A record within one."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Job:
    """A field of each kind."""

    images: tuple[Image, ...]
    model: Image | None
    seconds: dict[str, float] = field(default_factory=dict)
    caches: Literal["cold", "warm"] = "cold"
    tries: Positive = 1
    options: Mapping[str, Any] = field(default_factory=dict)


JOB = {
    "images": [{"name": "a.mha", "size": 3}],
    "model": None,
    "seconds": {"run": 1},
    "options": {"grid": None},
    "queue": "gpu",
}


def test_a_lenient_reader_passes_unknown_keys_by_at_all_depths():
    job = build(Job, JOB, is_lenient=True)

    assert job == Job(
        images=(Image(name="a.mha"),),
        model=None,
        seconds={"run": 1.0},
        options={"grid": None},
    )


def test_a_strict_reader_names_unknown_keys_at_all_depths():
    with pytest.raises(ValueError, match=r"^queue is .*; images\[1\].size is "):
        build(Job, JOB)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"images": None}, "images is None, expected a list"),
        ({"images": [{}]}, "images[1].name is missing"),
        ({"model": 5}, "model is 5, expected a table"),
        ({"seconds": []}, "seconds is [], expected a table"),
        ({"seconds": {"run": "1"}}, "seconds.run is '1', expected a number"),
        ({"caches": "hot"}, "caches is 'hot', expected cold or warm"),
        ({"tries": 0}, "tries is 0, expected at least 1"),
    ],
)
@pytest.mark.parametrize("is_lenient", [True, False])
def test_what_a_record_has_is_checked_by_both_readers(changes, problem, is_lenient):
    job = {"images": [{"name": "a.mha"}], "model": None, **changes}

    with pytest.raises(ValueError, match=problem.replace("[", r"\[")) as error:
        build(Job, job, is_lenient=is_lenient)

    assert str(error.value) == problem


def test_a_record_is_an_object():
    with pytest.raises(ValueError, match="expected a table"):
        build(Job, [], is_lenient=True)
