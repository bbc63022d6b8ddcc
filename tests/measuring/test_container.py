"""The command that makes a container; what it does is tested with a real engine."""

import pytest

from flare.measuring.container import opened_limits
from flare.measuring.engines.flags import create_words
from flare.measuring.engines.interface import Container
from flare.measuring.sampling import DeviceError
from flare.results.limits import Limits


def command(environment=(), **limits):
    """What makes a container of FLARE's contract."""
    container = Container(
        image="IMAGE",
        label="flare.measure=key",
        limits=Limits(**limits),
        reads=(("/in", "/workspace/inputs"),),
        writes=("volume", "/workspace/outputs"),
        environment=environment,
    )
    return " ".join(create_words(container))


def test_a_gpu_that_is_named_by_nothing_is_refused():
    """As of a variable that is not set: nobody wants to measure without one then."""
    limits = Limits(gpu="")

    with pytest.raises(DeviceError, match="no index or UUID"), opened_limits(limits):
        pass


def test_a_container_is_created_with_all_walls():
    assert command(timeout_s=5) == (
        "create --label flare.measure=key --env NVIDIA_VISIBLE_DEVICES=void"
        " --network none --memory 28g --memory-swap 28g --shm-size 28g"
        " --pids-limit 4096 --cap-drop ALL --cap-add CHOWN --cap-add DAC_OVERRIDE"
        " --cap-add FOWNER --cap-add SETGID --cap-add SETUID"
        " --security-opt no-new-privileges --ulimit core=0:0 --no-healthcheck"
        " --log-driver json-file --log-opt max-size=10m"
        " --volume /in:/workspace/inputs/:ro --volume volume:/workspace/outputs/ IMAGE"
    )


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"gpu": "GPU-1"}, '--gpus "device=GPU-1"'),
        ({"cpus": "1-3"}, "--cpuset-cpus 1-3"),
        ({"runtime": "runsc"}, "--runtime runsc"),
        ({"environment": ["LD_LIBRARY_PATH=/lib"]}, "--env LD_LIBRARY_PATH=/lib "),
    ],
)
def test_an_option_adds_its_words_to_the_command(chosen, words):
    assert words in command(**chosen)
    assert words not in command()
