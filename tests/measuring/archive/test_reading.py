"""Archives of images, written here byte by byte: what is refused, and what doubted."""

import gzip
import hashlib
import json
import tarfile

import pytest

from flare.common.errors import InputError
from flare.measuring.archive.checks import check_script
from flare.measuring.archive.reading import read_archive
from tests.builders import run_flare
from tests.builders.archives import (
    FILES,
    SCRIPT,
    configuration,
    findings,
    save,
    sha256,
    tar,
)

SECOND_LIST = json.dumps(
    {
        "manifests": [
            {"annotations": {"io.containerd.image.name": "docker.io/library/python:3"}}
        ]
    }
).encode()


OF_RESULTS = "a file of the results has this name, or one with its ending"
OF_WINDOWS = "Windows takes its name for a device"


@pytest.mark.parametrize("layout", ["legacy", "oci"])
@pytest.mark.parametrize("compress", [True, False])
def test_an_archive_that_is_right(tmp_path, layout, compress):
    """Both layouts of docker save; a plain tar under that name is as good."""
    file = save(tmp_path, layout=layout, compress=compress)

    archive = read_archive(file)

    assert (archive.problems, archive.doubts) == ((), ())
    assert archive.team == "team_a"
    assert archive.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    config = json.dumps(configuration()).encode()
    assert archive.image == sha256(config)
    assert archive.configuration == config
    # bash, dash and the script: the sizes of the files of all layers.
    assert archive.unpacked_bytes == 1 + 1 + len(SCRIPT)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Team_A.tar.gz", "a team's name cannot be the name of an image"),
        ("team a.tar.gz", "a team's name cannot be the name of an image"),
        (
            "-team.tar.gz",
            "its name begins with a sign that a spreadsheet takes for a formula",
        ),
        ("team_a.tar", "its name does not end in .tar.gz"),
        ("refused.csv.tar.gz", OF_RESULTS),
        ("x.sqlite-wal.tar.gz", OF_RESULTS),
        ("con.tar.gz", OF_WINDOWS),
        ("lpt1.x.tar.gz", OF_WINDOWS),
        ("team_a.tgz", "its name does not end in .tar.gz"),
    ],
)
def test_names(tmp_path, name, problem):
    team = name.removesuffix(".tar.gz")

    assert problem in findings(save(tmp_path, name=name, tags=[f"{team}:latest"]))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"tags": ["other:latest"]}, "its tags are other:latest; expected team_a:"),
        ({"tags": ["team_a:v1"]}, "its tags are team_a:v1; expected team_a:latest"),
        ({"tags": []}, "its tags are none: it was saved by its ID; expected"),
        # Loading it would put the team's image in the place of another one.
        (
            {"tags": ["team_a:latest", "python:3.13-slim"]},
            "its tags are team_a:latest, python:3.13-slim; expected team_a:latest",
        ),
        (
            {"more": {"index.json": SECOND_LIST}},
            "its tags are team_a:latest, python:3; expected team_a:latest alone",
        ),
        ({"manifest": [{}, {}]}, "it holds 2 images, expected one"),
        ({"manifest": {"a": 1}}, "it has no manifest.json: docker save has not"),
        (
            {"manifest": [{"RepoTags": ["team_a:latest"], "Config": "x.json"}]},
            "its manifest names no configuration, or no layers",
        ),
        ({"architecture": "arm64"}, "it is for linux/arm64, not linux/amd64"),
        ({"os": "windows"}, "it is for windows/amd64, not linux/amd64"),
        (
            {"Entrypoint": ["python", "main.py"]},
            "its entrypoint (python main.py) swallows the command that is run",
        ),
        (
            {"Entrypoint": ["/bin/sh", "-c", "sh predict.sh"]},
            "its entrypoint (/bin/sh -c sh predict.sh) swallows the command",
        ),
        ({"WorkingDir": "/app"}, "there is no predict.sh in its working directory /app"
         ", but /workspace/predict.sh"),
        ({"WorkingDir": ""}, "there is no predict.sh in its working directory /, but"),
        (
            {"Env": ["CUDA_VISIBLE_DEVICES=1"]},
            "its environment sets CUDA_VISIBLE_DEVICES to 1, but the container sees",
        ),
        (
            {"Env": ["CUDA_VISIBLE_DEVICES="]},
            "its environment sets CUDA_VISIBLE_DEVICES to nothing",
        ),
        # The hook of the GPU runtime would load it on the host (CVE-2025-23266).
        (
            {"Env": ["LD_PRELOAD=./x.so"]},
            "its environment sets LD_PRELOAD, which may reach the host",
        ),
        (
            {"Env": ["LD_AUDIT=/usr/lib/x.so"]},
            "its environment sets LD_AUDIT, which may reach the host",
        ),
        (
            {"Env": ["LD_LIBRARY_PATH=/usr/lib:lib:/proc/self/cwd;//sys/x:/a/../dev"]},
            "its environment has lib, /proc/self/cwd, //sys/x, /a/../dev in LD_",
        ),
    ],
)  # fmt: skip
def test_images_that_cannot_be_run(tmp_path, options, problem):
    (found,) = findings(save(tmp_path, **options))

    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("options", "doubt"),
    [
        (
            {"Entrypoint": ["/start.sh"]},
            'its entrypoint (/start.sh) has to run what follows it (exec "$@")',
        ),
        (
            {"Env": ["BASH_ENV=/x"]},
            "BASH_ENV is set in its environment: bash runs that file before anything"
            " else",
        ),
        ({"Env": ["NVIDIA_VISIBLE_DEVICES=void"]}, "NVIDIA_VISIBLE_DEVICES is void: no"
         " GPU"),
    ],
)  # fmt: skip
def test_images_that_are_doubtful(tmp_path, options, doubt):
    archive = read_archive(save(tmp_path, **options))

    assert (archive.problems, archive.doubts) == ((), (doubt,))


@pytest.mark.parametrize(
    ("value", "run_with"),
    [("/a:", "/a"), (":/a:/b", "/a:/b"), ("/a::/b", "/a:/b"), (":", "")],
)
def test_empty_entries_of_the_library_path_are_left_out(tmp_path, value, run_with):
    """Honest Dockerfiles have them: `ENV LD_LIBRARY_PATH=/a:$LD_LIBRARY_PATH`."""
    archive = read_archive(save(tmp_path, Env=[f"LD_LIBRARY_PATH={value}"]))

    assert archive.problems == ()
    assert archive.doubts == (
        "LD_LIBRARY_PATH has an empty entry, the working directory; it will be run"
        f" with LD_LIBRARY_PATH={run_with}",
    )
    assert archive.overrides == (f"LD_LIBRARY_PATH={run_with}",)


def test_what_an_engine_is_told_of_an_image(tmp_path):
    archive = read_archive(
        save(tmp_path, Env=["PATH=/bin", "LD_LIBRARY_PATH=/a"], User="me:1",
             Volumes={"/data": {}, "/tmp": {}})
    )  # fmt: skip

    assert (archive.problems, archive.doubts, archive.overrides) == ((), (), ())
    assert archive.user == "me:1"
    settings = json.loads(archive.configuration)["config"]
    assert settings["Env"] == ["PATH=/bin", "LD_LIBRARY_PATH=/a"]
    assert settings["WorkingDir"] == "/workspace"


@pytest.mark.parametrize(
    ("folder", "links"),
    [
        ("/proc/self/fd/7", {}),
        ("//proc/self/fd/7", {}),
        ("/x/../sys", {}),
        ("/dev/fd", {}),
        ("/w", {"w": "-> /proc/self/fd/7"}),
        ("/w/7", {"w": "-> x/../fd", "x": "-> proc/self/fd"}),
    ],
)
def test_working_directories_of_the_kernel(tmp_path, folder, links):
    """What an old runc left open there lies on the host (CVE-2024-21626)."""
    decoys = dict.fromkeys(
        ("proc/self/fd/7/predict.sh", "sys/predict.sh", "dev/fd/predict.sh"), SCRIPT
    )

    (found,) = findings(save(tmp_path, FILES | decoys | links, WorkingDir=folder))

    assert found.startswith("its working directory ")
    assert found.endswith(" is one of the kernel's")


@pytest.mark.parametrize(
    ("layers", "problem"),
    [
        (
            [FILES, {"workspace/outputs": b"x"}],
            "/workspace/outputs cannot be a folder: /workspace/outputs is a file",
        ),
        (
            [FILES | {"workspace/inputs": "-> ../a/b", "a": b"x"}],
            "/workspace/inputs cannot be a folder: /a is a file",
        ),
        (
            [FILES | {"workspace/outputs": "-> /proc/self/fd"}],
            "/workspace/outputs leads to /proc/self/fd, which is the kernel's",
        ),
        (
            [FILES | {"workspace/outputs": "-> outputs"}],
            "/workspace/outputs is a link that leads nowhere",
        ),
    ],
)
def test_folders_that_cannot_be_mounted(tmp_path, layers, problem):
    """The engine would fail at every start."""
    assert findings(save(tmp_path, *layers)) == [problem]


@pytest.mark.parametrize(
    "layers",
    [
        [FILES | {"workspace/outputs": None}],
        [FILES | {"workspace/outputs": b"x"}, {"workspace/outputs": None}],
        [FILES | {"workspace/outputs": b"x"}, {"workspace/.wh.outputs": b""}],
        [FILES | {"workspace/outputs": "-> /proc"}, {"workspace/outputs": None}],
        [{"bin/bash": b"x", "bin/sh": b"x", "workspace": "-> app",
          "app/predict.sh": SCRIPT, "app/outputs": "-> /data/out"}],
    ],
)  # fmt: skip
def test_folders_that_can_be_mounted(tmp_path, layers):
    assert findings(save(tmp_path, *layers)) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"Entrypoint": ["/opt/nvidia/nvidia_entrypoint.sh"]},
        {"Entrypoint": ["/usr/bin/tini", "--"]},
        {"Entrypoint": None, "Env": None},
        {"Env": ["CUDA_VISIBLE_DEVICES=0", "PATH=/bin"]},
        {"WorkingDir": "workspace/"},
    ],
)
def test_images_that_are_as_good(tmp_path, settings):
    archive = read_archive(save(tmp_path, **settings))

    assert (archive.problems, archive.doubts) == ((), ())


@pytest.mark.parametrize(
    "entrypoint",
    [
        ["/bin/bash", "-c", 'exec "$@"', "--"],
        ["/bin/bash", "-c", 'source /etc/profile; exec "$0" "$@"'],
    ],
)
def test_an_entrypoint_of_a_shell_that_hands_on_what_follows(tmp_path, entrypoint):
    archive = read_archive(save(tmp_path, Entrypoint=entrypoint))

    assert archive.problems == ()
    assert "has to run what follows it" in archive.doubts[0]


def test_volumes_are_left_out_of_what_is_loaded(tmp_path):
    """The rest of the configuration stays; without any, it stays byte by byte."""
    with_volumes = read_archive(save(tmp_path, Volumes={"/model": {}, "/x": {}}))
    without = read_archive(save(tmp_path))

    assert json.loads(with_volumes.configuration) == json.loads(without.configuration)
    assert with_volumes.image == hashlib.sha256(with_volumes.configuration).hexdigest()


def test_numbers_that_only_python_reads(tmp_path):
    assert findings(save(tmp_path, Extra=float("nan"))) == [
        "its manifest, or its configuration, has NaN for a number"
    ]


def test_more_layers_than_an_engine_takes(tmp_path):
    layers = [FILES, *({f"{n}": b"x"} for n in range(125))]

    assert findings(save(tmp_path, *layers)) == [
        "it has 126 layers, and engines take 125 at most"
    ]


def test_zeros_without_end_behind_an_archive(tmp_path):
    file = save(tmp_path, compress=False)
    content = file.read_bytes()
    file.write_bytes(content + bytes(2**19))
    assert findings(file) == []
    file.write_bytes(content + bytes(2**22))

    assert findings(file) == ["there are other data behind its end"]


# --- Layers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "problem"),
    [
        ([{"workspace/predict.sh": SCRIPT}], "it has no /bin/bash"),
        # A later layer removes, empties or replaces what an earlier one has.
        ([FILES, {"usr/bin/.wh.bash": b""}], "it has no /bin/bash"),
        ([FILES, {"usr/.wh..wh..opq": b""}], "it has no /bin/bash"),
        ([FILES, {".wh.usr": b""}], "it has no /bin/bash"),
        ([FILES, {"bin": "-> nowhere"}], "it has no /bin/bash"),
        (
            [FILES, {"workspace/.wh.predict.sh": b""}],
            "there is no predict.sh in its working directory /workspace",
        ),
        (
            [FILES, {"workspace/predict.sh": None}],
            "there is no predict.sh in its working directory /workspace",
        ),
        ([FILES, {"workspace/predict.sh": b""}], "predict.sh is empty"),
    ],
)
def test_what_later_layers_do(tmp_path, layers, problem):
    assert findings(save(tmp_path, *layers)) == [problem]


@pytest.mark.parametrize(
    "layers",
    [
        [FILES, {"usr/bin/.wh.bash": b""}, {"usr/bin/bash": b"x"}],
        [{**FILES, "bin": "-> /usr/bin"}],
        [{"bin/bash": b"x", "workspace": "-> app/code", "app/code/predict.sh": SCRIPT}],
        [FILES, {"etc/.wh.bash": b""}],
    ],
)
def test_layers_that_leave_what_is_needed(tmp_path, layers):
    assert findings(save(tmp_path, *layers)) == []


def test_links_in_circles_end(tmp_path):
    layer = {"bin": "-> usr", "usr": "-> bin", "workspace/predict.sh": SCRIPT}

    assert findings(save(tmp_path, layer)) == ["it has no /bin/bash"]


def test_a_layer_that_is_stored_once_and_linked_to(tmp_path):
    layer = tar(FILES)
    config = json.dumps(configuration(layer, layer)).encode()
    entry = {
        "RepoTags": ["team_a:latest"],
        "Config": "config.json",
        "Layers": ["0/layer.tar", "b/layer.tar"],
    }
    more = {"config.json": config, "b/layer.tar": "-> ../0/layer.tar"}

    archive = read_archive(save(tmp_path, manifest=[entry], more=more))

    assert (archive.problems, archive.doubts) == ((), ())
    assert [layer.name for layer in archive.layers] == ["0/layer.tar"] * 2


# --- Files that are no archives ---------------------------------------------------


def hostile_sizes():
    """A header that claims 2^62 bytes."""
    entry = tarfile.TarInfo("big")
    entry.size = 2**62
    return entry.tobuf()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is no tar file that can be read to its end"),
        (b"hello" * 1000, "it is no tar file that can be read to its end"),
        (gzip.compress(tar(FILES))[:100], "it is no tar file that can be read to"),
        (gzip.compress(b""), "it is no tar file that can be read to its end"),
        (tar({"x": b"1"}), "it has no manifest.json: docker save has not written it"),
        (tar({"manifest.json": b"[" * 99999}), "it has no manifest.json"),
        (hostile_sizes(), "it holds more than 128 GiB, or too many files"),
    ],
    ids=["empty", "text", "cut", "gzip of nothing", "other tar", "deep", "huge"],
)
def test_files_that_are_no_archives(tmp_path, content, problem):
    file = tmp_path / "team_a.tar.gz"
    file.write_bytes(content)

    (found,) = findings(file)
    assert found.startswith(problem)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="it cannot be read"):
        read_archive(tmp_path / "team_a.tar.gz")


def test_keys_that_two_readers_would_read_differently(tmp_path):
    """Docker's JSON ignores capitals and takes the last: it would run another image."""
    config = json.dumps(configuration()).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    text = (
        f'[{{"Config": "{name}", "RepoTags": ["team_a:latest"],'
        ' "Layers": ["0/layer.tar"], "repotags": ["python:3"]}]'
    )
    more = {"manifest.json": text.encode()}

    assert findings(save(tmp_path, more=more)) == [
        "its manifest, or its configuration, has repotags twice"
    ]


def test_a_key_in_other_capitals_is_the_key_to_an_engine(tmp_path):
    assert findings(save(tmp_path, workingdir="/proc/self/fd/7", WorkingDir="/")) == [
        "its manifest, or its configuration, has workingdir twice"
    ]
    assert findings(save(tmp_path, env=["LD_PRELOAD=/x.so"])) == [
        "its manifest, or its configuration, has env in the place of Env"
    ]


def test_labels_may_differ_in_capitals(tmp_path):
    """They are free texts, and base images have one and the other."""
    labels = {"maintainer": "a", "Maintainer": "b"}

    assert findings(save(tmp_path, Labels=labels)) == []


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"Entrypoint": 5}, "its manifest, or its configuration, makes no sense"),
        ({"Env": 5}, "its manifest, or its configuration, makes no sense"),
        ({"WorkingDir": "x" * 5000}, "its working directory is no path"),
    ],
)
def test_configurations_that_make_no_sense(tmp_path, settings, problem):
    assert findings(save(tmp_path, **settings)) == [problem]


def test_a_manifest_that_makes_no_sense(tmp_path):
    manifest = [{"RepoTags": 5, "Config": "x", "Layers": []}]

    assert findings(save(tmp_path, manifest=manifest)) == [
        "its manifest, or its configuration, makes no sense"
    ]


def test_two_files_of_one_name(tmp_path):
    """Which of them counts depends on who reads the archive."""
    first, second = (tar({"manifest.json": text}) for text in (b"[]", b"[1]"))
    file = tmp_path / "team_a.tar.gz"
    file.write_bytes(first[:1024] + second)

    assert findings(file) == ["it holds two files manifest.json"]


def test_headers_of_any_length_are_not_read_into_memory(tmp_path):
    """A header of 3 GiB would be read whole, and compresses to a few megabytes."""
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = tarfile.XHDTYPE, 3 * 2**30
    file = tmp_path / "team_a.tar.gz"
    file.write_bytes(gzip.compress(entry.tobuf() + bytes(2**16)))

    assert findings(file) == ["a name in it is too long"]


def test_small_files_by_the_thousand_are_not_kept(tmp_path):
    more = {f"{n}.json": b"[" + bytes(2**22 - 1) for n in range(17)}

    assert findings(save(tmp_path, more=more)) == [
        "its small files take more than 64 MB"
    ]


@pytest.mark.slow
def test_many_removed_files_take_no_time(tmp_path):
    """Twenty thousand links, and as many removals, are gone through once."""
    links = {f"d{n}/l": "-> x" for n in range(20_000)}
    removed = {f"e{n}/.wh.l": b"" for n in range(20_000)}

    assert findings(save(tmp_path, FILES | links, removed)) == []


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
    file = tmp_path / "team_a.tar.gz"
    file.write_bytes(gzip.compress(tar(first | FILES), 1))

    assert findings(file) == [
        "it is a file system (docker export), not an image: docker save"
    ]


# --- predict.sh -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (b"python predict.py\r\n", "predict.sh has Windows line ends"),
        (b"\xef\xbb\xbfpython predict.py\n", "predict.sh begins with a byte order"),
        (b"# later\n\n", "predict.sh is empty"),
        (
            b"CUDA_VISIBLE_DEVICES=1 python x.py\n",
            "predict.sh sets CUDA_VISIBLE_DEVICES to 1, but the container sees one GPU",
        ),
        (b"export CUDA_VISIBLE_DEVICES='2'\n", "predict.sh sets CUDA_VISIBLE_DEVICES"),
    ],
)
def test_scripts_that_cannot_work(script, problem):
    ((found, _),), _ = check_script(script, is_bash=False)

    assert found.startswith(problem)


@pytest.mark.parametrize(
    "script",
    [
        b"python predict.py\n",
        b"# CUDA_VISIBLE_DEVICES=1\npython predict.py\n",
        b"CUDA_VISIBLE_DEVICES=0 python predict.py",
        b'if [ -f x ]; then . ./env.sh; fi\npython3 -c "print(1)" > log 2>&1\n',
    ],
)
def test_scripts_that_are_right(script):
    assert check_script(script, is_bash=False) == ([], [])


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (b"source activate\n", "source"),
        (b"if [[ -f x ]]; then echo; fi\n", "[["),
        (b"function f { echo; }\n", "function"),
        (b"files=(a b)\n", "an array"),
        (b"cat <<< text\n", "<<<"),
        (b"python x.py &> log\n", "&>"),
        (b"diff <(ls a) <(ls b)\n", "<("),
        (b"pushd x\n", "pushd"),
    ],
)
def test_bash_words_are_doubtful_unless_sh_is_bash(script, words):
    problems, (doubt,) = check_script(script, is_bash=False)

    assert problems == []
    assert doubt.startswith(f"predict.sh is run by sh, which does not know {words}")
    assert check_script(script, is_bash=True) == ([], [])


def test_sh_that_is_bash(tmp_path):
    layer = FILES | {
        "usr/bin/sh": "-> bash",
        "workspace/predict.sh": b"source activate\n",
    }

    assert read_archive(save(tmp_path, layer)).doubts == ()


# --- The command ------------------------------------------------------------------


def check(*arguments):
    run = run_flare("check", *arguments)
    return run.returncode, run.stdout, run.stderr


def test_the_command_says_all_that_is_wrong(tmp_path):
    layer = {"workspace/predict.sh": b"source x\r\n"}
    file = save(tmp_path, layer, architecture="arm64")

    status, stdout, _ = check(file)

    assert status == 1
    assert stdout == (
        "team_a.tar.gz: it is for linux/arm64, not linux/amd64. Build it with"
        " --platform linux/amd64. [F15]\n"
        "team_a.tar.gz: it has no /bin/bash. Install bash in the image. [F15]\n"
        "team_a.tar.gz: predict.sh has Windows line ends. Run dos2unix predict.sh, and"
        " build the image again. [F15]\n"
        "team_a.tar.gz: doubtful: predict.sh is run by sh, which does not know source"
        " (write: .)\n"
    )


def test_the_command_passes_an_archive_that_is_right(tmp_path):
    status, stdout, stderr = check(save(tmp_path))

    assert (status, stderr) == (0, "")
    assert stdout.startswith("team_a.tar.gz: image ")
    assert stdout.endswith(" of team team_a, 0 MB unpacked, can be loaded.\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("{archive}", "--images", "."), "--images, --ground-truth: they are for"),
        ((".", "--run", "x"), "--run: only an image can be run, TEAMNAME.tar.gz."),
        (("no.tar.gz",), "no.tar.gz: there is no such file or folder."),
        (("{archive}", "--run", "no.nii.gz"), "no.nii.gz: there is no such image."),
    ],
)
def test_what_cannot_be_asked_for(tmp_path, arguments, problem):
    archive = str(save(tmp_path))

    status, _, stderr = check(*(a.replace("{archive}", archive) for a in arguments))

    assert status == 1
    assert stderr.startswith(problem)
    assert stderr.count("\n") == 1
