"""The volume of an output, with a program that stands in for the engine."""

import pytest

from flare.common.errors import EngineError
from flare.measuring.volumes import output_volume


def volume_of(engine, size):
    return output_volume(engine, empty="empty", key="key", size=size, files=10)


def test_a_volume_goes_even_if_its_container_cannot_be_made(make_engine):
    engine = make_engine(
        "if words[0] == 'volume' and words[1] == 'create': print('v')",
        "if words[0] == 'create': sys.exit('no')",
    )

    with pytest.raises(EngineError), volume_of(engine, size="1g"):
        pass

    calls = [call[:2] for call in make_engine.state()["calls"]]
    assert calls == [["volume", "create"], ["create", "--label"], ["volume", "rm"]]


def test_the_volume_of_an_output(make_engine):
    engine = make_engine(
        "if words[0] == 'volume' and words[1] == 'create': print('v')",
        "if words[0] == 'create': print('c')",
    )

    with volume_of(engine, size="2g") as found:
        assert (found.name, found.holder) == ("v", "c")

    create, hold, start, *rest = make_engine.state()["calls"]
    assert create[-1] == "o=size=2g,nr_inodes=10,mode=0777,nosuid,nodev"
    assert "flare.measure=key" in create
    assert "flare.measure=key" in hold
    assert start == ["start", "c"]
    assert [call[0] for call in rest] == ["rm", "ps", "volume"]
