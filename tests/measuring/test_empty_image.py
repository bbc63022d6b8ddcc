"""The two tiny programs, run on this computer."""

import io
import platform
import subprocess
import tarfile

import pytest

from flare.common.archives import unpack_own
from flare.measuring.empty_image import HOLD, NOTHING, image_tar

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="the programs are for Linux on x86-64",
)


@pytest.fixture
def programs(tmp_path):
    with tarfile.open(fileobj=io.BytesIO(image_tar())) as archive:
        unpack_own(archive, tmp_path)
    return tmp_path


def test_one_program_ends_at_once(programs):
    run = subprocess.run([f"{programs}{NOTHING[0]}"], check=False, timeout=10)

    assert run.returncode == 0


def test_the_other_one_waits_until_it_is_killed(programs):
    process = subprocess.Popen([f"{programs}{HOLD[0]}"])

    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)

    process.kill()
    assert process.wait(10) == -9


def test_the_image_is_the_same_each_time():
    assert image_tar() == image_tar()
