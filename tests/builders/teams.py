"""Tiny images of teams, made and saved as the teams of a challenge would do it."""

import csv
import functools
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import uuid
from contextlib import ExitStack, contextmanager
from pathlib import Path

from flare.measuring.cleanup import KEY_START, new_key
from tests.builders import run_command, run_flare, write_file
from tests.builders.alone import alone
from tests.builders.archives import save

BASE = f"flare-test-team-base-{os.getpid()}"
"""Of this run of the tests: others may run on the same engine."""

LIMITS = (
    *("--gpu", "none", "--memory", "120m", "--shm-size", "16m", "--caches", "warm"),
    *("--output-size", "8m", "--timeout", "6"),
)
"""Of containers in tests; warm caches, because cold ones slow everything else down."""

BRISK = (
    *(sys.executable, "-c"),
    "import sys; from flare.cli.main import main; from tests.fakes import quick;"
    " quick.skip_empty(); sys.exit(main())",
)
"""The program, which takes half of the time for a tiny image."""

PROGRAMS = (
    *("bash", "sh", "sleep", "cp", "cat", "mkdir", "chmod", "chown", "ln", "ls"),
    *("rm", "id", "head", "dd", "touch", "basename", "mkfifo", "true", "seq"),
    *("mknod", "grep", "truncate", "env", "date", "tr"),
)

PYTHON_BASE = f"flare-test-python-base-{os.getpid()}"
"""Likewise: with Python, of what examples/teams has by default, and little else."""

NOT_NEEDED = (
    *("usr/share", "var", "proc", "sys", "dev", ".dockerenv", "__pycache__", "*.a"),
    *("perl*", "gconv", "*/python3*/test", "*/python3*/config-*", "*/python3*/idlelib"),
    *("*/python3*/ensurepip", "*/python3*/site-packages", "*/python3*/tkinter"),
)
"""Of the folders below: each image that is made of them is written and read."""

EXAMPLES = ("careful", "hasty", "empty", "crash")
"""The teams that examples/teams/make.sh makes, under these tags."""

PREDICT = """
for image in /workspace/inputs/*_0000.nii.gz; do
    name=$(basename "$image" _0000.nii.gz)
    cp "$image" "/workspace/outputs/$name.nii.gz"
done
"""
"""In the tests, the image of a case is the label map that is wanted."""

SCRIPTS = {
    "good": PREDICT,
    "slow": f"sleep 2\n{PREDICT}",
    "crash": "echo no model >&2\nexit 3",
    "hang": "sleep 600",
    "hungry": "exec bash -c 'x=0123456789; while true; do x=$x$x; done'",
    "silent": "true",
    "misnamed": "cp /workspace/inputs/* /workspace/outputs/",
    "extra": f"{PREDICT}\ncp /workspace/inputs/* /workspace/outputs/other.nii.gz",
    "text": "for i in /workspace/inputs/*; do echo hello > "
    "/workspace/outputs/$(basename $i _0000.nii.gz).nii.gz; done",
    "link": "for i in /workspace/inputs/*; do ln -s /etc/passwd "
    "/workspace/outputs/$(basename $i _0000.nii.gz).nii.gz; done",
    "pipe": "for i in /workspace/inputs/*; do mkfifo "
    "/workspace/outputs/$(basename $i _0000.nii.gz).nii.gz; done",
    "forking": f"for n in 1 2 3 4 5; do sleep 600 & done\n{PREDICT}",
    "bomb": "f() { f | f & }; f; sleep 600",
    "owner": f"id -u\n{PREDICT}\nchmod -R 000 /workspace/outputs/*\nmkdir "
    "/workspace/outputs/closed\nchmod 000 /workspace/outputs/closed",
    "network": f"(echo > /dev/tcp/192.0.2.1/80) 2>&1 && exit 5\n{PREDICT}",
    "meddling": f"touch /workspace/inputs/new && exit 6\n{PREDICT}",
    "chatty": f"head -c 30000000 /dev/zero\n{PREDICT}",
}
"""What each team's predict.sh does; README's "good" one is the first."""


def docker(*arguments, **options):
    return subprocess.run(
        ["docker", *map(str, arguments)], capture_output=True, check=True, **options
    ).stdout.decode()


@functools.cache
def root_files():
    """A file system with bash, sh and a few programs of this computer."""
    paths = {}
    for name in (*PROGRAMS, *filter(shutil.which, ["fincore"])):
        found = subprocess.run(["which", name], capture_output=True, check=True)
        program = Path(found.stdout.decode().strip()).resolve()
        paths[f"bin/{name}"] = program
        libraries = subprocess.run(["ldd", program], capture_output=True, check=False)
        for library in re.findall(r"(/\S+) \(0x", libraries.stdout.decode()):
            paths[library.lstrip("/")] = Path(library).resolve()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, path in paths.items():
            archive.add(path, name)
        for folder in ("tmp", "workspace", "etc"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o777
            archive.addfile(entry)
    return content.getvalue()


def make_base():
    docker("import", "-", BASE, input=root_files())


def make_python_base():
    words = [f"--exclude={pattern}" for pattern in NOT_NEEDED]
    words += ["bin", "lib", "lib64", "usr", "etc"]
    command = ["docker", "run", "--rm", "python:3.13-slim", "tar", "-C", "/", "-c"]
    with subprocess.Popen([*command, *words], stdout=subprocess.PIPE) as files:
        docker("import", "-", PYTHON_BASE, stdin=files.stdout)
    assert files.returncode == 0


@contextmanager
def example_tags():
    """Let nobody else make the images of examples/teams meanwhile."""
    with ExitStack() as tags:
        for team in EXAMPLES:
            tags.enter_context(alone(f"tag-{team}"))
        yield


def write_team(folder, team, script, **settings):
    """Write team.tar.gz as `save_team` does, without asking an engine for it.

    That takes a second, and tells nothing of what an image does. No other archive has
    the same image: others may be measuring on the same engine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {"workspace/predict.sh": script.encode()}
    return save(
        *(folder, root_files(), files),
        name=f"{team}.tar.gz",
        tags=[f"{team}:latest"],
        compress=False,
        Labels={"only": uuid.uuid4().hex},
        **settings,
    )


def save_team(folder, team, script, *lines, compressed=False, base=BASE):
    """Build an image, and save it as team.tar.gz; it does not stay in the engine."""
    context = folder / f"{team}-context"
    write_file(context / "predict.sh", script)
    text = [f"FROM {base}", "WORKDIR /workspace", "COPY predict.sh /workspace/"]
    (context / "Dockerfile").write_text("\n".join([*text, *lines]) + "\n")
    archive = folder / f"{team}.tar.gz"
    with alone(f"tag-{team}"):  # others build teams of the same name
        docker("build", "--quiet", "--tag", f"{team}:latest", context)
        docker("save", f"{team}:latest", "--output", archive)
        docker("image", "rm", "--force", f"{team}:latest")
    if compressed:
        archive.write_bytes(gzip.compress(archive.read_bytes(), 1))
    return archive


def flare_command(*arguments, status=0, **options):
    return _said(run_flare(*arguments, **options), status)


def brisk_command(*arguments, prefix=(), status=0, **options):
    """Run a command of the brisk program; what it writes to stdout and stderr."""
    words = (*prefix, *BRISK, *arguments)
    return _said(run_command(*words, **options), status)


def _said(run, status):
    assert run.returncode == status, run.stdout + run.stderr
    return run.stdout, run.stderr


def rows_of(folder):
    with (folder / "efficiency.csv").open() as content:
        return {row["case"]: row for row in csv.DictReader(content)}


def left_behind(results):
    """Containers, volumes and images that measuring into a folder has left."""
    folders = [results, *(path for path in results.rglob("*") if path.is_dir())]
    starts = tuple(new_key(folder)[:KEY_START] for folder in folders)
    label = '{{.Label "flare.measure"}}'
    found = [
        *docker("ps", "--all", "--format", label).split(),
        *docker("volume", "ls", "--format", label).split(),
        *re.findall(
            r"^flare-measure-[a-z]+-(\w+)",
            docker("image", "ls", "--format", "{{.Repository}}"),
            re.MULTILINE,
        ),
    ]
    return [key for key in found if key.startswith(starts)]


def measure_teams(folder, cases, *archives, results=None, more=(), **options):
    """Measure some archives together; what is written to stdout and stderr."""
    (folder / "archives").mkdir(parents=True)
    for file in archives:
        (folder / "archives" / file.name).symlink_to(file)
    return brisk_command(
        *("measure", folder / "archives", "--images", cases / "images"),
        *("--output", results or folder / "results", *LIMITS, "--no-warm-up", *more),
        **options,
    )
