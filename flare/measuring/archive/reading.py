"""Reads a team's image archive, without loading it, and writes it anew for an engine.

Engines read archives in different ways, which hostile ones have used to load another
image than the one that was checked, or to move tags. What is written here holds the
configuration and the layers that were checked, without any name, and nothing else.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from flare.common.text import listing, safe
from flare.measuring.archive.configuration import excesses
from flare.measuring.archive.image_json import (
    BLOBS,
    PLATFORM,
    Image,
    documents_of,
    find_image,
    without_volumes,
)
from flare.measuring.archive.image_tar import (
    PATH_CHARACTERS,
    SCRIPT,
    Blob,
    FileSystem,
    Kind,
    Layer,
    absolute,
    heads,
    open_members,
    read_contents,
    unpacked_pieces,
)
from flare.measuring.archive.model import MODEL_SUFFIX, Model, read_model, sent_file
from flare.measuring.archive.strict import (
    SENSELESS_JSON,
    ArchiveError,
    BrokenError,
    Budget,
    ModelError,
)
from flare.measuring.options import FLARE, MODEL_FOLDER, Contract
from flare.results.team_folder import REMEDY, name_problem

SUFFIX = ".tar.gz"

_TEAM = re.compile(r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*")
"""Docker's rule for the name of an image."""

_KERNEL = re.compile(r"/(?:proc|sys|dev)(?:/|$)")
"""Folders of the kernel's files: they lead out of a container."""

_RUNNERS = frozenset(
    {"nvidia_entrypoint.sh", "tini", "dumb-init", "docker-init", "env", "catatonit"}
)
"""Entrypoints that are known to run what follows them."""

_SHELLS = frozenset({"bash", "sh", "dash", "ash", "busybox"})

_SWALLOWERS = re.compile(r"(?:python|pypy|perl|node|ruby|R|Rscript|java)[\d.]*")

_LIBRARY_PATH = "LD_LIBRARY_PATH"

_VISIBLE = re.compile(r"\bCUDA_VISIBLE_DEVICES=[\"']?([^\s\"';&]*)")

_CHANGED = "it has changed since it was checked"

_REMEDY = "Leave it alone while it is measured, and start again."

_LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'

Finding = tuple[str, str] | str
"""A problem, and what to do about it (nothing for the usual remedy); or a doubt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """An archive that was looked at, but not loaded."""

    path: Path
    team: str
    sha256: str
    """SHA-256 of the file."""
    configuration: bytes = b""
    """Configuration of the image, byte by byte, but without volumes."""
    layers: tuple[Blob, ...] = ()
    """The first is the lowest; without what they hold."""
    image: str = ""
    """SHA-256 of the configuration: the ID of the image in most engines."""
    manifest: str = ""
    """SHA-256 of the manifest that `write_image` writes: the ID in other engines."""
    overrides: tuple[str, ...] = ()
    """Variables that replace harmful ones of the image, as NAME=VALUE."""
    unpacked_bytes: int = 0
    """Size of the files of all layers together,"""
    disk_bytes: int = 0
    """their size on a disk at most, where an engine stores a layer anew each time that
    it is listed,"""
    once_bytes: int = 0
    """and what that would be if each was listed once."""
    model: Model | None = None
    """The model that was sent beside it."""
    problems: tuple[ArchiveError | ModelError, ...] = ()
    """Why it cannot be run."""
    doubts: tuple[str, ...] = ()
    """Reasons why it may go wrong."""

    def is_image(self, identity: str) -> bool:
        """Whether an engine's ID is that of the image which was checked."""
        return bool(identity) and identity in (self.image, self.manifest)


def read_archive(
    path: Path,
    *,
    is_named: bool = True,
    contract: Contract = FLARE,
    model: Path | None = None,
) -> Archive:
    """Read an archive and check everything that can be checked without running it.

    The path is that of TEAMNAME.tar.gz, in which the image has to be called
    teamname:latest if it `is_named`, but never an algorithm's. A model was sent beside
    it. An InputError is raised if there is no such file, or one may not be read; an
    ArchiveError if it is a folder, a device, a pipe or a socket.
    """
    with sent_file(path, ArchiveError, f"TEAMNAME{SUFFIX}") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    archive = Archive(path=path, team=team_of(path), sha256=sha256)
    mounts = [contract.inputs, contract.outputs]
    if model:
        mounts.append(MODEL_FOLDER)
    findings = list(_name_findings(path.name))
    is_named = is_named and not contract.is_algorithm
    try:
        image = find_image(read_contents(path), archive.team if is_named else "")
        archive = _with_image(archive, image)
        findings.extend(_configuration_findings(image, contract))
        findings.extend(_content_findings(image, contract, mounts))
    except BrokenError as error:
        findings.append((str(error), ""))
    except (TypeError, AttributeError, KeyError, ValueError):
        findings.append((SENSELESS_JSON, ""))
    # A script, or a list of variables, may repeat what is wrong a million times.
    findings = [*dict.fromkeys(findings)][:20]
    doubts = [finding for finding in findings if isinstance(finding, str)]
    problems: list[ArchiveError | ModelError] = []
    problems += [ArchiveError(path.name, *f) for f in findings if isinstance(f, tuple)]
    if model:
        try:
            archive = replace(archive, model=read_model(model))
        except ModelError as error:
            problems.append(error)
    return replace(archive, problems=tuple(problems), doubts=tuple(doubts))


def _with_image(archive: Archive, image: Image) -> Archive:
    configuration = without_volumes(image)
    layers = {blob.diff_id: blob.layer for blob in image.layers}
    image_name, manifest, *_ = documents_of(configuration, image.layers)
    return replace(
        archive,
        configuration=configuration,
        layers=tuple(replace(blob, layer=Layer()) for blob in image.layers),
        image=image_name.removeprefix(BLOBS),
        manifest=manifest.removeprefix(BLOBS),
        overrides=environment_overrides(image.environment),
        unpacked_bytes=sum(blob.layer.unpacked_bytes for blob in image.layers),
        disk_bytes=sum(blob.layer.disk_bytes for blob in image.layers),
        once_bytes=sum(layer.disk_bytes for layer in layers.values()),
    )


def team_of(archive: Path) -> str:
    """The team whose archive it is, by its name."""
    return archive.name.removesuffix(SUFFIX)


# --- What is wrong, or doubtful ---------------------------------------------------


def _name_findings(name: str) -> Iterator[Finding]:
    team = name.removesuffix(SUFFIX)
    if name.endswith(MODEL_SUFFIX):
        yield "its name is that of a model", f"Call the image TEAMNAME{SUFFIX}."
    elif not name.endswith(SUFFIX):
        yield f"its name does not end in {SUFFIX}", f"Call it TEAMNAME{SUFFIX}."
    elif problem := name_problem(team):
        yield problem, REMEDY
    elif not _TEAM.fullmatch(team):
        remedy = "Use lower-case letters and digits, with single . _ or - between them."
        yield "a team's name cannot be the name of an image", remedy


def _configuration_findings(image: Image, contract: Contract) -> Iterator[Finding]:
    yield from _program_findings(image, contract)
    for excess in excesses(image.settings):
        yield excess, "Set fewer, or shorter ones, in the Dockerfile."
    for line in image.environment:
        name, _, value = line.partition("=")
        yield from _variable_findings(name, value, contract)
    for line in environment_overrides(image.environment):
        text = "has an empty entry, the working directory; it will be run with"
        yield f"{_LIBRARY_PATH} {text} {safe(line)}"


def _program_findings(image: Image, contract: Contract) -> Iterator[Finding]:
    platform = tuple(image.configuration.get(key) for key in ("os", "architecture"))
    if platform != PLATFORM:
        text = f"it is for {safe('/'.join(map(str, platform)))}, not linux/amd64"
        yield text, "Build it with --platform linux/amd64."
    entrypoint = [str(word) for word in image.settings.get("Entrypoint") or []]
    if contract.is_algorithm:
        if not entrypoint and not image.settings.get("Cmd"):
            remedy = "Let one of them run the prediction."
            yield "it has neither an ENTRYPOINT nor a CMD", remedy
    elif entrypoint:
        yield from _entrypoint_findings(entrypoint)


def _variable_findings(name: str, value: str, contract: Contract) -> Iterator[Finding]:
    match name:
        case "BASH_ENV" if value:
            text = "bash runs that file before anything else"
            yield f"{name} is set in its environment: {text}"
        case "LD_PRELOAD" | "LD_AUDIT" if value:
            # A hook of the GPU runtime would load it on the host (CVE-2025-23266).
            program = "the program that is run" if contract.is_algorithm else SCRIPT
            text = f"its environment sets {name}, which may reach the host"
            yield text, f"Set it in {program} instead."
        case "LD_LIBRARY_PATH":
            yield from _library_path_findings(value)
        case "CUDA_VISIBLE_DEVICES":
            yield from _visible_findings("its environment", value)
        case "NVIDIA_VISIBLE_DEVICES" if value in ("", "none", "void"):
            yield f"{name} is {value or 'empty'}: no GPU"


def _entrypoint_findings(entrypoint: Sequence[str]) -> Iterator[Finding]:
    """Whether it runs the command that follows it."""
    program = posixpath.basename(entrypoint[0])
    shown = safe(" ".join(entrypoint))
    is_shell = program in _SHELLS and "-c" in entrypoint[1:]
    is_shell &= "$@" not in shown  # it hands on what follows
    if is_shell or _SWALLOWERS.fullmatch(program):
        text = f"its entrypoint ({shown}) swallows the command that is run"
        yield text, "Leave ENTRYPOINT out, or set it to []."
    elif program not in _RUNNERS:
        yield f'its entrypoint ({shown}) has to run what follows it (exec "$@")'


def _library_path_findings(value: str) -> Iterator[Finding]:
    """Whether libraries would come from where the image does not hold them."""
    entries = filter(None, re.split("[:;]", value))
    outside = [e for e in entries if e[0] != "/" or _KERNEL.match(absolute(e))]
    if outside:
        text = f"its environment has {listing(outside)} in {_LIBRARY_PATH}"
        yield text, "Give folders of the image, from / on."


def environment_overrides(environment: Sequence[str]) -> tuple[str, ...]:
    """Variables that replace those of the image which would be harmful.

    Examples
    --------
    >>> environment_overrides(["PATH=/bin", "LD_LIBRARY_PATH=/opt/lib:"])
    ('LD_LIBRARY_PATH=/opt/lib',)
    """
    # Of several with one name, the last counts.
    values = dict(line.partition("=")[::2] for line in environment)
    value = values.get(_LIBRARY_PATH, "")
    entries = re.split("[:;]", value)
    if value and not all(entries):
        return (f"{_LIBRARY_PATH}={':'.join(filter(None, entries))}",)
    return ()


def _visible_findings(source: str, value: str) -> Iterator[Finding]:
    """Whether a GPU is chosen that the container does not have."""
    if value != "0":
        text = f"{source} sets CUDA_VISIBLE_DEVICES to {safe(value) or 'nothing'}"
        yield f"{text}, but the container sees one GPU, number 0", "Leave it out."


READ_BY_ENGINES = ("/etc/passwd", "/etc/group")
"""Files that an engine opens when it starts a container, which is locked meanwhile."""


def _content_findings(
    image: Image, contract: Contract, mounts: Sequence[str]
) -> Iterator[Finding]:
    files = FileSystem([blob.layer for blob in image.layers])
    folder = str(image.settings.get("WorkingDir") or "/")
    if len(folder) > PATH_CHARACTERS:
        yield "its working directory is no path", ""
        return
    yield from _engine_findings(files)
    for mount in mounts:
        yield from _mount_findings(files, mount)
    folder = absolute(folder)
    place = files.resolve(folder) or folder
    if _KERNEL.match(folder) or _KERNEL.match(place):
        text = f"its working directory {safe(folder)} is one of the kernel's"
        yield text, "Set WORKDIR to a folder of the image."
    if not contract.is_algorithm:
        yield from _predict_findings(files, folder)


def _engine_findings(files: FileSystem) -> Iterator[Finding]:
    for path in READ_BY_ENGINES:
        if files.at(files.resolve(path) or "") is Kind.SPECIAL:
            text = f"its {path} is {Kind.SPECIAL.value}, for which an engine would wait"
            yield text, "Make it a file, as in the base image."


def _predict_findings(files: FileSystem, folder: str) -> Iterator[Finding]:
    """Problems of what FLARE runs in a working directory: bash, and predict.sh."""
    if files.at(files.resolve("/bin/bash") or "") is not Kind.FILE:
        yield "it has no /bin/bash", "Install bash in the image."
    script = files.at(files.resolve(posixpath.join(folder, SCRIPT)) or "")
    if isinstance(script, bytes):
        yield from script_findings(script)
        return
    text = f"there is no {SCRIPT} in its working directory {safe(folder)}"
    remedy = f"COPY {SCRIPT} {safe(folder)}/ in the Dockerfile."
    if scripts := files.scripts():
        text += f", but {listing(scripts)}"
        remedy = f"Set WORKDIR {safe(posixpath.dirname(scripts[0]))}."
    yield text, remedy


def _mount_findings(files: FileSystem, folder: str) -> Iterator[Finding]:
    """Whether a folder of the host could not be mounted where it has to be."""
    place = files.resolve(folder)
    no_folders = [
        h for h in heads(place or "") if files.at(h) not in (None, Kind.FOLDER)
    ]
    text = ""
    if not place:
        text = f"{folder} is a link that leads nowhere"
    elif no_folders:
        text = f"{folder} cannot be a folder: {safe(no_folders[0])} is a file"
    elif _KERNEL.match(place):
        text = f"{folder} leads to {safe(place)}, which is the kernel's"
    if text:
        yield text, f"Leave {folder} out of the image."


def script_findings(content: bytes) -> Iterator[Finding]:
    r"""Problems of predict.sh.

    Examples
    --------
    >>> list(script_findings(b"python predict.py\r\n"))[0][0]
    'predict.sh has Windows line ends'
    """
    text = content.decode("utf-8", "replace")
    if content.startswith(b"\xef\xbb\xbf"):
        remedy = "Save it as UTF-8 without one."
        yield f"{SCRIPT} begins with a byte order mark", remedy
    if b"\r\n" in content:
        remedy = f"Run dos2unix {SCRIPT}, and build the image again."
        yield f"{SCRIPT} has Windows line ends", remedy
    code = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    if not "".join(code).strip():
        yield f"{SCRIPT} is empty", "Let it run the prediction."
    for value in _VISIBLE.findall("\n".join(code)):
        yield from _visible_findings(SCRIPT, value)


# --- An archive of our own --------------------------------------------------------


def write_image(archive: Archive, file: BinaryIO) -> None:
    """Write the image of a checked archive as an uncompressed tar file.

    The team's file is gone through once more, and the layers are written in its order,
    front to back: the tar file may be a pipe. An ArchiveError is raised if the archive
    has changed since it was checked. What was written so far has no manifest yet, and
    is not the image of anything.
    """
    _write_file(file, "oci-layout", _LAYOUT)
    layers = {layer.name: layer for layer in archive.layers}
    # Layers that are equal are written once.
    unwritten = {layer.diff_id for layer in archive.layers}
    try:
        for member in open_members(archive.path, Budget()):
            layer = layers.get(member.name)
            if layer and layer.diff_id in unwritten:
                unwritten.remove(layer.diff_id)
                _write_layer(file, layer, unpacked_pieces(member))
    except BrokenError as error:
        raise ArchiveError(archive.path.name, _CHANGED, _REMEDY) from error
    if unwritten:
        raise ArchiveError(archive.path.name, _CHANGED, _REMEDY)
    for name, content in documents_of(archive.configuration, archive.layers).items():
        _write_file(file, name, content)
    file.write(bytes(2 * tarfile.BLOCKSIZE))


def _write_layer(file: BinaryIO, layer: Blob, pieces: Iterable[bytes]) -> None:
    """Write a layer, and make sure that it still is the one that was checked."""
    file.write(_header(BLOBS + layer.diff_id, layer.unpacked_bytes))
    digest = hashlib.sha256()
    missing_bytes = layer.unpacked_bytes
    for piece in pieces:
        missing_bytes -= len(piece)
        if missing_bytes < 0:
            break
        digest.update(piece)
        file.write(piece)
    if missing_bytes or digest.hexdigest() != layer.diff_id:
        raise BrokenError(_CHANGED)
    file.write(_padding(layer.unpacked_bytes))


def _write_file(file: BinaryIO, name: str, content: bytes) -> None:
    file.write(_header(name, len(content)) + content + _padding(len(content)))


def _header(name: str, size: int) -> bytes:
    """The header of a file: of nobody, and of no time."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    # Beyond 8 GiB, in the way that all engines read.
    return entry.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
