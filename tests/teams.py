"""Tiny images of teams, made and saved as the teams of a challenge would do it."""

import gzip
import io
import re
import subprocess
import tarfile
from pathlib import Path

BASE = "flare-test-team-base"
PROGRAMS = (
    *("bash", "sh", "sleep", "cp", "cat", "mkdir", "chmod", "chown", "ln", "ls"),
    *("rm", "id", "head", "dd", "touch", "basename", "mkfifo", "true", "seq"),
)

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


def root_files():
    """A file system with bash, sh and a few programs of this computer."""
    paths = {}
    for name in PROGRAMS:
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


def save_team(folder, team, script, *lines, compressed=True):
    """Build an image, and save it as team.tar.gz; it does not stay in the engine."""
    context = folder / f"{team}-context"
    context.mkdir(parents=True)
    (context / "predict.sh").write_text(script)
    text = [f"FROM {BASE}", "WORKDIR /workspace", "COPY predict.sh /workspace/"]
    (context / "Dockerfile").write_text("\n".join([*text, *lines]) + "\n")
    docker("build", "--quiet", "--tag", f"{team}:latest", context)
    archive = folder / f"{team}.tar.gz"
    docker("save", f"{team}:latest", "--output", archive)
    docker("image", "rm", "--force", f"{team}:latest")
    if compressed:
        archive.write_bytes(gzip.compress(archive.read_bytes(), 1))
    return archive
