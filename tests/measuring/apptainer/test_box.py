"""Boxes, with real namespaces: what is in them, and what is left of them."""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from flare.common.errors import EngineError
from flare.measuring.apptainer import box as box_module
from flare.measuring.apptainer import unpack_layers
from flare.measuring.apptainer.box import opened_box
from flare.measuring.apptainer.processes import BoxProcesses
from flare.measuring.container_command import Limits
from tests.builders import wait_until
from tests.conftest import need_namespaces

LIMITS = Limits(output_size="2m", output_files=20, shm_size="1m")

HELD = """
import sys, time
from pathlib import Path
from flare.measuring.apptainer.box import opened_box
from flare.measuring.container_command import Limits
with opened_box(Path(sys.argv[1]), Path(sys.argv[2]), Limits()) as box:
    box.begin("sleep", sys.argv[3])
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folders(tmp_path):
    """Two empty folders."""
    found = (tmp_path / "outputs", tmp_path / "shm")
    for folder in found:
        folder.mkdir()
    return found


@pytest.fixture
def box(request, folders):
    """A box, where users may make namespaces."""
    need_namespaces(request)
    with opened_box(*folders, LIMITS) as found:
        yield found


def said(box, script):
    """What a script writes in a box."""
    process = box.begin("sh", "-c", script, stdout=subprocess.PIPE)
    return process.communicate()[0].decode()


def test_what_is_written_is_seen_in_the_box_alone(box, folders):
    said(box, f"echo a > {folders[0]}/file")

    assert said(box, f"cat {folders[0]}/file") == "a\n"
    assert list(folders[0].iterdir()) == []


def test_the_folders_have_a_size(box, folders):
    script = (
        f"head -c 4000000 /dev/zero 2>&- > {folders[0]}/big; wc -c < {folders[0]}/big"
    )
    assert said(box, script) == f"{2 * 2**20}\n"
    script = f"cd {folders[0]}; rm big; for n in $(seq 30); do : > $n; done 2>&-; ls"
    assert len(said(box, script).split()) < 20
    script = (
        f"head -c 4000000 /dev/zero 2>&- > {folders[1]}/big; wc -c < {folders[1]}/big"
    )
    assert said(box, script) == f"{2**20}\n"


def test_there_is_no_network_and_no_way_to_more_power(box):
    devices = said(box, "tail -n +3 /proc/net/dev | cut -d: -f1")
    assert devices.split() == ["lo"]
    assert said(box, "unshare --user true 2>&1 || echo refused").endswith("refused\n")
    assert said(box, "ls /sys/fs/cgroup") == ""
    assert said(box, "touch /sys/new 2>&1 || echo closed").endswith("closed\n")


def test_all_end_with_the_box(box):
    process = box.begin("sh", "-c", "setsid sleep 600 & sleep 600")
    group = BoxProcesses(box)
    wait_until(lambda: len(group.processes()) > 4)
    inside = group.processes()
    assert os.getpid() not in inside
    memory_mb, cpu_s = group.read()
    assert 0 < memory_mb < 20
    assert cpu_s < 1
    assert not group.is_above(2**30)

    box.end()

    assert process.wait(10) != 0
    assert group.read() == (None, None)
    assert group.processes() == frozenset()
    with pytest.raises(EngineError, match="namespaces have ended before their time"):
        box.check()


def test_memory_in_folders_and_in_programs_is_seen(box, folders):
    said(box, f"head -c 1000000 /dev/zero > {folders[0]}/file")
    code = (
        "a = bytearray(30_000_000); print(1, flush=True); import time; time.sleep(60)"
    )
    process = box.begin(sys.executable, "-I", "-c", code, stdout=subprocess.PIPE)
    process.stdout.readline()
    group = BoxProcesses(box)

    assert 30 < group.read()[0] < 60
    assert group.is_above(30_000_000)
    assert not group.is_above(60_000_000)

    box.end()
    process.communicate()


@pytest.mark.slow
def test_all_end_when_whoever_has_opened_the_box_is_killed(folders, box):
    seconds = f"600.{os.getpid()}"

    def is_running():
        words = f"sleep\0{seconds}\0".encode()
        return any(words == command_line(folder) for folder in Path("/proc").iterdir())

    process = subprocess.Popen(
        [sys.executable, "-c", HELD, *folders, seconds], stdout=subprocess.PIPE
    )
    process.stdout.readline()
    wait_until(is_running, 10)

    process.kill()

    wait_until(lambda: not is_running(), 10)
    process.communicate()


def command_line(folder):
    """What a process was started with."""
    try:
        return (folder / "cmdline").read_bytes()
    except OSError:
        return b""


def test_a_computer_without_namespaces_is_told(folders, tmp_path, monkeypatch):
    program = tmp_path / "unshare"
    program.write_text("#!/bin/sh\necho 'unshare failed: Not permitted' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    with pytest.raises(EngineError) as error, opened_box(*folders, LIMITS):
        pass

    assert str(error.value) == (
        "no namespaces can be made for a container (unshare failed: Not permitted)."
        " Ask who runs this computer to let users make user namespaces. [H05]"
    )


def test_a_box_that_does_not_end_is_told(folders, tmp_path, monkeypatch):
    program = tmp_path / "unshare"
    program.write_text("#!/bin/sh\necho ready; exec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(box_module, "ANSWER_S", 0.05)

    with (
        pytest.raises(EngineError, match="a container cannot be ended"),
        opened_box(*folders, LIMITS),
    ):
        pass


# --- Layers -----------------------------------------------------------------------


def layer(folder, name, *entries):
    """A layer with some entries: name, kind, and content or target."""
    with tarfile.open(folder / name, "w") as archive:
        for path, kind, text in entries:
            entry = tarfile.TarInfo(path)
            entry.type, entry.mtime, entry.mode = kind, 1_000_000, 0o755
            if kind == tarfile.REGTYPE:
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
            else:
                entry.linkname = text
                archive.addfile(entry)
    return folder / name


@pytest.fixture
def unpack(box, tmp_path):
    """Unpack layers into a folder, in a box; the folder, and what was said."""
    (tmp_path / "image").mkdir()

    def run(*layers):
        process = box.begin(
            *(sys.executable, "-I", unpack_layers.__file__, str(tmp_path / "image")),
            *map(str, layers),
            stderr=subprocess.PIPE,
        )
        return tmp_path / "image", process.communicate()[1].decode()

    return run


FILE, FOLDER, LINK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE


def test_later_layers_change_earlier_ones(unpack, tmp_path):
    low = layer(
        tmp_path,
        "low",
        *(("a/one", FILE, "1"), ("a/two", FILE, "2"), ("b/one", FILE, "1")),
        *(("b/deep/two", FILE, "2"), ("c", FILE, "file"), ("d", FOLDER, "")),
        *(("hard", tarfile.LNKTYPE, "a/two"), ("pipe", tarfile.FIFOTYPE, "")),
        ("device", tarfile.CHRTYPE, ""),
    )
    high = layer(
        tmp_path,
        "high",
        *(("a/.wh.one", FILE, ""), ("b/new", FILE, "n"), ("b/.wh..wh..opq", FILE, "")),
        *(("c", FOLDER, ""), ("c/in", FILE, "i"), ("d", LINK, "a")),
    )

    folder, stderr = unpack(low, high)

    assert stderr == ""
    found = {str(p.relative_to(folder)) for p in folder.rglob("*")}
    assert found == {"a", "a/two", "b", "b/new", "c", "c/in", "d", "hard", "pipe"}
    assert (folder / "hard").stat().st_ino == (folder / "a/two").stat().st_ino
    assert (folder / "a/two").stat().st_mtime == 1_000_000
    assert (folder / "a/two").stat().st_mode & 0o7777 == 0o755


def test_no_link_leads_out(unpack, tmp_path):
    """What ``apptainer build`` would write to the folders of this user."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "secret").write_text("s")
    out, up = f"{tmp_path}/home", "../" * 20 + f"{tmp_path}/home"
    low = layer(
        tmp_path,
        "low",
        *(("out", LINK, out), ("up", LINK, up), ("file", LINK, f"{out}/secret")),
        *((".singularity.d", LINK, out), (f"{tmp_path}/home".lstrip("/"), FOLDER, "")),
    )
    high = layer(
        tmp_path,
        "high",
        *(("out/a", FILE, "1"), ("up/b", FILE, "2"), ("file", FILE, "3")),
        *(("../../c", FILE, "4"), ("/d", FILE, "5")),
        *(("out/.wh.secret", FILE, ""), ("up/.wh..wh..opq", FILE, "")),
    )

    folder, stderr = unpack(low, high)

    assert stderr == ""
    assert [p.name for p in (tmp_path / "home").iterdir()] == ["secret"]
    assert (folder / "c").read_text() == "4"
    assert (folder / "d").read_text() == "5"
    assert (folder / "file").read_text() == "3"


def test_a_layer_that_makes_no_sense_is_told(unpack, tmp_path):
    _, stderr = unpack(layer(tmp_path, "low", ("a", tarfile.LNKTYPE, "nowhere")))

    assert "FileNotFoundError" in stderr.splitlines()[-1]
