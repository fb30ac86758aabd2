"""Stand-in tensors: views are numbers, scratch is recorded, everything else is refused in words."""

import operator
import sys

import pytest

from evaluator.triton.tracer.tensors import (
    DTYPES,
    FIRST_PLACE,
    Memory,
    Refused,
    Size,
    Tensor,
    strides_of,
)
from evaluator.triton.tracer.torch_names import Properties, install


@pytest.fixture
def recorded():
    return []


@pytest.fixture
def memory(recorded):
    return Memory(record=recorded.append)


@pytest.fixture
def tensor(memory):
    """[4, 6, 8], bf16, the second storage."""
    memory.add("parameter", 64)
    shape = Size((4, 6, 8))
    storage = memory.add("parameter", 384)
    return Tensor(memory, storage, DTYPES["bfloat16"], shape, strides_of(shape))


@pytest.fixture
def torch(memory, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.cuda", None)
    device = Properties(name="NVIDIA H200", major=9, minor=0, multi_processor_count=132)
    return install(memory, device)


def numbers(tensor):
    return tuple(tensor.shape), tensor.strides, tensor.offset


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (lambda t: t[1], ((6, 8), (8, 1), 48)),
        (lambda t: t[-1, 2:], ((4, 8), (8, 1), 160)),
        (lambda t: t[..., 3], ((4, 6), (48, 8), 3)),
        (lambda t: t[:, None, ::2], ((4, 1, 3, 8), (48, 1, 16, 1), 0)),
        (lambda t: t[2:, 1:3, 4:], ((2, 2, 4), (48, 8, 1), 108)),
        (lambda t: t.view(24, -1), ((24, 8), (8, 1), 0)),
        (lambda t: t.reshape((2, 96)), ((2, 96), (96, 1), 0)),
        (lambda t: t.flatten(1), ((4, 48), (48, 1), 0)),
        (lambda t: t.transpose(0, 2), ((8, 6, 4), (1, 8, 48), 0)),
        (lambda t: t[0].t(), ((8, 6), (1, 8), 0)),
        (lambda t: t[1].T, ((8, 6), (1, 8), 48)),
        (lambda t: t.mT, ((4, 8, 6), (48, 1, 8), 0)),
        (lambda t: t.permute(2, 0, 1), ((8, 4, 6), (1, 48, 8), 0)),
        (lambda t: t.unsqueeze(-1).squeeze(), ((4, 6, 8), (48, 8, 1), 0)),
        (lambda t: t[0:1].expand(5, -1, -1), ((5, 6, 8), (0, 8, 1), 0)),
        (lambda t: t.narrow(1, 2, 3), ((4, 3, 8), (48, 8, 1), 16)),
    ],
)
def test_a_view_has_torchs_shape_strides_and_offset(tensor, view, expected):
    assert numbers(view(tensor)) == expected


def test_a_tensor_answers_what_launch_code_asks(tensor):
    assert (tensor.size(), tensor.size(-1), tensor.stride(0)) == ((4, 6, 8), 8, 48)
    assert (tensor.dim(), tensor.ndim, tensor.numel(), tensor.nbytes) == (3, 3, 192, 384)
    assert (str(tensor.dtype), tensor.element_size()) == ("torch.bfloat16", 2)
    assert str(tensor.device) == "cuda:0"
    assert tensor.is_contiguous()
    assert tensor.contiguous() is tensor
    assert not tensor.T.is_contiguous()
    assert len(tensor) == 4


def test_an_address_leads_back_to_its_tensor_and_byte(memory, tensor):
    storage, offset = memory.place(tensor[1, 2].data_ptr())
    assert (storage.kind, storage.number, offset) == ("parameter", 1, (48 + 16) * 2)
    assert memory.place(FIRST_PLACE - 1) is None


@pytest.mark.parametrize(
    ("act", "named"),
    [
        (lambda t: t + 1, "__add__"),
        (lambda t: 2 * t, "__rmul__"),
        (lambda t: t @ t, "__matmul__"),
        (lambda t: -t, "__neg__"),
        (lambda t: bool(t[0]), "__bool__"),
        (lambda t: float(t), "__float__"),
        (lambda t: list(t), "__iter__"),
        (lambda t: t > 0, "__gt__"),
        (lambda t: operator.setitem(t, 0, 1), "__setitem__"),
        (lambda t: t.sum(), "tensor.sum"),
        (lambda t: t.item(), "tensor.item"),
        (lambda t: t.to("cpu"), "tensor.to"),
        (lambda t: t.T.contiguous(), "would copy"),
        (lambda t: t.fill_(1), "only zeros"),
        (lambda t: t[t], "index"),
    ],
)
def test_whatever_needs_values_is_refused_in_words(tensor, act, named):
    with pytest.raises(Refused, match=named):
        act(tensor)


def test_asking_whether_a_tensor_has_something_is_no_error(tensor):
    assert not hasattr(tensor, "tma_desc_cpu_ptr")


def test_scratch_is_its_own_storage_and_zeros_are_recorded_as_clearing(torch, memory, recorded):
    first = torch.empty(3, 5, dtype=torch.float16, device="cuda")
    second = torch.zeros((2, 2))
    third = torch.zeros_like(second, dtype=torch.int64)
    assert [one.byte_count for one in memory.storages] == [30, 16, 32]
    assert (first.shape, second.dtype, third.dtype) == ((3, 5), torch.float32, torch.int64)
    assert recorded == [
        {"kind": "clear", "storage": "scratch", "number": 1, "offset": 0, "byte_count": 16},
        {"kind": "clear", "storage": "scratch", "number": 2, "offset": 0, "byte_count": 32},
    ]


def test_too_much_scratch_is_refused_with_the_limit(torch):
    with pytest.raises(Refused, match="at most 34359738368"):
        torch.empty(1 << 34, dtype=torch.float32)


@pytest.mark.parametrize("name", ["matmul", "nn", "compile", "randn", "ops"])
def test_the_stand_in_says_what_torch_offers_here(torch, name):
    with pytest.raises(Refused, match=rf"torch\.{name}: no library does the work here"):
        getattr(torch, name)


def test_the_stand_in_knows_the_device_that_is_built_for(torch):
    assert torch.cuda.get_device_properties("cuda").multi_processor_count == 132
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(0) as device:
        assert (device.type, device.index) == ("cuda", 0)
    with pytest.raises(Refused, match=r"torch\.cuda\.synchronize"):
        _ = torch.cuda.synchronize
