"""The container of the service: what it holds, without any engine."""

import json
import re
import tomllib

from packaging.requirements import Requirement

from tests.builders import ROOT
from tests.project.test_files import read_requirements

LINES = (ROOT / "Dockerfile.service").read_text("utf-8").replace("\\\n", " ")


def test_what_is_copied_is_what_the_engine_is_sent():
    """Labels are not: a service's image may be anywhere."""
    sent = (ROOT / ".dockerignore").read_text("utf-8").splitlines()

    copied = re.findall(r"^COPY (?!--from)(\S+) ", LINES, re.MULTILINE)

    assert copied == ["requirements-service.txt", "flare"]
    assert all(f"!{name}" in sent for name in copied)


def test_packages_are_pinned_as_the_others_are():
    """All that scores and measures is the same; beside it are two extras."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = extras["optional-dependencies"]
    names = {Requirement(text).name for text in extras["platform"] + extras["report"]}
    locks = map(read_requirements, ("requirements.txt", "requirements-service.txt"))
    image, service = (
        {name: (pin.version, pin.hashes) for name, pin in lock.items()}
        for lock in locks
    )

    (installed,) = re.findall(r"pip install (.*)$", LINES, re.MULTILINE)

    assert {"--require-hashes", "--no-deps"} <= {*installed.split()}
    assert installed.split()[-2:] == ["-r", "requirements-service.txt"]
    assert image.items() <= service.items()
    assert names <= service.keys()


def test_the_base_is_given_by_its_digest():
    """Without one nothing is built; the guide gives that of the other image."""
    guide = (ROOT / "docs/organisers/external-evaluation.md").read_text("utf-8")

    assert re.findall(r"^ARG BASE.*$", LINES, re.MULTILINE) == ["ARG BASE"]
    assert '--build-arg "BASE=$(cat base-image.txt)" .' in guide
    assert re.fullmatch(
        r"\S+@sha256:[0-9a-f]{64}\n", (ROOT / "base-image.txt").read_text("utf-8")
    )


def test_it_serves():
    (entrypoint,) = re.findall(r"^ENTRYPOINT (.*)$", LINES, re.MULTILINE)

    assert json.loads(entrypoint) == ["python", "-m", "flare", "serve"]
