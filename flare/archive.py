"""Reads a team's image archive, without loading it, and says what would go wrong.

``docker save`` writes a tar file, compressed or not: ``manifest.json`` names the
configuration and the layers, which are tar files themselves. The layers are gone
through once, as they come, and only what matters is kept: links, shells and scripts.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from flare.errors import ArchiveError, InputError
from flare.names import listing, safe, why

SUFFIX = ".tar.gz"

SCRIPT = "predict.sh"
"""What is run, in the working directory of the image."""

PLATFORM = ("linux", "amd64")

SMALL_BYTES = 2**22
"""Files of the archive up to this size may be JSON, and are kept."""

SCRIPT_BYTES = 2**20
"""A script is read up to this size."""

UNPACKED_BYTES = 2**37
"""An image with layers beyond this, 128 GiB, is not gone through."""

MOST_ENTRIES = 5_000_000
"""Nor one with more files."""

KEPT_BYTES = 2**26
"""So much of small files is kept at most."""

NAME_BYTES = 2**16
"""Headers that hold a longer name are no header of an honest file."""

PATH_CHARACTERS = 4096
"""Linux knows no longer path."""

_TEAM = re.compile(r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*")
"""Docker's rule for the name of an image."""

_SHELLS = frozenset({"bash", "sh", "dash", "ash", "busybox"})

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What is known of an archive before it is loaded."""

    path: Path
    team: str
    sha256: str
    """Of the file."""
    image: str
    """ID of the image: the digest of its configuration."""
    manifests: tuple[str, ...]
    """Digests of its manifests, which newer engines take for the ID."""
    unpacked_bytes: int
    """Of all layers together."""
    problems: tuple[ArchiveError, ...]
    """Why it cannot be run."""
    doubts: tuple[str, ...]
    """What may go wrong."""

    def is_image(self, identity: str) -> bool:
        """Whether an engine's ID is that of the image which was checked."""
        return bool(identity) and identity in (self.image, *self.manifests)

    @property
    def tag(self) -> str:
        """The name by which the image is run."""
        return f"{self.team}:latest"


@dataclass(slots=True)
class _Layer:
    """What matters of a layer, by path."""

    links: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, bytes] = field(default_factory=dict)
    shells: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    """Files and folders that stand in the place of what is looked for."""
    removed: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)
    unpacked_bytes: int = 0


class _BrokenError(Exception):
    """The archive cannot be read; the text says why."""


class _Entry(tarfile.TarInfo):
    """A member of a tar file, whose header cannot be of any length."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        special = (
            *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
            *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
        )
        if self.type in special and self.size > NAME_BYTES:
            text = "a name in it is too long"
            raise _BrokenError(text)
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return found


def read_archive(path: Path) -> Archive:
    """Read an archive and check everything that can be checked without running it.

    Raises
    ------
    InputError
        If there is no such file, or it may not be read.
    """
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        problem = f"{safe(path)}: it cannot be read ({why(error)})"
        raise InputError(
            problem, "Give TEAMNAME.tar.gz as the team has sent it."
        ) from (error)
    team = path.name.removesuffix(SUFFIX)
    problems, doubts = _name_problems(path.name), []
    image, unpacked = "", 0
    manifests: tuple[str, ...] = ()
    try:
        files, layers = _read_members(path)
        image, configuration, order = _find_image(files, team)
        manifests = tuple(_oci_digests(files))
        unpacked = sum(layer.unpacked_bytes for layer in layers.values())
        absent = [name for name in order if name not in layers]
        if absent:
            doubts.append(f"{len(absent)} of its layers cannot be looked into")
        found = _configuration_problems(configuration)
        problems += found[0]
        doubts += found[1]
        if not absent:
            merged = _merge([layers[name] for name in order])
            found = _content_problems(merged, configuration)
            problems += found[0]
            doubts += found[1]
    except _BrokenError as error:
        problems.append((str(error), ""))
    except (TypeError, AttributeError, KeyError, ValueError):
        problems.append(("its manifest, or its configuration, makes no sense", ""))
    return Archive(
        path=path,
        team=team,
        sha256=sha256,
        image=image,
        manifests=manifests,
        unpacked_bytes=unpacked,
        problems=tuple(ArchiveError(path.name, *problem) for problem in problems),
        doubts=tuple(doubts),
    )


_Findings = list[tuple[str, str]]
"""What is wrong, and what to do about it; empty for the usual remedy."""


def _name_problems(name: str) -> _Findings:
    """What is wrong with the name of the file."""
    team = name.removesuffix(SUFFIX)
    if not name.endswith(SUFFIX):
        return [(f"its name does not end in {SUFFIX}", f"Call it TEAMNAME{SUFFIX}.")]
    if _TEAM.fullmatch(team):
        return []
    remedy = "Use lower-case letters and digits, with single . _ or - between them."
    return [("a team's name cannot be the name of an image", remedy)]


# --- The tar file -----------------------------------------------------------------


def _read_members(path: Path) -> tuple[dict[str, bytes], dict[str, _Layer]]:
    """The small files of an archive, and its layers, by name."""
    files: dict[str, bytes] = {}
    layers: dict[str, _Layer] = {}
    links: dict[str, str] = {}
    names: set[str] = set()
    budget = _Budget()
    try:
        with (
            _open(path) as content,
            tarfile.open(fileobj=content, mode="r|*", tarinfo=_Entry) as archive,
        ):
            for member in archive:
                budget.spend(member)
                name = posixpath.normpath(member.name)
                if name in names and not member.isdir():
                    # Which of them counts depends on who reads it.
                    text = f"it holds two files {safe(name)}"
                    raise _BrokenError(text)
                names.add(name)
                if member.issym() or member.islnk():
                    # Equal layers are stored once; links lead from folder to folder.
                    base = posixpath.dirname(name) if member.issym() else ""
                    target = posixpath.join(base, member.linkname)
                    links[name] = posixpath.normpath(target)
                data = archive.extractfile(member) if member.isfile() else None
                if data is None:
                    continue
                if member.size <= SMALL_BYTES:
                    budget.keep(member)
                    files[name] = data.read()
                    layer = _read_layer(io.BytesIO(files[name]), budget)
                else:
                    layer = _read_layer(data, budget)
                if layer:
                    layers[name] = layer
            # A file that was cut off may look like one that has ended.
            for _ in range(UNPACKED_BYTES >> 20):
                if not content.read(2**20):
                    break
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        text = "it is no tar file that can be read to its end"
        raise _BrokenError(text) from error
    except (ValueError, OverflowError, MemoryError, RecursionError) as error:
        text = "its headers make no sense"
        raise _BrokenError(text) from error
    for name, target in links.items():
        if target in layers:
            layers[name] = layers[target]
    return files, layers


def _open(path: Path) -> IO[bytes]:
    """The tar file, whose checksum is verified at its end if it is compressed."""
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path)) if is_gzip else path.open("rb")


@dataclass(slots=True)
class _Budget:
    """What may still be read."""

    unpacked_bytes: int = UNPACKED_BYTES
    entries: int = MOST_ENTRIES
    kept_bytes: int = KEPT_BYTES

    def keep(self, member: tarfile.TarInfo) -> None:
        """Take a member off that is kept."""
        self.kept_bytes -= member.size
        if self.kept_bytes < 0:
            text = f"its small files take more than {KEPT_BYTES >> 20} MB"
            raise _BrokenError(text)

    def spend(self, member: tarfile.TarInfo) -> None:
        """Take a member off."""
        self.unpacked_bytes -= member.size
        self.entries -= 1
        if self.unpacked_bytes < 0 or self.entries < 0:
            text = f"it holds more than {UNPACKED_BYTES >> 30} GiB, or too many files"
            raise _BrokenError(text)


def _read_layer(content: IO[bytes], budget: _Budget) -> _Layer | None:
    """What matters of a layer; None if it is none, or cannot be read."""
    layer = _Layer()
    try:
        with tarfile.open(fileobj=content, mode="r|*", tarinfo=_Entry) as archive:
            for member in archive:
                budget.spend(member)
                layer.unpacked_bytes += member.size
                _note(layer, member, archive)
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile):
        return None
    return layer


def _note(layer: _Layer, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
    """Keep what matters of a file."""
    path = posixpath.normpath(f"/{member.name}").replace("//", "/")
    folder, name = posixpath.split(path)
    if name == ".wh..wh..opq":
        layer.emptied.add(folder)
    elif name.startswith(".wh."):
        layer.removed.add(posixpath.join(folder, name[4:]))
    elif member.issym():
        layer.links[path] = posixpath.join(folder, member.linkname)
    elif member.islnk():
        layer.links[path] = posixpath.join("/", member.linkname)
    elif name == SCRIPT and member.isfile():
        content = archive.extractfile(member)
        layer.scripts[path] = content.read(SCRIPT_BYTES) if content else b""
    elif name in _SHELLS and member.isfile():
        layer.shells.add(path)
    elif name == SCRIPT or name in _SHELLS:
        layer.others.add(path)


def _merge(layers: Sequence[_Layer]) -> _Layer:
    """What is left when layers lie on top of each other, the first at the bottom."""
    merged = _Layer()
    for layer in layers:
        replaced = {*layer.links, *layer.scripts, *layer.shells, *layer.others}
        for table in (merged.links, merged.scripts):
            for path in [p for p in table if p in replaced or _is_gone(p, layer)]:
                del table[path]
        for names in (merged.shells, merged.others):
            for path in [p for p in names if p in replaced or _is_gone(p, layer)]:
                names.remove(path)
        merged.links |= layer.links
        merged.scripts |= layer.scripts
        merged.shells |= layer.shells
        merged.others |= layer.others
    return merged


def _is_gone(path: str, layer: _Layer) -> bool:
    """Whether a path, or a folder that it is in, was removed by a layer."""
    folder = path
    while folder != "/":
        if folder in layer.removed:
            return True
        folder = posixpath.dirname(folder)
        if folder in layer.emptied:
            return True
    return False


def _resolve(path: str, links: Mapping[str, str]) -> str:
    """Where a path leads when all links are followed."""
    path = posixpath.normpath(path)
    for _ in range(40):
        parts = path.strip("/").split("/")
        for count in range(1, len(parts) + 1):
            head = "/" + "/".join(parts[:count])
            if head in links:
                rest = "/".join(parts[count:])
                path = posixpath.normpath(posixpath.join(links[head], rest))
                break
        else:
            return path
    return path


# --- What the image is ------------------------------------------------------------


def _find_image(
    files: Mapping[str, bytes], team: str
) -> tuple[str, dict[str, Any], list[str]]:
    """ID, configuration, and names of the layers of the one image of an archive."""
    manifest = _json(files, "manifest.json")
    if not isinstance(manifest, list) or not all(isinstance(m, dict) for m in manifest):
        text = "it has no manifest.json: docker save has not written it"
        raise _BrokenError(text)
    if len(manifest) != 1:
        text = f"it holds {len(manifest)} images, expected one"
        raise _BrokenError(text)
    tags = [str(tag) for tag in manifest[0].get("RepoTags") or []]
    tags += [tag for tag in _oci_tags(files) if tag not in tags]
    if tags != [f"{team}:latest"]:
        found = listing(tags) if tags else "none: it was saved by its ID"
        text = f"its tags are {found}; expected {safe(team)}:latest alone"
        raise _BrokenError(text)
    name = str(manifest[0].get("Config"))
    configuration = _json(files, posixpath.normpath(name))
    layers = manifest[0].get("Layers")
    if not isinstance(configuration, dict) or not isinstance(layers, list):
        text = "its manifest names no configuration, or no layers"
        raise _BrokenError(text)
    image = hashlib.sha256(files[posixpath.normpath(name)]).hexdigest()
    return image, configuration, [posixpath.normpath(str(layer)) for layer in layers]


def _oci_tags(files: Mapping[str, bytes]) -> Iterator[str]:
    """Tags of the second list that newer archives have, which an engine may prefer."""
    index = _json(files, "index.json")
    manifests = index.get("manifests") if isinstance(index, dict) else None
    for entry in manifests if isinstance(manifests, list) else []:
        annotations = entry.get("annotations") if isinstance(entry, dict) else None
        if isinstance(annotations, dict):
            name = str(annotations.get("io.containerd.image.name", ""))
            if name:
                yield name.removeprefix("docker.io/").removeprefix("library/")


def _oci_digests(files: Mapping[str, bytes]) -> Iterator[str]:
    """Digests of the manifests in the second list."""
    index = _json(files, "index.json")
    manifests = index.get("manifests") if isinstance(index, dict) else None
    for entry in manifests if isinstance(manifests, list) else []:
        yield str(entry.get("digest", "")).removeprefix("sha256:")


def _json(files: Mapping[str, bytes], name: str) -> Any:
    """What a small file of the archive holds; None if that is no JSON.

    Raises
    ------
    _BrokenError
        If a key is there twice, be it in other capitals: Docker would take the other.
    """
    try:
        return json.loads(files.get(name, b""), object_pairs_hook=_table)
    except (ValueError, RecursionError):
        return None


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys nobody can read in two ways."""
    keys = [key.casefold() for key, _ in pairs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        text = f"its manifest, or its configuration, has {safe(twice)} twice"
        raise _BrokenError(text)
    return dict(pairs)


def _configuration_problems(image: Mapping[str, Any]) -> tuple[_Findings, list[str]]:
    """What is wrong, and what is doubtful, about how an image starts."""
    problems: _Findings = []
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
        is_shell = program in _SHELLS and "-c" in entrypoint[1:]
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


def _content_problems(
    content: _Layer, image: Mapping[str, Any]
) -> tuple[_Findings, list[str]]:
    """What is wrong, and what is doubtful, about the files of an image."""
    problems: _Findings = []
    settings = image.get("config")
    folder = str((settings or {}).get("WorkingDir") or "/")
    if len(folder) > PATH_CHARACTERS:
        return [("its working directory is no path", "")], []
    folder = posixpath.normpath(f"/{folder.lstrip('/')}")
    if _resolve("/bin/bash", content.links) not in content.shells:
        problems.append(("it has no /bin/bash", "Install bash in the image."))
    script = _resolve(posixpath.join(folder, SCRIPT), content.links)
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
    sh = posixpath.basename(_resolve("/bin/sh", content.links))
    found = check_script(content.scripts[script], is_bash=sh == "bash")
    return [*problems, *found[0]], found[1]


def check_script(content: bytes, *, is_bash: bool) -> tuple[_Findings, list[str]]:
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
    problems: _Findings = []
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
