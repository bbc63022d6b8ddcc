"""Archives of images, written here byte by byte: what is refused, and what doubted."""

import gzip
import hashlib
import json
import tarfile
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flare.common.errors import InputError
from flare.measuring.archive.model import read_model
from flare.measuring.archive.reading import read_archive, script_findings
from flare.measuring.archive.strict import BrokenError, ModelError, strict_json
from tests.builders import run_flare, write_file
from tests.builders.archives import (
    FILES,
    OF_NO_ENGINE,
    SCRIPT,
    configuration,
    findings,
    layer_of,
    save,
    tar,
)
from tests.builders.archives import sha256 as digest_of
from tests.builders.models import model_bytes

SENSELESS = "its manifest, or its configuration, makes no sense"
SECOND_LIST = {
    "index.json": b'{"manifests": [{"annotations":'
    b' {"io.containerd.image.name": "docker.io/library/python:3"}}]}'
}
CONFIG = json.dumps(configuration()).encode()
CAPITALS = (  # Docker's JSON ignores capitals and takes the last
    f'[{{"Config": "{digest_of(CONFIG)}.json", "RepoTags": ["team_a:latest"],'
    ' "Layers": ["0/layer.tar"], "repotags": ["python:3"]}]'
)
KIBS = "x" * 1024
DECOYS = dict.fromkeys(
    ("proc/self/fd/7/predict.sh", "sys/predict.sh", "dev/fd/predict.sh"), SCRIPT
)


def refused(problem, *layers, **options):
    """A row of the table: how the one problem begins, and what `save` is told."""
    shown = ", ".join(f"{key}={str(value)[:25]}" for key, value in options.items())
    return pytest.param(layers, options, problem, id=f"{problem[:45]} {shown}")


def one_problem(file):
    (found,) = findings(file)
    return found


# --- What is right ----------------------------------------------------------------


@pytest.mark.parametrize("layout", ["legacy", "oci"])
@pytest.mark.parametrize("compress", [True, False])
def test_an_archive_that_is_right(tmp_path, layout, compress):
    """Both layouts of docker save; a plain tar under that name is as good."""
    file = save(tmp_path, layout=layout, compress=compress)

    archive = read_archive(file)

    assert (archive.problems, archive.doubts) == ((), ())
    assert archive.team == "team_a"
    assert archive.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert archive.image == digest_of(CONFIG)
    assert archive.configuration == CONFIG
    # bash, dash and the script: the sizes of the files of all layers.
    assert archive.unpacked_bytes == 1 + 1 + len(SCRIPT)
    # A block for each of the five, and one more for what a file holds.
    assert archive.disk_bytes == (5 + 3) * 4096


def test_a_layer_takes_the_disk_as_often_as_it_is_listed(tmp_path):
    """So Docker 20.10 does: five times a layer of 60 MiB took 303 MiB of its disk."""
    archive = read_archive(save(tmp_path, FILES, *[{"w": b"x"}] * 3, {}, {}))

    assert archive.disk_bytes == (5 + 3) * 4096 + 3 * 2 * 4096
    assert archive.once_bytes == (5 + 3) * 4096 + 2 * 4096


def right(name, *layers, **options):
    return pytest.param(layers, options, id=name)


@pytest.mark.parametrize(
    ("layers", "options"),
    [
        right("nvidia", Entrypoint=["/opt/nvidia/nvidia_entrypoint.sh"]),
        right("tini", Entrypoint=["/usr/bin/tini", "--"]),
        right("null", Entrypoint=None, Env=None),
        right("GPU 0", Env=["CUDA_VISIBLE_DEVICES=0", "PATH=/bin"]),
        right("all GPUs", Env=["NVIDIA_VISIBLE_DEVICES=all", "X="]),
        right("slash", WorkingDir="workspace/"),
        # Free texts, of which base images have one and the other.
        right("labels in capitals", Labels={"maintainer": "a", "Maintainer": "b"}),
        # What is null, of any field, what no engine knows, and as much as may be given.
        right("top", top={"created": "0001-01-01T00:00:00Z", "author": None,
                          "history": [{"created": "2026-11-24T10:00:00.123456789+01:00",
                                       "empty_layer": True}]},
              Memory="a lot", Labels={"a": None}, Healthcheck=None,
              StopTimeout=2**63 - 1),
        right("much", Env=[f"V{n}=" for n in range(1000)], Labels={"a": KIBS * 63}),
        *(
            right(tag, tags=[tag])
            for tag in ("team_a:latest", "docker.io/team_a:latest",
                        "docker.io/library/team_a:latest", "localhost/team_a:latest")
        ),
        right("again", FILES, {"usr/bin/.wh.bash": b""}, {"usr/bin/bash": b"x"}),
        right("absolute link", {**FILES, "bin": "-> /usr/bin"}),
        right("linked folder", {"bin/bash": b"x", "workspace": "-> app/code",
                                "app/code/predict.sh": SCRIPT}),
        right("elsewhere removed", FILES, {"etc/.wh.bash": b""}),
        right("folder", FILES | {"workspace/outputs": None}),
        right("file, then folder", FILES | {"workspace/outputs": b"x"},
              {"workspace/outputs": None}),
        right("file, then removed", FILES | {"workspace/outputs": b"x"},
              {"workspace/.wh.outputs": b""}),
        right("link, then folder", FILES | {"workspace/outputs": "-> /proc"},
              {"workspace/outputs": None}),
        right("links to where nothing is",
              {"bin/bash": b"x", "bin/sh": b"x", "workspace": "-> app",
               "app/predict.sh": SCRIPT, "app/outputs": "-> /data/out"}),
    ],
)  # fmt: skip
def test_archives_that_are_as_good(tmp_path, layers, options):
    archive = read_archive(save(tmp_path, *layers, **options))

    assert (archive.problems, archive.doubts) == ((), ())


def test_what_an_engine_is_told_of_an_image(tmp_path):
    """Volumes are left out of what is loaded; without any, it stays byte by byte."""
    kept = {"Env": ["PATH=/bin", "LD_LIBRARY_PATH=/a"], "User": "me:1"}
    volumes = {"/model": {}, "/tmp": {}}
    archive = read_archive(save(tmp_path, **kept, Volumes=volumes))
    without = read_archive(save(tmp_path, **kept))

    assert (archive.problems, archive.doubts, archive.overrides) == ((), (), ())
    assert archive.image == digest_of(archive.configuration)
    assert json.loads(archive.configuration) == json.loads(without.configuration)
    configured = json.loads(archive.configuration)["config"]
    assert configured == {"WorkingDir": "/workspace", **kept}


def test_a_layer_that_is_stored_once_and_linked_to(tmp_path):
    layer = tar(FILES)
    config = json.dumps(configuration(layer, layer)).encode()
    names = ["0/layer.tar", "b/layer.tar"]
    entry = {"RepoTags": ["team_a:latest"], "Config": "config.json", "Layers": names}
    more = {"config.json": config, "b/layer.tar": "-> ../0/layer.tar"}

    archive = read_archive(save(tmp_path, manifest=[entry], more=more))

    assert (archive.problems, archive.doubts) == ((), ())
    assert [layer.name for layer in archive.layers] == ["0/layer.tar"] * 2


@pytest.mark.slow
def test_many_removed_files_take_no_time(tmp_path):
    """Twenty thousand links, and as many removals, are gone through once."""
    links = {f"d{n}/l": "-> x" for n in range(20_000)}
    removed = {f"e{n}/.wh.l": b"" for n in range(20_000)}

    assert findings(save(tmp_path, FILES | links, removed)) == []


# --- What is doubtful -------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "doubt"),
    [
        ({"Entrypoint": ["/start.sh"]}, "its entrypoint (/start.sh) has to run what"),
        (
            {"Entrypoint": ["/bin/bash", "-c", 'exec "$@"', "--"]},
            'its entrypoint (/bin/bash -c exec "$@" --) has to run what follows it',
        ),
        (
            {"Entrypoint": ["/bin/bash", "-c", 'source /etc/x; exec "$0" "$@"']},
            "its entrypoint (/bin/bash -c source /etc/x;",
        ),
        ({"Env": ["BASH_ENV=/x"]}, "BASH_ENV is set in its environment"),
        ({"Env": ["NVIDIA_VISIBLE_DEVICES=void"]}, "NVIDIA_VISIBLE_DEVICES is void:"),
        ({"Env": ["NVIDIA_VISIBLE_DEVICES="]}, "NVIDIA_VISIBLE_DEVICES is empty:"),
    ],
)
def test_a_doubtful_image_is_told_and_not_refused(tmp_path, settings, doubt):
    archive = read_archive(save(tmp_path, **settings))

    assert archive.problems == ()
    (found,) = archive.doubts
    assert found.startswith(doubt)


@pytest.mark.parametrize("times", [2, 3])
def test_json_that_has_a_key_twice_is_refused(times):
    with pytest.raises(BrokenError, match="its configuration, has a twice"):
        strict_json(b'{"b": 0, %b}' % b", ".join([b'"a": 1'] * times))


@pytest.mark.parametrize("number", ["1e999", "-1e400", "NaN", "-Infinity"])
def test_json_with_a_number_that_is_not_finite_is_refused(number):
    assert strict_json(b'{"a": 1e99}') == {"a": 1e99}
    with pytest.raises(BrokenError, match=f"has {number} for a number"):
        strict_json(b'{"a": %b}' % number.encode())


@pytest.mark.parametrize(
    ("value", "run_with"),
    [("/a:", "/a"), (":/a:/b", "/a:/b"), ("/a::/b", "/a:/b"), (":", "")],
)
def test_empty_entries_of_the_library_path_are_left_out(tmp_path, value, run_with):
    """Honest Dockerfiles have them: `ENV LD_LIBRARY_PATH=/a:$LD_LIBRARY_PATH`."""
    archive = read_archive(save(tmp_path, Env=[f"LD_LIBRARY_PATH={value}"]))

    assert archive.problems == ()
    (doubt,) = archive.doubts
    assert doubt.endswith(f"it will be run with LD_LIBRARY_PATH={run_with}")
    assert archive.overrides == (f"LD_LIBRARY_PATH={run_with}",)


# --- What is refused --------------------------------------------------------------


def test_what_is_repeated_is_told_once_and_no_list_is_endless(tmp_path):
    script = b"CUDA_VISIBLE_DEVICES=1 python predict.py\n" * 99
    variables = [f"CUDA_VISIBLE_DEVICES={gpu}" for gpu in range(1, 99)]

    one_problem(save(tmp_path, FILES | {"workspace/predict.sh": script}))
    assert len(findings(save(tmp_path, Env=variables))) == 20


NAMES = {
    "a team's name cannot be the name of an image": ("Team_A.tar.gz", "team a.tar.gz"),
    "its name begins with a sign that a spreadsheet takes": ("-team.tar.gz",),
    "a file of the results has this name": (
        "refused.csv.tar.gz",
        "x.sqlite-wal.tar.gz",
    ),
    "Windows takes its name for a device": ("con.tar.gz", "lpt1.x.tar.gz"),
    "its name is that of a model": ("team_a.model.tar.gz",),
    "its name does not end in .tar.gz": ("team_a.tar", "team_a.tgz"),
}


@pytest.mark.parametrize("problem", NAMES)
def test_a_file_name_that_is_not_a_team_s_is_refused(tmp_path, problem):
    for name in NAMES[problem]:
        tag = f"{name.removesuffix('.tar.gz')}:latest"
        assert findings(save(tmp_path, name=name, tags=[tag]))[0].startswith(problem)


@pytest.mark.parametrize(
    ("layers", "options", "problem"),
    [
        # Loading it would put the team's image in the place of another one.
        refused("its tags are other:latest; expected team_a:l", tags=["other:latest"]),
        refused("its tags are team_a:v1; expected team_a:latest", tags=["team_a:v1"]),
        refused("its tags are none: it was saved by its ID; expected", tags=[]),
        refused("its tags are team_a:latest, python:3.13; expected team_a:latest",
                tags=["team_a:latest", "python:3.13"]),
        refused("its tags are team_a:latest, python:3; expected team_a:latest alone",
                more=SECOND_LIST),
        # The manifest and the configuration.
        refused("it holds 2 images, expected one", manifest=[{}, {}]),
        refused("it has no manifest.json: docker save has not", manifest={"a": 1}),
        refused("its manifest names no configuration, or no layers",
                manifest=[{"RepoTags": ["team_a:latest"], "Config": "x.json"}]),
        refused(SENSELESS, manifest=[{"RepoTags": 5, "Config": "x", "Layers": []}]),
        # Python would read it; Docker says "invalid character".
        refused(SENSELESS, more={f"{digest_of(CONFIG)}.json":
                                 CONFIG.decode().encode("utf-16-le")}),
        refused("its working directory is no path", WorkingDir="x" * 5000),
        refused("its manifest, or its configuration, has NaN", Extra=float("nan")),
        refused("its manifest, or its configuration, has repotags twice",
                more={"manifest.json": CAPITALS.encode()}),
        refused("its manifest, or its configuration, has workingdir twice",
                workingdir="/proc/self/fd/7", WorkingDir="/"),
        refused("its manifest, or its configuration, has env in the place of Env",
                env=["LD_PRELOAD=/x.so"]),
        refused("it has 126 layers, and engines take 125 at most",
                FILES, *({f"{n}": b"x"} for n in range(125))),
        # What starts, and with which settings.
        refused("it is for linux/arm64, not linux/amd64", architecture="arm64"),
        refused("it is for windows/amd64, not linux/amd64", os="windows"),
        refused("its entrypoint (python main.py) swallows the command that is run",
                Entrypoint=["python", "main.py"]),
        refused("its entrypoint (/bin/sh -c sh predict.sh) swallows the command",
                Entrypoint=["/bin/sh", "-c", "sh predict.sh"]),
        refused("there is no predict.sh in its working directory /app, but"
                " /workspace/predict.sh", WorkingDir="/app"),
        refused("there is no predict.sh in its working directory /, but",
                WorkingDir=""),
        refused("its environment sets CUDA_VISIBLE_DEVICES to 1, but the container",
                Env=["CUDA_VISIBLE_DEVICES=1"]),
        refused("its environment sets CUDA_VISIBLE_DEVICES to nothing",
                Env=["CUDA_VISIBLE_DEVICES="]),
        # The hook of the GPU runtime would load it on the host (CVE-2025-23266).
        refused("its environment sets LD_PRELOAD, which may reach the host",
                Env=["LD_PRELOAD=./x.so"]),
        refused("its environment sets LD_AUDIT, which may reach the host",
                Env=["LD_AUDIT=/usr/lib/x.so"]),
        refused("its environment has lib, /proc/self/cwd, //sys/x, /a/../dev in LD_",
                Env=["LD_LIBRARY_PATH=/usr/lib:lib:/proc/self/cwd;//sys/x:/a/../dev"]),
        # What an old runc left open there lies on the host (CVE-2024-21626).
        *(
            refused("its working directory ... is one of the kernel's",
                    FILES | DECOYS | links, WorkingDir=folder)
            for folder, links in (
                ("/proc/self/fd/7", {}), ("//proc/self/fd/7", {}), ("/x/../sys", {}),
                ("/dev/fd", {}), ("/w", {"w": "-> /proc/self/fd/7"}),
                ("/w/7", {"w": "-> x/../fd", "x": "-> proc/self/fd"}),
            )
        ),
        # A folder that an engine could not mount: it would fail at every start.
        refused("/workspace/outputs cannot be a folder: /workspace/outputs is a file",
                FILES, {"workspace/outputs": b"x"}),
        refused("/workspace/inputs cannot be a folder: /a is a file",
                FILES | {"workspace/inputs": "-> ../a/b", "a": b"x"}),
        refused("/workspace/outputs leads to /proc/self/fd, which is the kernel's",
                FILES | {"workspace/outputs": "-> /proc/self/fd"}),
        refused("/workspace/outputs is a link that leads nowhere",
                FILES | {"workspace/outputs": "-> outputs"}),
        # What a later layer removes, empties or replaces.
        refused("it has no /bin/bash", {"workspace/predict.sh": SCRIPT}),
        refused("it has no /bin/bash", FILES, {"usr/bin/.wh.bash": b""}),
        refused("it has no /bin/bash", FILES, {"usr/.wh..wh..opq": b""}),
        refused("it has no /bin/bash", FILES, {".wh.usr": b""}),
        refused("it has no /bin/bash", FILES, {"bin": "-> nowhere"}),
        refused("it has no /bin/bash", {"bin": "-> usr", "usr": "-> bin",
                                        "workspace/predict.sh": SCRIPT}),
        refused("there is no predict.sh in its working directory /workspace",
                FILES, {"workspace/.wh.predict.sh": b""}),
        refused("there is no predict.sh in its working directory /workspace",
                FILES, {"workspace/predict.sh": None}),
        refused("predict.sh is empty", FILES, {"workspace/predict.sh": b""}),
    ],
)  # fmt: skip
def test_images_that_cannot_be_run(tmp_path, layers, options, problem):
    found = one_problem(save(tmp_path, *layers, **options))

    begin, _, end = problem.partition(" ... ")
    assert found.startswith(begin)
    assert found.endswith(end)


@pytest.mark.parametrize(("settings", "problem"), OF_NO_ENGINE)
def test_a_configuration_that_no_engine_would_load(tmp_path, settings, problem):
    found = one_problem(save(tmp_path, **settings))

    assert found.startswith(f"its configuration has {problem}")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"Env": [f"V{n}=" for n in range(1001)]}, "1,001 Env, of"),
        ({"Env": [f"V{n}={KIBS}" for n in range(64)]}, "64 Env, of 66,"),
        ({"Labels": {f"{n}": "" for n in range(1001)}}, "1,001 Labels, of"),
        ({"Volumes": {f"/{n}": {} for n in range(1001)}}, "1,001 Volumes, of"),
        ({"ExposedPorts": {f"{n}/tcp": {} for n in range(1001)}}, "1,001 Exposed"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_more_than_an_engine_should_be_given(tmp_path, settings, text):
    """Docker compares each variable with all others, for each container."""
    found = one_problem(save(tmp_path, **settings))

    assert found.startswith(f"its configuration has {text}")
    assert found.endswith(" bytes, expected at most 1,000, of 65,536")


CHOSEN = "predict.sh sets CUDA_VISIBLE_DEVICES to"
SCRIPTS = {
    b"python predict.py\r\n": "predict.sh has Windows line ends",
    b"\xef\xbb\xbfpython predict.py\n": "predict.sh begins with a byte order mark",
    b"# later\n\n": "predict.sh is empty",
    b"CUDA_VISIBLE_DEVICES=1 python x.py\n": f"{CHOSEN} 1, but the container sees one",
    b"export CUDA_VISIBLE_DEVICES='2'\n": CHOSEN,
    b"python predict.py\n": "",
    b"# CUDA_VISIBLE_DEVICES=1\npython predict.py\n": "",
    b"CUDA_VISIBLE_DEVICES=0 python predict.py": "",
    b'if [ -f x ]; then . ./x; fi\npython3 -c "print(1)" > log 2>&1\n': "",
}
"""Scripts, and what is wrong with each."""


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_searched_for_what_keeps_it_from_running(script):
    found = list(script_findings(script))

    assert len(found) == bool(SCRIPTS[script])
    assert all(text.startswith(SCRIPTS[script]) for text, _ in found)


# --- Files that are no archives ---------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [
        pytest.param({".dockerenv": b""}, id="of docker"),
        pytest.param({"bin": "-> usr/bin", "boot/x": b""}, id="link"),
        pytest.param({"etc/hostname": b""}, id="podman"),
        # What used to be said: "its small files take more than 64 MB".
        pytest.param({"usr/share/a.json": b"[" + bytes(2**20)}, id="JSON"),
    ],
)
def test_a_file_system_is_called_by_its_name(tmp_path, first):
    file = write_file(tmp_path / "team_a.tar.gz", gzip.compress(tar(first | FILES), 1))

    assert one_problem(file).startswith("it is a file system (docker export)")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="it cannot be read"):
        read_archive(tmp_path / "team_a.tar.gz")


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sent")
    return {
        "docker": save(folder, compress=False).read_bytes(),
        "gzip": save(folder).read_bytes(),
        "oci": save(folder, FILES, {"x": b"y"}, layout="oci").read_bytes(),
        "layers": save(folder, pack=gzip.compress, compress=False).read_bytes(),
        "model": model_bytes(),
        "plain model": model_bytes(pack=bytes),
    }


DAMAGES = {
    "cut": lambda whole, at, _: whole[:at],
    "changed": lambda content, at, more: (
        content[:at] + more + content[at + len(more) :]
    ),
    "longer": lambda content, at, more: content[:at] + more + content[at:],
    "left out": lambda content, at, more: content[:at] + content[at + len(more) :],
    "twice": lambda content, at, _: content + content[:at],
}


@settings(max_examples=150, derandomize=True)
@given(
    kind=st.sampled_from(["docker", "gzip", "oci", "layers", "model", "plain model"]),
    damage=st.sampled_from([*DAMAGES]),
    at=st.floats(0, 1),
    more=st.binary(min_size=1, max_size=600),
)
def test_whatever_is_sent_is_read_or_refused(tmp_path, sent, kind, damage, at, more):
    """Nothing is raised but the error that says what is wrong with the file."""
    content = sent[kind]
    file = tmp_path / "team_a.tar.gz"
    file.write_bytes(DAMAGES[damage](content, round(at * len(content)), more))

    archive = read_archive(file)
    with suppress(ModelError):
        read_model(file)

    assert {problem.code for problem in archive.problems} <= {"F15"}
    assert archive.problems or archive.image


# --- The command ------------------------------------------------------------------


def check(*arguments):
    run = run_flare("check", *arguments)
    return run.returncode, run.stdout, run.stderr


def test_the_command_says_all_that_is_wrong(tmp_path):
    layer = {"workspace/predict.sh": b"source x\r\n"}
    file = save(tmp_path, layer, architecture="arm64")

    status, stdout, _ = check(file)

    assert status == 1
    wrong = [line.partition(": ")[2] for line in stdout.splitlines()]
    assert [line[:20] for line in wrong] == [
        "it is for linux/arm6",
        "it has no /bin/bash.",
        "predict.sh has Windo",
    ]
    assert [line[-5:] for line in wrong[:3]] == ["[F15]"] * 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("{archive}", "--images", "."), "--images, --ground-truth: they are for"),
        ((".", "--run", "x"), "--run, --model: they are for an image, TEAMNAME"),
        ((".", "--model", "x"), "--run, --model: they are for an image, TEAMNAME"),
        (("no.tar.gz",), "no.tar.gz: there is no such file or folder. Give"),
        (("{archive}", "--run", "no.nii.gz"), "no.nii.gz: there is no such image."),
    ],
)
def test_what_cannot_be_asked_for(tmp_path, arguments, problem):
    archive = str(save(tmp_path))

    status, _, stderr = check(*(a.replace("{archive}", archive) for a in arguments))

    assert status == 1
    assert stderr.startswith(problem)
    assert stderr.count("\n") == 1


@pytest.mark.parametrize("path", ["etc/passwd", "etc/group"])
@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_a_pipe_that_an_engine_would_open_is_refused(tmp_path, path, kind):
    """An engine waits for it with the container locked, and nothing can remove it."""
    link = (path, tarfile.SYMTYPE, "../secret/pipe")
    file = save(tmp_path, FILES, layer_of([("secret/pipe", kind, ""), link]))

    status, stdout, _ = check(file)

    assert status == 1
    assert f"its /{path} is a pipe or a device, for which an engine" in stdout


def test_an_image_of_any_name_whose_manifest_is_empty_is_refused(tmp_path):
    file = save(tmp_path, manifest=[{}])

    problems = read_archive(file, is_named=False).problems

    wrong = "its manifest names no configuration, or no layers"
    assert [problem.problem for problem in problems] == [wrong]
