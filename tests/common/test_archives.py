"""Tars of our own are unpacked by each Python that we run with."""

import io
import tarfile

import pytest

from flare.common.archives import unpack_own


def tar_of(name):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    content.seek(0)
    return content


@pytest.mark.filterwarnings("ignore:Python 3.14 will:DeprecationWarning")
@pytest.mark.parametrize("is_old", [False, True])
def test_with_and_without_filters(tmp_path, monkeypatch, is_old):
    """Python 3.11.2, which is Debian 12's, has none."""
    if is_old:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)

    with tarfile.open(fileobj=tar_of("folder/file")) as archive:
        unpack_own(archive, tmp_path)

    assert (tmp_path / "folder" / "file").read_bytes() == b"x"


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="this Python has none")
def test_what_leads_elsewhere_is_refused(tmp_path):
    with (
        tarfile.open(fileobj=tar_of("../file")) as archive,
        pytest.raises(tarfile.OutsideDestinationError),
    ):
        unpack_own(archive, tmp_path / "target")

    assert not (tmp_path / "file").exists()
