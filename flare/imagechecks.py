"""Says what is wrong, or doubtful, about how an image starts and what it runs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from flare.imagetar import SCRIPT, SHELLS, Layer, resolve
from flare.names import listing, safe

PLATFORM = ("linux", "amd64")

PATH_CHARACTERS = 4096
"""Linux knows no longer path."""

_RUNNERS = frozenset(
    {"nvidia_entrypoint.sh", "tini", "dumb-init", "docker-init", "env", "catatonit"}
)
"""Entrypoints that are known to run what follows them."""

_SWALLOWERS = re.compile(r"(?:python|pypy|perl|node|ruby|R|Rscript|java)[\d.]*")

_RISKY_VARIABLES = {
    "BASH_ENV": "bash runs that file before anything else",
    "LD_PRELOAD": "it changes every program of the image",
}

_BASH_WORDS = {
    r"^\s*source\s": "source (write: .)",
    r"\[\[": "[[ (write: [ with quotes)",
    r"^\s*function\s+\w": "function NAME (write: NAME())",
    r"^\s*\w+=\(": "an array",
    r"<<<": "<<< (use echo and a pipe)",
    r"&>": "&> (write: > FILE 2>&1)",
    r"[<>]\(": "<( (use a file)",
    r"^\s*(?:pushd|popd|declare|shopt)\b": "pushd, popd, declare or shopt",
}
"""What bash understands, and a plain sh does not."""

_VISIBLE = re.compile(r"\bCUDA_VISIBLE_DEVICES=[\"']?([^\s\"';&]*)")

Findings = list[tuple[str, str]]
"""What is wrong, and what to do about it; empty for the usual remedy."""


def configuration_problems(image: Mapping[str, Any]) -> tuple[Findings, list[str]]:
    """What is wrong, and what is doubtful, about how an image starts."""
    problems: Findings = []
    doubts: list[str] = []
    platform = (image.get("os"), image.get("architecture"))
    if platform != PLATFORM:
        text = f"it is for {safe('/'.join(map(str, platform)))}, not linux/amd64"
        problems.append((text, "Build it with --platform linux/amd64."))
    settings = image.get("config")
    settings = settings if isinstance(settings, dict) else {}
    entrypoint = [str(word) for word in settings.get("Entrypoint") or []]
    if entrypoint:
        program = posixpath.basename(entrypoint[0])
        shown = safe(" ".join(entrypoint))
        is_shell = program in SHELLS and "-c" in entrypoint[1:]
        if is_shell or _SWALLOWERS.fullmatch(program):
            text = f"its entrypoint ({shown}) swallows the command that is run"
            problems.append((text, "Leave ENTRYPOINT out, or set it to []."))
        elif program not in _RUNNERS:
            doubts.append(
                f'its entrypoint ({shown}) has to run what follows it (exec "$@")'
            )
    for line in settings.get("Env") or []:
        name, _, value = str(line).partition("=")
        if name in _RISKY_VARIABLES and value:
            doubts.append(f"{name} is set in its environment: {_RISKY_VARIABLES[name]}")
        if name == "CUDA_VISIBLE_DEVICES" and value != "0":
            problems.append(_visible_problem("its environment", value))
        if name == "NVIDIA_VISIBLE_DEVICES" and value in ("", "none", "void"):
            doubts.append(f"NVIDIA_VISIBLE_DEVICES is {value or 'empty'}: no GPU")
    return problems, doubts


def _visible_problem(where: str, value: str) -> tuple[str, str]:
    """A GPU is chosen that the container does not have."""
    text = f"{where} sets CUDA_VISIBLE_DEVICES to {safe(value) or 'nothing'}"
    return f"{text}, but the container sees one GPU, number 0", "Leave it out."


def content_problems(
    content: Layer, image: Mapping[str, Any]
) -> tuple[Findings, list[str]]:
    """What is wrong, and what is doubtful, about the files of an image."""
    problems: Findings = []
    settings = image.get("config")
    folder = str((settings or {}).get("WorkingDir") or "/")
    if len(folder) > PATH_CHARACTERS:
        return [("its working directory is no path", "")], []
    folder = posixpath.normpath(f"/{folder.lstrip('/')}")
    if resolve("/bin/bash", content.links) not in content.shells:
        problems.append(("it has no /bin/bash", "Install bash in the image."))
    script = resolve(posixpath.join(folder, SCRIPT), content.links)
    if script not in content.scripts:
        text = f"there is no {SCRIPT} in its working directory {safe(folder)}"
        if script in content.others:
            text = f"{safe(script)} is no file"
        elsewhere = sorted(content.scripts)
        remedy = f"COPY {SCRIPT} {safe(folder)}/ in the Dockerfile."
        if elsewhere:
            text += f", but {listing(elsewhere)}"
            remedy = f"Set WORKDIR {safe(posixpath.dirname(elsewhere[0]))}."
        problems.append((text, remedy))
        return problems, []
    sh = posixpath.basename(resolve("/bin/sh", content.links))
    found = check_script(content.scripts[script], is_bash=sh == "bash")
    return [*problems, *found[0]], found[1]


def check_script(content: bytes, *, is_bash: bool) -> tuple[Findings, list[str]]:
    r"""What is wrong, and what is doubtful, about predict.sh.

    Parameters
    ----------
    content : bytes
        The script.
    is_bash : bool
        Whether the image's ``sh`` is bash.

    Examples
    --------
    >>> check_script(b"python predict.py\r\n", is_bash=False)[0][0][0]
    'predict.sh has Windows line ends'
    """
    problems: Findings = []
    text = content.decode("utf-8", "replace")
    if content.startswith(b"\xef\xbb\xbf"):
        problem = f"{SCRIPT} begins with a byte order mark"
        problems.append((problem, "Save it as UTF-8 without one."))
    if b"\r\n" in content:
        remedy = f"Run dos2unix {SCRIPT}, and build the image again."
        problems.append((f"{SCRIPT} has Windows line ends", remedy))
    code = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    if not "".join(code).strip():
        problems.append((f"{SCRIPT} is empty", "Let it run the prediction."))
    for line in code:
        for value in _VISIBLE.findall(line):
            if value != "0":
                problems.append(_visible_problem(SCRIPT, value))
    doubts = [] if is_bash else [
        f"{SCRIPT} is run by sh, which does not know {words}"
        for pattern, words in _BASH_WORDS.items()
        if any(re.search(pattern, line) for line in code)
    ]  # fmt: skip
    return problems, doubts
