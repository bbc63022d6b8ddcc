"""What surrounds the code where it is published: citation, forms, the wheel's page."""

import re

import pytest

import flare
from tests.builders import ROOT

CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*-*.yml"))


def test_the_citation_has_this_version():
    assert re.findall(r"^version: (.*)$", CITATION, re.M) == [flare.__version__]


def test_the_citation_and_the_changelog_have_the_same_date():
    (date,) = re.findall(r'^date-released: "(.*)"$', CITATION, re.M)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert f"\n## {flare.__version__} ({date})\n" in changelog


def test_the_paper_is_cited_as_readme_cites_it():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    doi = re.search(r"doi:([\w./]+\w)", readme)[1]

    assert f"  doi: {doi}\n" in CITATION
    assert CITATION.count("given-names:") == 30  # as the journal has them


def test_there_is_a_form_for_each_kind_of_issue():
    assert [form.stem for form in FORMS] == [
        "organiser-question",
        "refused-submission",
        "wrong-number",
    ]


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_has_what_it_needs(form):
    """Without a reader of YAML, as far as lines tell; no tabs, which YAML refuses."""
    text = form.read_text(encoding="utf-8")
    keys = re.findall(r"^(\w+):", text, re.M)
    fields = re.split(r"^  - type: ", text, flags=re.M)[1:]
    ids = re.findall(r"^    id: (\w+)$", text, re.M)

    assert keys == ["name", "description", "title", "labels", "body"]
    assert "\t" not in text
    kinds = [field.partition("\n")[0] for field in fields]
    assert set(kinds) <= {"markdown", "input", "textarea", "dropdown"}
    assert len(ids) == len(set(ids)) == len(fields) - kinds.count("markdown")
    assert text.count("      label: ") == len(ids)
    assert text.count("      required: true") >= 2
