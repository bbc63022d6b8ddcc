"""Apptainer for tests, which plays by a script, in boxes that need no namespaces."""

import shutil
from pathlib import Path

from flare.measuring.apptainer.engine import Apptainer
from tests.fakes.engine import calibration

SCRIPT = Path(__file__).with_name("apptainer.sh")
PROGRAMS = ("apptainer", "unshare", "nsenter", "prlimit", "taskset")


class ScriptedApptainer:
    """The program `apptainer.sh` under the names of others, in a folder of its own.

    See there for what can be scripted. `proc` is what boxes see as /proc.
    """

    def __init__(self, folder):
        self.folder = folder
        self.state, self.root = folder / "state", folder / "root"
        (self.state / "inside").mkdir(parents=True)
        self.proc = self.root / "proc"
        self.proc.mkdir(parents=True)
        for name in PROGRAMS:
            shutil.copy(SCRIPT, folder / name)
        text = calibration(integers_ns=20_000_000, memory_ns=24_000_000)
        (self.state / "calibration").write_text(text)

    @property
    def engine(self):
        """It, as the kit knows engines."""
        return Apptainer()

    def say(self, name, text):
        """From now on, let something fail, and say why."""
        (self.state / name).write_text(text)

    def lines(self, name):
        """The lines of a file that it keeps."""
        return (self.state / name).read_text().splitlines()

    def run(self, pid, *, anonymous_kb, shared_kb=0):
        """Let a process be there that has some memory, and half of it for sure."""
        folder = self.proc / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(f"{pid} (a) b) S {'0 ' * 10}100 50 30 20 0")
        (folder / "status").write_text(
            f"Name:\tx\nRssAnon:\t{anonymous_kb} kB\nRssShmem:\t{shared_kb} kB\n"
        )
        half = f"Pss_Anon: {anonymous_kb // 2} kB\nPss_Shmem: {shared_kb // 2} kB\n"
        (folder / "smaps_rollup").write_text(f"0-1 ---p\n{half}")

    def left(self):
        """What still runs in a box."""
        return [file.name for file in (self.state / "inside").iterdir()]
