"""Engines for tests: one that plays by a script, and one that says what it is told."""

import json
import shutil
import sys
import textwrap
from pathlib import Path

from flare.measuring.engines.docker import Docker

DOCKER = Path(__file__).with_name("docker.sh")

INFO = {
    "ServerVersion": "24.0.7",
    "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"],
    "Runtimes": {"runc": {}},
    "DefaultRuntime": "runc",
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
}
VERSION = {"Components": [{"Name": "runc", "Version": "1.3.4"}]}


class ScriptedEngine(Docker):
    """The program `docker.sh` under the name docker, in a folder of its own.

    Images, volumes and containers are folders there; see `docker.sh` for what can be
    scripted.
    """

    def __init__(self, home):
        super().__init__(str(home / "docker"))
        self.home, self.state = home, home / "state"
        for name in ("fail", "hang", "images", "tags", "volumes", "containers", "ids"):
            (self.state / name).mkdir(parents=True)
        shutil.copy(DOCKER, home / "docker")
        self.tell(**INFO, DockerRootDir=str(self.state))
        (self.state / "last-id").write_text("0\n")
        (self.state / "version.json").write_text(json.dumps(VERSION))

    def tell(self, **info):
        """What it says of itself, in one line as engines do."""
        (self.state / "info.json").write_text(json.dumps(info))

    def fail(self, command, text="Cannot connect to the Docker daemon"):
        """From now on, let a command fail, such as create or image-load."""
        (self.state / "fail" / command).write_text(text)

    def hang(self, command):
        """From now on, let a command never end."""
        (self.state / "hang" / command).touch()

    def work(self, command):
        for way in ("fail", "hang"):
            (self.state / way / command).unlink(missing_ok=True)

    def calls(self, start=""):
        """The commands that it was given, and that begin in some way."""
        lines = (self.state / "calls").read_text().splitlines()
        return [line for line in lines if line.startswith(start)]

    def left(self):
        kinds = ("containers", "volumes", "tags", "images")
        return [
            f"{kind}/{p.name}" for kind in kinds for p in (self.state / kind).iterdir()
        ]


def python_engine(folder, *lines):
    """An engine that is a Python program, told what to do by some lines of Python.

    They get `words`, the command, and may use `state`, a dictionary that is kept, and
    that `state_of` reads.
    """
    program = folder / "docker"
    code = textwrap.dedent("\n".join(lines))
    program.write_text(
        f"#!{sys.executable} -IS\n"  # without what is installed, it begins sooner
        "import atexit, json, pathlib, sys, time\n"
        f"file = pathlib.Path({str(folder / 'state')!r})\n"
        "state = json.loads(file.read_text()) if file.exists() else {}\n"
        "words = sys.argv[1:]\n"
        "state.setdefault('calls', []).append(words)\n"
        "atexit.register(lambda: file.write_text(json.dumps(state)))\n"
        f"{code}\n"
    )
    program.chmod(0o755)
    return Docker(str(program))


def state_of(folder):
    return json.loads((folder / "state").read_text())
