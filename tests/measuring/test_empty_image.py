"""Our own image, and the volume that one of its programs holds."""

import io
import platform
import subprocess
import tarfile

import pytest

from flare.common.errors import EngineError
from flare.measuring.image import HOLD, NOTHING, image_tar, output_volume

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="the programs are for Linux on x86-64",
)


@pytest.fixture
def programs(tmp_path):
    with tarfile.open(fileobj=io.BytesIO(image_tar())) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path)
    return tmp_path


def test_one_program_ends_at_once_and_the_other_one_waits_until_it_is_killed(programs):
    subprocess.run([f"{programs}{NOTHING[0]}"], check=True, timeout=10)
    process = subprocess.Popen([f"{programs}{HOLD[0]}"])

    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)

    process.kill()
    assert process.wait(10) == -9


def volume_of(engine, size):
    return output_volume(engine, "empty", "flare.measure=key", size)


def test_a_volume_goes_even_if_its_container_cannot_be_made(make_engine):
    engine = make_engine(
        "if words[0] == 'volume' and words[1] == 'create': print('v')",
        "if words[0] == 'run': sys.exit('no')",
        "if words[0] == 'ps': print('c')",
    )

    with pytest.raises(EngineError), volume_of(engine, size="1g"):
        pass

    calls = make_engine.state()["calls"]
    assert [call[:2] for call in calls] == [
        ["volume", "create"],
        ["run", "--detach"],
        ["ps", "--all"],  # it may have been made, and not started
        ["rm", "--force"],
        ["volume", "rm"],
    ]
    assert {"label=flare.measure=key", "status=created"} <= {*calls[2]}
    assert calls[3][-1] == "c"


def test_the_volume_of_an_output(make_engine):
    engine = make_engine(
        "if words[0] == 'volume' and words[1] == 'create': print('v')",
        "if words[0] == 'run': print('c')",
    )

    with volume_of(engine, size="2g") as found:
        assert (found.name, found.holder) == ("v", "c")

    create, hold, *rest = make_engine.state()["calls"]
    assert create[-1] == "o=size=2g,nr_inodes=10000,mode=0777,nosuid,nodev"
    assert "flare.measure=key" in create
    assert "flare.measure=key" in hold
    assert [call[0] for call in rest] == ["rm", "volume"]
