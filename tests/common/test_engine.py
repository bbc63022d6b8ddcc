"""What we make of an engine's answers, with a program that stands in for it."""

import json
import os

import pytest

from flare.common.errors import EngineError


def test_what_an_engine_is(make_engine, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    info = {
        "ServerVersion": "20.10.24",
        "SecurityOptions": ["name=seccomp,profile=default"],
        "Runtimes": {"runc": {}, "crun": {}},
        "DefaultRuntime": "runc",
        "MemoryLimit": True,
        "SwapLimit": False,
        "PidsLimit": True,
    }
    parts = {"Components": [{"Name": "containerd", "Version": "1.6.20"},
                            {"Name": "runc", "Version": "1.1.5"}]}  # fmt: skip
    engine = make_engine(
        f"if words[0] == 'info': print({json.dumps(info)!r})",
        f"if words[0] == 'version': print({json.dumps(parts)!r})",
    )

    found = engine.describe()

    assert (found["version"], found["containerd"], found["runc"]) == (
        *("20.10.24", "1.6.20", "1.1.5"),
    )
    assert found["security"] == ["name=seccomp,profile=default"]
    assert found["runtimes"] == ["crun", "runc"]
    assert found["limits"] == ["swap"]
    assert found["nvidia_toolkit"] == ""


@pytest.mark.parametrize("program", ["nvidia-ctk", "nvidia-container-cli"])
def test_the_version_of_the_toolkit(make_engine, tmp_path, monkeypatch, program):
    engine = make_engine('print(\'{"ServerVersion": "1"}\')')
    file = tmp_path / "bin" / program
    file.parent.mkdir()
    file.write_text("#!/bin/sh\necho 'NVIDIA Container Toolkit CLI version 1.17.4'\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{file.parent}:{os.environ['PATH']}")

    assert engine.describe()["nvidia_toolkit"] == "1.17.4"


def test_an_engine_that_does_not_answer(make_engine):
    engine = make_engine("time.sleep(600)")

    with pytest.raises(EngineError) as caught:
        engine.call("ps", timeout_s=0.3)

    assert str(caught.value).endswith(
        "docker ps: no answer for 0 s. Restart Docker, and go on. [H05]"
    )


def test_a_container_that_cannot_be_removed(make_engine):
    engine = make_engine("if words[0] == 'ps': print('0123456789abcdef')")

    with pytest.raises(EngineError, match="container 0123456789ab cannot be removed"):
        engine.remove_container("0123456789abcdef")
