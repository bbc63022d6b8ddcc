"""Zips and programs, odd ones above all, and a way to ask the platform about them.

`flare rehearse` has to come to the outcomes that sagemaker-shim, the platform's
program, has come to: they are in shim.json beside this file, which this makes anew::

    python3.12 -m venv shim && shim/bin/pip install sagemaker-shim==0.8.3
    shim/bin/python tests/builders/shim.py

It needs Python 3.12, from 3.12.2 on: for 3.11, pip installs 0.2.4 without a word.
"""

import asyncio
import json
import os
import struct
import sys
import tempfile
import tomllib
import warnings
import zipfile
import zlib
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

OUTCOMES = Path(__file__).with_name("shim.json")
NAMES = OUTCOMES.with_suffix(".toml").read_text("utf-8")

CONTENT = b"some content " * 20


def write_zip(file, names, content=CONTENT, method=zipfile.ZIP_DEFLATED):
    # One may be there twice, of which zipfile warns; in Python 3.11, a text is no name
    # of an entry if it is empty.
    with (
        zipfile.ZipFile(file, "w") as archive,
        warnings.catch_warnings(action="ignore"),
    ):
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file


def of(*names, method=zipfile.ZIP_DEFLATED):
    """A zip of these names."""
    return lambda file: write_zip(file, names, method=method)


def changed(change, *names, method=zipfile.ZIP_DEFLATED):
    """A zip of a, b or these names, of whose bytes some are changed."""

    def make(file):
        write_zip(file, names or ("a", "b"), method=method)
        content = bytearray(file.read_bytes())
        file.write_bytes(bytes(change(content)))

    return make


LOCAL, DIRECTORY, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
"""What the three kinds of headers begin with."""


def put(content, header, offset, *values):
    """Numbers of two bytes into the first header of a kind."""
    where = content.index(header) + offset
    struct.pack_into(f"<{len(values)}H", content, where, *values)
    return content


def with_field(header, offset, *values):
    return changed(lambda content: put(content, header, offset, *values))


def with_flags_and_method(flags, method):
    """Both headers of the first file say so."""

    def change(content):
        put(content, DIRECTORY, 8, flags, method)
        return put(content, LOCAL, 6, flags, method)

    return changed(change)


def replaced(old, new, *names, method=zipfile.ZIP_DEFLATED, times=-1):
    return changed(lambda c: c.replace(old, new, times), *names, method=method)


def without_second_header(content):
    where = content.index(LOCAL, 4)
    content[where : where + 4] = b"none"
    return content


def damaged_data(content):
    content[31:41] = b"\xff" * 10
    return content


def grown(end):
    """The data of the first file, which is stored, go on to an end."""

    def change(content):
        (name_length,) = struct.unpack_from("<H", content, 26)
        data = content[30 + name_length : end(content)]
        sizes = zlib.crc32(data), len(data), len(data)
        struct.pack_into("<3I", content, content.index(DIRECTORY) + 16, *sizes)
        return content

    return change


into_the_next = grown(lambda content: content.index(DIRECTORY))
into_the_directory = grown(lambda content: content.index(DIRECTORY) + 1)


def with_a_link(file):
    entry = zipfile.ZipInfo("s/link.nii.gz")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(entry, "/etc/passwd")
        archive.writestr("s/a", CONTENT)


def in_zip64(file):
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("s/a", "s/b"):
            with archive.open(name, "w", force_zip64=True) as entry:
                entry.write(CONTENT)


def streamed(file):
    """Written to a pipe: sizes are behind the data."""
    with file.open("wb") as stream:
        pipe = SimpleNamespace(write=stream.write, flush=stream.flush)
        write_zip(pipe, ["s/a", "s/b"])


def with_a_comment(file):
    with zipfile.ZipFile(write_zip(file, ["s/a", "s/b"]), "a") as archive:
        archive.comment = b"PK\x05\x06" * 9


def nested(file):
    inner = write_zip(file.with_name("inner.zip"), ["a"])
    write_zip(file, ["s/inner.zip"], inner.read_bytes())


LONG = "n" * 300

ZIPS = {name: of(*names) for name, names in tomllib.loads(NAMES).items()} | {
    "zip64": in_zip64,
    "streamed": streamed,
    "a comment": with_a_comment,
    "a link": with_a_link,
    "a name too long": of(LONG, "a"),
    "bad UTF-8": replaced("ää".encode(), b"\xff\xff\xff\xff", "ää", "b"),
    "another code page": replaced(b"aaaa", b"a\x84\x84a", "aaaa", "b"),
    "a null byte": replaced(b"a0b", b"a\x00b", "a0b", "c"),
    "names that differ": replaced(b"aaaa", b"bbbb", "aaaa", "c", times=1),
    "a zip": nested,
    "stored": of("a", method=zipfile.ZIP_STORED),
    "bzip2": of("a", method=zipfile.ZIP_BZIP2),
    "LZMA": of("a", method=zipfile.ZIP_LZMA),
    "Deflate64": with_flags_and_method(0, 9),
    "PPMd": with_flags_and_method(0, 98),
    "XZ": with_flags_and_method(0, 95),
    "a password, AES": with_flags_and_method(1, 99),
    "Zstandard": with_flags_and_method(0, 93),
    "shrunk": with_flags_and_method(0, 1),
    "a method that is none": with_flags_and_method(0, 200),
    "a password": with_flags_and_method(1, 8),
    "a password and Zstandard": with_flags_and_method(1, 93),
    "patched data": with_flags_and_method(0x20, 8),
    "strong encryption": with_flags_and_method(0x40, 8),
    "a version to come": with_field(DIRECTORY, 6, 99),
    "overlapping": changed(into_the_next, method=zipfile.ZIP_STORED),
    "overlapping, alone": changed(into_the_directory, "a", method=zipfile.ZIP_STORED),
    "overlapping, junk": changed(
        into_the_next, "desktop.ini", "b", method=zipfile.ZIP_STORED
    ),
    "bad deflate data": changed(damaged_data),
    "a bad checksum": replaced(
        b"some content", b"none content", method=zipfile.ZIP_STORED
    ),
    "a bad directory": replaced(b"PK\x01\x02", b"PK\x01\x03"),
    "a bad local header": changed(without_second_header),
    "no end": changed(lambda c: c[: c.index(END)]),
    "cut off": changed(lambda c: c[: len(c) // 2]),
    "split, its first part": changed(lambda c: b"PK\x07\x08" + c[: len(c) // 2]),
    "of several disks": with_field(END, 4, 1, 1),
    "split into one": changed(lambda c: b"PK00" + c),
}


# --- Programs ---------------------------------------------------------------------


def ends(text, *, stdout=b"", status=1):
    """A program that writes metrics.json and some bytes, and ends with a status."""
    return f"""
import os, sys
open(os.environ["OUTPUT"] + "/metrics.json", "w").write("{{}}")
sys.stdout.buffer.write({stdout!r})
sys.stderr.buffer.write({text!r})
sys.exit({status})
"""


def killed_by(signal):
    return f"""
import os, signal, sys
sys.stderr.write("the reason\\n")
sys.stderr.flush()
os.kill(os.getpid(), signal.{signal})
"""


LATE = """
import signal, sys, time
sys.stderr.write("the reason\\n")
sys.stderr.flush()
time.sleep(20)
"""

CHILD = """
import subprocess, sys
code = "import time; time.sleep(2)"
subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL, {})
sys.stderr.write("the reason\\n")
sys.exit(1)
"""

ALL_CLOSED = "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"

TRACEBACK = b"Traceback (most recent call last):\n  File\nValueError: no\n"

ENDS = {
    "it goes well": ends(b"", status=0),
    "well, with a warning": ends(b"a warning\n", status=0),
    "well, without metrics.json": "print(1)",
    "one line": ends(b"a.nii.gz: bad\n"),
    "one line without its end": ends(b"a.nii.gz: bad"),
    "nothing on stderr": ends(b"", stdout=b"the reason\n", status=3),
    "empty lines alone": ends(b"\n  \n\n"),
    "several lines": ends(TRACEBACK),
    "spaces and empty lines": ends(b"first\n  last \t\n \n\n"),
    "100 empty lines": ends(b"the reason\n" + b"\n" * 100),
    "99 empty lines": ends(b"the reason\n" + b"\n" * 99),
    "a progress bar": ends(b"10 %\r50 %\rthe reason\n"),
    "accents": ends("für Ärzte: 肝臓\n".encode()),
    "a long reason": ends(b"x" * 2000 + b"\n"),
    "a line too long": ends(b"the reason\n" + b"y" * 70_000 + b"\n"),
    "a line too long on stdout": ends(b"the reason\n", stdout=b"y" * 70_000 + b"\n"),
    "no UTF-8": ends(b"caf\xe9\nthe reason\n"),
    "no UTF-8 on stdout": ends(b"the reason\n", stdout=b"caf\xe9\n"),
    "no UTF-8, but well": ends(b"caf\xe9\n", status=0),
    "NUL bytes": ends(b"the\0 reason\0\n\0\0\n"),
    "status 2": ends(b"usage\n", status=2),
    "status 137": ends(b"the reason\n", status=137),
    "status 255": ends(b"the reason\n", status=255),
    "SIGKILL": killed_by("SIGKILL"),
    "SIGTERM": killed_by("SIGTERM"),
    "SIGSEGV": killed_by("SIGSEGV"),
    "too late": LATE,
    "a child holds stderr": CHILD.format("stdout=subprocess.DEVNULL"),
    "a child holds nothing": CHILD.format(ALL_CLOSED),
}

LIMIT_S = 1
"""The time limit of a program; one that ends by itself takes a tenth of it."""


# --- The platform's program -------------------------------------------------------


class Storage:
    """Stands in for S3: gives one zip, and keeps the result."""

    def __init__(self, file=None):
        self.file = file
        self.result = {}
        self.files = []

    async def download_fileobj(self, *, Fileobj, **_):  # noqa: N803
        Fileobj.write(self.file.read_bytes())

    async def download_file(self, *, Filename, **_):  # noqa: N803
        Path(Filename).write_text("[]", "utf-8")

    async def upload_file(self, *, Filename, **_):  # noqa: N803
        self.files.append(Path(Filename).name)

    async def upload_fileobj(self, *, Fileobj, **_):  # noqa: N803
        self.result = json.loads(Fileobj.read())


class Listing:
    """Stands in for the image: lists the files that it gets."""

    files = ()

    async def run_inference(self, **_):
        top = Path(os.environ["GRAND_CHALLENGE_COMPONENT_INPUT_PATH"]).resolve()
        files = [file for file in top.rglob("*") if file.is_file()]
        names = {file.relative_to(top).as_posix() for file in files}
        self.files = sorted(names - {"inputs.json"})
        return 0

    last_stderr_lines = ()
    api_method = "exec"

    def mark_unhealthy(self):
        pass


async def run_platform(storage, process, paths):
    """Run one task; an empty result is one that the platform never got."""
    from sagemaker_shim.models import InferenceTask, S3Resources

    inputs = [
        {"relative_path": path, "bucket_name": "b", "bucket_key": path}
        | {"decompress": path.endswith(".zip")}
        for path in paths
    ]
    task = InferenceTask.model_validate(
        {"pk": "task", "inputs": inputs, "output_bucket_name": "b"}
        | {"output_prefix": "p", "timeout": LIMIT_S}
    )
    resources = S3Resources(semaphore=asyncio.Semaphore(), client=storage)
    try:
        await task.run_inference(user_process=process, s3_resources=resources)
    except Exception as error:  # noqa: BLE001  its kind is the outcome
        return {"error": type(error).__name__}
    return storage.result


async def ask(folder):
    """All outcomes."""
    from base64 import b64encode

    from sagemaker_shim.models import UserProcess

    zips, programs = {}, {}
    for name, make in ZIPS.items():
        file = folder / "upload.zip"
        make(file)
        listing = Listing()
        paths = ("predictions.zip", "inputs.json")
        result = await run_platform(Storage(file), listing, paths)
        is_good = result.get("return_code") == 0
        message = result.get("user_safe_error_message", "An unexpected error occurred")
        zips[name] = listing.files if is_good else message
    for name, code in ENDS.items():
        command = json.dumps([sys.executable, "-c", code]).encode()
        variable = "GRAND_CHALLENGE_COMPONENT_ENTRYPOINT_B64J"
        os.environ[variable] = b64encode(command).decode()
        storage, process = Storage(), UserProcess()
        result = await run_platform(storage, process, ())
        keys = ("error", "return_code", "user_safe_error_message")
        outcome = {key: result[key] for key in keys if key in result}
        outcome["stderr"] = "".join(result.get("user_process_last_stderr_lines", ()))
        programs[name] = outcome | {"files": storage.files}
    return zips, programs


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "output").mkdir()
        os.environ |= {
            "OUTPUT": str(folder / "output"),
            "GRAND_CHALLENGE_COMPONENT_INPUT_PATH": str(folder / "input"),
            "GRAND_CHALLENGE_COMPONENT_LINKED_INPUT_PARENT": str(folder / "inputs"),
            "GRAND_CHALLENGE_COMPONENT_OUTPUT_PATH": str(folder / "output"),
            "GRAND_CHALLENGE_COMPONENT_SET_EXTRA_GROUPS": "False",
        }
        zips, programs = asyncio.run(ask(folder))
    content = {"sagemaker-shim": version("sagemaker-shim"), "zips": zips}
    text = json.dumps(content | {"ends": programs}, indent=1, ensure_ascii=False)
    OUTCOMES.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
