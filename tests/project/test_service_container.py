"""The container of the service: what it holds, without any engine."""

import json
import re
import tomllib

from tests.builders import ROOT

LINES = (ROOT / "Dockerfile.service").read_text("utf-8").replace("\\\n", " ")


def test_what_is_copied_is_what_the_engine_is_sent():
    """Labels are not: a service's image may be anywhere."""
    sent = (ROOT / ".dockerignore").read_text("utf-8").splitlines()

    copied = re.findall(r"^COPY (?!--from)(\S+) ", LINES, re.MULTILINE)

    assert copied == ["requirements.txt", "flare"]
    assert all(f"!{name}" in sent for name in copied)


def test_packages_are_those_of_the_extras():
    """The platform's client, and what makes pages; all else is pinned by its hash."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = extras["optional-dependencies"]

    installed = re.findall(r'"([^"]+>=[^"]+)"', LINES)

    assert installed == [*extras["platform"], *extras["report"]]


def test_it_serves():
    (entrypoint,) = re.findall(r"^ENTRYPOINT (.*)$", LINES, re.MULTILINE)

    assert json.loads(entrypoint) == ["python", "-m", "flare", "serve"]
