"""The dataclass that the options of a command fill."""

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Literal

import click
import pytest

from flare.cli import command as command_module
from flare.cli.command import takes
from flare.common.errors import InputError
from flare.common.options import argument, option, positive, seconds
from tests.builders import error_of


class Caches(Enum):
    """What a run finds."""

    COLD = "cold"
    WARM = "warm"


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """A part."""

    gpu: str = option("GPU.", default="0", title="Limits")
    timeout_s: float = option("Time.", default=3600.0, parse=seconds, metavar="S")


@dataclass(frozen=True, kw_only=True, slots=True)
class NoGpu(Limits):
    """The same with another default."""

    gpu: str = option("GPU.", default="none", title="Limits")


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What a command is told."""

    files: tuple[Path, ...] = argument("Files.", metavar="FILE...")
    output: Path = option("Folder.", metavar="DIR")
    limits: NoGpu = field(default_factory=NoGpu)
    caches: Caches | None = option("Caches.", default=None)
    ties: Literal["min", "max"] = option("Ties.", default="min")
    grid: Literal["strict", "size"] | None = option("Grid.", default=None)
    has_warm_up: bool = option("No warm-up.", default=True, flag="--no-warm-up")
    rerun: tuple[str, ...] = option("Case.", default=(), metavar="CASE")
    workers: int | None = option("N.", default=None, parse=positive, envvar="WORKERS")
    seen: int = 7

    def __post_init__(self) -> None:
        if self.ties == "max" and self.rerun:
            raise ValueError("argument --rerun: not with --ties max")
        if str(self.output) == "lost":
            raise InputError("lost: there is no such folder")


def told(*words):
    """What the command gets, or its exit status where it gets nothing."""
    got = []

    @takes(Options, "try")
    def command(asked: Options) -> None:
        got.append(asked)

    status = command.main(list(words), standalone_mode=False)
    return got[0] if got else status


def test_what_is_not_given_has_the_defaults_of_the_dataclass():
    files = (Path("a"), Path("b"))
    asked = told("a", "b", "--output", "o")
    assert asked == Options(files=files, output=Path("o"))
    assert asked.limits == NoGpu(gpu="none", timeout_s=3600.0)


def test_each_kind_of_value_is_made(monkeypatch):
    monkeypatch.setenv("WORKERS", "3")
    words = "a --output o --gpu 1 --timeout 2.5 --caches cold --grid size"
    words += " --ties max --no-warm-up"
    assert told(*words.split()) == Options(
        files=(Path("a"),),
        output=Path("o"),
        limits=NoGpu(gpu="1", timeout_s=2.5),
        caches=Caches.COLD,
        ties="max",
        grid="size",
        has_warm_up=False,
        workers=3,
    )
    asked = told("a", "--output", "o", "--rerun", "x", "--rerun", "y")
    assert asked.rerun == ("x", "y")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("a --output o --seen 8", "No such option '--seen'"),
        ("a --output o --timeout x", "'x' is not a number of seconds above 0"),
        ("a --output o --ties max --rerun x", "--rerun: not with --ties max"),
        ("a --output o --plots", "of earlier versions: flare report draws them"),
    ],
)
def test_a_wrong_option_is_a_usage_error(words, message, monkeypatch):
    monkeypatch.setitem(
        command_module.LEFT, ("try", "--plots"), "flare report draws them"
    )
    assert message in error_of(click.UsageError, told, *words.split()).format_message()


def test_an_error_of_the_dataclass_is_that_of_the_command(capfd):
    assert told("a", "--output", "lost") == 1
    assert "[H01]" in capfd.readouterr().err
