"""Versions that can be broken out of: by the advisories' own numbers."""

import pytest

from flare.measuring.host import find_weaknesses

WALLS = {"security": ["name=seccomp,profile=builtin", "name=rootless"], "limits": []}
RUNC_2025 = "CVE-2025-31133, CVE-2025-52565, CVE-2025-52881"


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("1.1.11", ["CVE-2024-21626", RUNC_2025]),
        ("1.1.12", [RUNC_2025]),
        ("1.2.7", [RUNC_2025]),
        ("1.2.8", []),
        ("1.3.2", [RUNC_2025]),
        ("1.3.3", []),
        ("v1.4.0", []),
        ("1.1.5+ds1", ["CVE-2024-21626", RUNC_2025]),
        ("", []),
        ("unknown", []),
    ],
)
def test_versions_of_runc(version, numbers):
    found = find_weaknesses({**WALLS, "runc": version})

    assert [line.split(": ")[1].partition(";")[0] for line in found] == numbers


@pytest.mark.parametrize(
    ("version", "count"),
    [("1.16.1", 3), ("1.16.2", 2), ("1.17.3", 2), ("1.17.7", 1), ("1.17.8", 0)],
)
def test_versions_of_the_toolkit(version, count):
    assert len(find_weaknesses({**WALLS, "nvidia_toolkit": version})) == count


@pytest.mark.parametrize(
    ("version", "count"),
    [("1.6.20~ds1", 1), ("1.7.28", 1), ("1.7.29", 0), ("2.0.6", 1), ("2.1.5", 0),
     ("2.1.4", 1), ("2.3.0", 0)],
)  # fmt: skip
def test_versions_of_containerd(version, count):
    assert len(find_weaknesses({**WALLS, "containerd": version})) == count


def test_the_whole_line():
    (line,) = find_weaknesses({**WALLS, "containerd": "2.1.0"})

    assert line == (
        "containerd 2.1.0 is older than 1.7.29 or 2.0.7 or 2.1.5: CVE-2024-25621,"
        " CVE-2025-64329; update it, unless your distribution has repaired that version"
    )


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"security": ["name=rootless"]}, "filters no system calls"),
        (
            {"security": ["name=seccomp,profile=unconfined", "name=userns"]},
            "filters no system calls",
        ),
        ({"security": ["name=seccomp,profile=default"]}, "is root of this computer"),
        (
            {**WALLS, "limits": ["memory", "processes"]},
            "cannot limit memory, processes",
        ),
    ],
)
def test_walls_that_are_missing(engine, words):
    (line,) = find_weaknesses(engine)

    assert words in line
