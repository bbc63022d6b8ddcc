"""An engine that is no Docker: folders for images and volumes, and plain processes.

It shows that nothing but `flare.measuring.engines.docker` knows what Docker is told.
Whoever uses it is not killed, so its guard has little to do.
"""

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

from flare.measuring.engines.interface import Exit
from flare.results.measurement_json import EngineRecord

PIPE = subprocess.PIPE


class PlainEngine:
    """Everything lies in `home`; `asked` has what was asked for, in order."""

    home: Path
    """Of the engine that is made next."""

    def __init__(self):
        self.tags, self.made, self.volumes, self.asked = {}, {}, set(), []

    def describe(self):
        known = {"runtimes": [], "limits": []}
        known["security"] = ["name=seccomp", "name=rootless"]
        untold = dict.fromkeys(EngineRecord.__annotations__, "")
        return {**untold, **known, "version": "plain 1"}

    def folder(self):
        return self.home

    # --- Images -------------------------------------------------------------------

    def _load(self):
        file = self.home / "loaded"
        if not file.exists():
            return
        with tarfile.open(file) as archive:
            (listed,) = json.load(archive.extractfile("manifest.json"))
            image = listed["Config"].rpartition("/")[2].removesuffix(".json")
            for layer in listed["Layers"]:
                content = io.BytesIO(archive.extractfile(layer).read())
                with tarfile.open(fileobj=content) as files:
                    files.extractall(self.home / image, filter="tar")
        self.tags.setdefault(image, set())
        file.unlink()

    def tags_of(self, *names):
        self._load()
        asked = {name.removeprefix("sha256:") for name in names}
        return {
            image: frozenset(tags)
            for image, tags in self.tags.items()
            if asked & {image, *tags}
        }

    def import_image(self, content, tag):
        self.tags["ours"] = {tag}
        return "ours"

    def begin_load(self):
        with (self.home / "loaded").open("wb") as file:
            return subprocess.Popen(["cat"], stdin=PIPE, stdout=file, stderr=PIPE)

    def load_error(self, stderr):
        raise AssertionError(stderr)

    def tag(self, image, tag):
        self.tags[image].add(tag)

    def remove_tags(self, *names):
        for image, tags in list(self.tags.items()):
            if tags and not tags - set(names):
                del self.tags[image]

    def remove_untagged(self, *images):
        pass

    # --- Containers and volumes -----------------------------------------------------

    def create(self, container):
        identity = f"{len(self.asked):064x}"
        self.made[identity] = container
        self.asked.append(container)
        return identity

    def command_line(self, container):
        return f"plain {container.image}"

    def start(self, container):
        made = self.made[container]
        if made.image == "ours":
            return subprocess.Popen(["true"])
        (inputs, _), *_ = made.reads
        work = self.home / made.image / "workspace"
        script = (work / "predict.sh").read_text()
        script = script.replace("/workspace/inputs", inputs)
        script = script.replace("/workspace/outputs", str(self.home / made.writes[0]))
        return subprocess.Popen(["sh", "-c", script], cwd=work)

    def kill(self, container):
        pass

    def exit_of(self, container):
        return Exit(runtime_s=0.5)

    def log(self, container):
        return b"as a plain process\n"

    def written_bytes(self, container):
        return 0

    def remove_container(self, container):
        self.made.pop(container)

    def make_volume(self, label, size, files):
        name = f"volume{len(self.asked)}"
        (self.home / name).mkdir()
        self.volumes.add(name)
        return name

    def hold_volume(self, volume, at, label, image, command):
        self.made[f"holder of {volume}"] = volume
        return f"holder of {volume}"

    def copy_out(self, container, folder):
        at = self.home / self.made[container]
        return subprocess.Popen(["tar", "-C", at, "-cf", "-", "."], stdout=PIPE)

    def remove_volume(self, volume):
        shutil.rmtree(self.home / volume)
        self.volumes.remove(volume)

    # --- All with a label -----------------------------------------------------------

    def remove_labelled(self, label):
        assert not self.made

    def guard_command(self, label, tags, images, work, times_s):
        return ("sh", "-c", 'read -r word; [ "$word" = done ] || rm -rf "$1"', "", work)
