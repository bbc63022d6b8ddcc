"""Says what is wrong, or doubtful, about how an image starts and what it runs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flare.common.text import listing, safe
from flare.measuring.archive.image_json import PLATFORM
from flare.measuring.archive.image_tar import (
    PATH_CHARACTERS,
    SCRIPT,
    FileSystem,
    Kind,
    Layer,
    absolute,
    heads,
)
from flare.measuring.options import Contract

_KERNEL = re.compile(r"/(?:proc|sys|dev)(?:/|$)")
"""Where the kernel's files are: they lead out of a container."""

_RUNNERS = frozenset(
    {"nvidia_entrypoint.sh", "tini", "dumb-init", "docker-init", "env", "catatonit"}
)
"""Entrypoints that are known to run what follows them."""

_SHELLS = frozenset({"bash", "sh", "dash", "ash", "busybox"})

_SWALLOWERS = re.compile(r"(?:python|pypy|perl|node|ruby|R|Rscript|java)[\d.]*")

_LIBRARY_PATH = "LD_LIBRARY_PATH"

_HOOKED_VARIABLES = ("LD_PRELOAD", "LD_AUDIT")
"""A hook of the GPU runtime would load these on the host (CVE-2025-23266)."""

_VISIBLE = re.compile(r"\bCUDA_VISIBLE_DEVICES=[\"']?([^\s\"';&]*)")


@dataclass(slots=True)
class Findings:
    """What is wrong with an image, and what is doubtful."""

    problems: list[tuple[str, str]] = field(default_factory=list)
    """Each with what to do about it; empty for the usual remedy."""
    doubts: list[str] = field(default_factory=list)

    def wrong(self, problem: str, remedy: str = "") -> None:
        """Add a problem."""
        self.problems.append((problem, remedy))


def check_configuration(
    image: Mapping[str, Any], contract: Contract, found: Findings
) -> None:
    """Find out what is wrong, and what is doubtful, about how an image starts."""
    platform = (image.get("os"), image.get("architecture"))
    if platform != PLATFORM:
        found.wrong(
            f"it is for {safe('/'.join(map(str, platform)))}, not linux/amd64",
            "Build it with --platform linux/amd64.",
        )
    settings = image.get("config")
    settings = settings if isinstance(settings, dict) else {}
    entrypoint = [str(word) for word in settings.get("Entrypoint") or []]
    if contract.is_algorithm:
        if not entrypoint and not settings.get("Cmd"):
            remedy = "Let one of them run the prediction."
            found.wrong("it has neither an ENTRYPOINT nor a CMD", remedy)
    elif entrypoint:
        _check_entrypoint(entrypoint, found)
    for line in settings.get("Env") or []:
        name, _, value = str(line).partition("=")
        if name == "BASH_ENV" and value:
            text = "bash runs that file before anything else"
            found.doubts.append(f"{name} is set in its environment: {text}")
        if name in _HOOKED_VARIABLES and value:
            text = f"its environment sets {name}, which may reach the host"
            own = "the program that is run" if contract.is_algorithm else SCRIPT
            found.wrong(text, f"Set it in {own} instead.")
        if name == _LIBRARY_PATH:
            _check_library_path(value, found)
        if name == "CUDA_VISIBLE_DEVICES":
            _check_visible("its environment", value, found)
        if name == "NVIDIA_VISIBLE_DEVICES" and value in ("", "none", "void"):
            found.doubts.append(f"NVIDIA_VISIBLE_DEVICES is {value or 'empty'}: no GPU")
    for line in environment_overrides(settings.get("Env") or []):
        text = "has an empty entry, the working directory; it will be run with"
        found.doubts.append(f"{_LIBRARY_PATH} {text} {safe(line)}")


def _check_entrypoint(entrypoint: Sequence[str], found: Findings) -> None:
    """Find out whether it runs the command that follows it."""
    program = posixpath.basename(entrypoint[0])
    shown = safe(" ".join(entrypoint))
    is_shell = program in _SHELLS and "-c" in entrypoint[1:]
    is_shell &= "$@" not in shown  # it hands on what follows
    if is_shell or _SWALLOWERS.fullmatch(program):
        text = f"its entrypoint ({shown}) swallows the command that is run"
        found.wrong(text, "Leave ENTRYPOINT out, or set it to [].")
    elif program not in _RUNNERS:
        text = f'its entrypoint ({shown}) has to run what follows it (exec "$@")'
        found.doubts.append(text)


def _check_library_path(value: str, found: Findings) -> None:
    """Find out where libraries would come from that the image does not hold."""
    odd = [
        entry
        for entry in re.split("[:;]", value)
        if entry and (entry[0] != "/" or _KERNEL.match(absolute(entry)))
    ]
    if odd:
        text = f"its environment has {listing(odd)} in {_LIBRARY_PATH}"
        found.wrong(text, "Give folders of the image, from / on.")


def environment_overrides(environment: Sequence[str]) -> tuple[str, ...]:
    """What a container has to be given because the image's own would be harmful.

    Examples
    --------
    >>> environment_overrides(["PATH=/bin", "LD_LIBRARY_PATH=/opt/lib:"])
    ('LD_LIBRARY_PATH=/opt/lib',)
    """
    paths = [line for line in environment if line.startswith(f"{_LIBRARY_PATH}=")]
    # The last of them counts.
    for line in paths[-1:]:
        value = line.partition("=")[2]
        entries = re.split("[:;]", value)
        if value and not all(entries):
            return (f"{_LIBRARY_PATH}={':'.join(filter(None, entries))}",)
    return ()


def _check_visible(where: str, value: str, found: Findings) -> None:
    """Find out whether a GPU is chosen that the container does not have."""
    if value != "0":
        text = f"{where} sets CUDA_VISIBLE_DEVICES to {safe(value) or 'nothing'}"
        text += ", but the container sees one GPU, number 0"
        found.wrong(text, "Leave it out.")


def check_content(
    layers: Sequence[Layer],
    image: Mapping[str, Any],
    contract: Contract,
    mounted: Sequence[str],
    found: Findings,
) -> None:
    """Find out what is wrong, and what is doubtful, about the files of an image.

    Parameters
    ----------
    layers : sequence of Layer
        Of the image, the lowest first.
    image : mapping
        The image's own JSON.
    contract : Contract
        By which it would be run.
    mounted : sequence of str
        Folders of its containers that come from outside.
    found : Findings
        Gets it.
    """
    files = FileSystem(layers)
    settings = image.get("config")
    folder = str((settings or {}).get("WorkingDir") or "/")
    if len(folder) > PATH_CHARACTERS:
        found.wrong("its working directory is no path")
        return
    _check_folders(files, mounted, found)
    folder = absolute(folder)
    leads_to = files.resolve(folder) or folder
    if _KERNEL.match(folder) or _KERNEL.match(leads_to):
        text = f"its working directory {safe(folder)} is one of the kernel's"
        found.wrong(text, "Set WORKDIR to a folder of the image.")
    if contract.is_algorithm:
        return
    if files.at(files.resolve("/bin/bash") or "") is not Kind.FILE:
        found.wrong("it has no /bin/bash", "Install bash in the image.")
    script = files.at(files.resolve(posixpath.join(folder, SCRIPT)) or "")
    if isinstance(script, bytes):
        check_script(script, found)
        return
    text = f"there is no {SCRIPT} in its working directory {safe(folder)}"
    remedy = f"COPY {SCRIPT} {safe(folder)}/ in the Dockerfile."
    if elsewhere := files.scripts():
        text += f", but {listing(elsewhere)}"
        remedy = f"Set WORKDIR {safe(posixpath.dirname(elsewhere[0]))}."
    found.wrong(text, remedy)


def _check_folders(files: FileSystem, mounted: Sequence[str], found: Findings) -> None:
    """Find out whether a folder of the host could not be mounted where it has to be."""
    for folder in mounted:
        place = files.resolve(folder)
        above = [
            h for h in heads(place or "") if files.at(h) not in (None, Kind.FOLDER)
        ]
        text = ""
        if not place:
            text = f"{folder} is a link that leads nowhere"
        elif above:
            text = f"{folder} cannot be a folder: {safe(above[0])} is a file"
        elif _KERNEL.match(place):
            text = f"{folder} leads to {safe(place)}, which is the kernel's"
        if text:
            found.wrong(text, f"Leave {folder} out of the image.")


def check_script(content: bytes, found: Findings) -> None:
    r"""Find out what is wrong, and what is doubtful, about predict.sh.

    Parameters
    ----------
    content : bytes
        The script.
    found : Findings
        Gets it.

    Examples
    --------
    >>> check_script(b"python predict.py\r\n", found := Findings())
    >>> found.problems[0][0]
    'predict.sh has Windows line ends'
    """
    text = content.decode("utf-8", "replace")
    if content.startswith(b"\xef\xbb\xbf"):
        remedy = "Save it as UTF-8 without one."
        found.wrong(f"{SCRIPT} begins with a byte order mark", remedy)
    if b"\r\n" in content:
        remedy = f"Run dos2unix {SCRIPT}, and build the image again."
        found.wrong(f"{SCRIPT} has Windows line ends", remedy)
    code = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    if not "".join(code).strip():
        found.wrong(f"{SCRIPT} is empty", "Let it run the prediction.")
    for line in code:
        for value in _VISIBLE.findall(line):
            _check_visible(SCRIPT, value, found)
