"""How a computer is divided: all expected numbers were worked out by hand."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from flare.common.errors import InputError
from flare.measuring.lane import LaneKind, _cores, check_alike, divide, look_at_computer
from flare.measuring.options import LaneLimits, MeasureOptions
from flare.measuring.sampling import DeviceError
from flare.results.errors import MeasurementError
from flare.results.limits import Limits
from tests.builders import error_of, write_file
from tests.builders.lanes import device, lane, place

SINGLES = [(n,) for n in range(9)]
"""Nine cores of one processor each."""

PAIRS = [(n, n + 8) for n in range(8)]
"""Eight cores of two processors each: 0 and 8, 1 and 9, and so on."""


def divided(where, lanes=1, **limits):
    return divide(where, Limits(**limits), lanes)


@pytest.mark.parametrize(
    ("cores", "wanted", "expected", "spare"),
    [
        ([(0,), (1,)], {"lanes": 2}, ["0", "1"], ()),
        ([(0,), (1,), (2,)], {"lanes": 2}, ["1", "2"], (0,)),
        (SINGLES, {"lanes": 4}, ["1,2", "3,4", "5,6", "7,8"], (0,)),
        (SINGLES, {"lanes": 3}, ["1,2", "3,4", "5,6"], (0, 7, 8)),
        (SINGLES, {"lanes": 2, "cpus": ""}, ["0,1,2,3", "4,5,6,7"], (8,)),
        (SINGLES, {"lanes": 2, "cpus": "4-7"}, ["4,5", "6,7"], (0, 1, 2, 3, 8)),
        (PAIRS, {"lanes": 2, "cpus": ""}, ["0,1,2,3,8,9,10,11", "4,5,6,7,12,13,14,15"],
         ()),
        # Of core 0 one half is left to the engine; 15 by 4 are 3, but 2 are whole.
        (PAIRS, {"lanes": 4}, ["1,9", "2,10", "3,11", "4,12"], (0, 5, 6, 7, 8, 13, 14,
                                                             15)),
        # Two lanes on one core: there is no other way.
        ([(0, 1)], {"lanes": 2}, ["0", "1"], ()),
    ],
)  # fmt: skip
def test_processors_are_divided_into_equal_parts(cores, wanted, expected, spare):
    lanes = divided(place(cores), **wanted)

    assert [each.limits.cpus for each in lanes] == expected
    assert {each.spare for each in lanes} == {spare}


def test_each_gpu_has_a_lane():
    where = place(SINGLES, gpus=[device(1), device(2)])

    one, two = divided(where, 2, gpu="0,1", timeout_s=5)

    assert (one.limits.gpu, two.limits.gpu) == ("GPU-1", "GPU-2")
    assert (one.number, two.number, one.of) == (0, 1, 2)
    assert one.limits.timeout_s == 5
    assert one.kind == two.kind
    assert two.kind == LaneKind(
        gpu="NVIDIA A100", processor="CPU X", cpus="4 processors", memory="28g", lanes=2
    )
    assert two.record() == {
        "host": "here",
        "number": 1,
        "lanes": 2,
        "gpu": "GPU-2",
        "cpus": "5,6,7,8",
        "memory": "28g",
    }


def test_a_gpu_that_is_named_twice_is_refused(monkeypatch):
    gpu = SimpleNamespace(device=device(1))
    monkeypatch.setattr("flare.measuring.lane.open_gpu", lambda _: nullcontext(gpu))

    with pytest.raises(DeviceError, match="GPU 0 was named twice"):
        look_at_computer(["0", "0"], SimpleNamespace(describe=dict))


@pytest.mark.parametrize(
    ("memory_gib", "lanes", "given", "expected"),
    [
        (64, 2, "", "28g"),
        (63, 4, "", "16128m"),  # 15.75 GiB, which is a multiple of 256 MiB
        (32, 4, "", "8g"),
        (16, 1, "", "28g"),
        (64, 4, "16g", "16g"),
        (8, 1, "28g", "28g"),
    ],
)
def test_memory_is_divided_unless_it_is_given(memory_gib, lanes, given, expected):
    found = divided(place(SINGLES, memory_gib=memory_gib), lanes, memory=given)

    assert {each.limits.memory for each in found} == {expected}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"lanes": 3, "memory": "28g"}, "64.0 GiB. Give at most 21845m. [H01]"),
        ({"lanes": 3, "cpus": "1-2"}, "and there are 2. Use fewer lanes. [H01]"),
        ({"lanes": 2, "cpus": "7-10"}, "--cpus: here has no processor 9, 10. "),
    ],
    ids=["memory", "too few", "unknown"],
)
def test_what_a_computer_has_not_is_refused(wanted, message):
    assert message in str(error_of(InputError, divided, place(SINGLES), **wanted))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"gpu": device(2, "NVIDIA H100")}, "gpu NVIDIA H100, not NVIDIA A100"),
        ({"gpu": None}, "gpu none, not NVIDIA A100"),
        ({"processor": "CPU Y"}, "processor CPU Y, not CPU X"),
        ({"cpus": (4, 5)}, "cpus 2 processors, not 1 processor"),
        ({"memory": "7g"}, "memory 7g, not 14g"),
        ({"of": 4}, "lanes 4, not 2"),
    ],
)
def test_unlike_lanes_are_refused(other, message):
    known = {"gpu": device(2), "host": "there"} | other
    alike = {"gpu": device(2), "host": "there", "cpus": (5,)}
    check_alike([lane(gpu=device(1)), lane(1, **alike)])

    with pytest.raises(MeasurementError) as caught:
        check_alike([lane(gpu=device(1)), lane(1, **known)])

    start = f"there, lane 1: it has {message} as here, lane 0. "
    assert str(caught.value).startswith(start)


def test_processors_of_a_core_stay_together(tmp_path):
    for number, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        folder = tmp_path / f"cpu{number}" / "topology"
        write_file(folder / "thread_siblings_list", f"{siblings}\n")

    assert _cores([0, 1, 2, 3], tmp_path) == ((0, 2), (1, 3))
    assert _cores([1, 2, 7], tmp_path) == ((1,), (2,), (7,))


@pytest.mark.parametrize(("gpu", "lanes"), [("0,1", 1), ("0", 2)])
def test_lanes_are_not_counted_where_gpus_are_named(gpu, lanes):
    with pytest.raises(InputError, match="each GPU has a lane"):
        MeasureOptions(
            archives=Path(),
            images=Path(),
            output=Path(),
            limits=LaneLimits(gpu=gpu),
            lanes=lanes,
        )
