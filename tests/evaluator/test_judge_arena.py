"""Slots, guards and shared memory of the arena, on CPU memory."""

import mmap
import os

import pytest
import torch

from evaluator.judge.arena import ALIGNMENT, GUARD_BYTES, Arena, HostMemory, slot_layout
from evaluator.judge.buffers import MAX_SLOTS, MIN_SLOTS, Buffers, slots_within
from evaluator.problems import find_problem, parameters
from evaluator.records.evidence import OutputError

PROBLEM = find_problem("gemm_n256_k256")
ONE_MATRIX = 256 * 256 * 2


@pytest.fixture
def arena():
    layout = slot_layout(parameters(PROBLEM), 3)
    made = Arena(HostMemory(layout.byte_count), layout)
    for slot in range(3):
        made.guard(slot)
    yield made
    made.close()


@pytest.fixture
def buffers():
    made = Buffers(PROBLEM, None, 3)
    yield made
    made.close()


def test_every_tensor_is_aligned_and_two_guards_lie_between_neighbours():
    layout = slot_layout(parameters(PROBLEM), 3)
    assert [place.name for place in layout.places] == ["A", "B", "C"]
    assert all(place.offset % ALIGNMENT == 0 for place in layout.places)
    first, second, _ = layout.places
    assert second.offset - (first.offset + first.byte_count) >= 2 * GUARD_BYTES
    assert layout.places[0].offset >= GUARD_BYTES
    assert layout.slot_bytes % ALIGNMENT == 0


def test_slots_lie_at_different_addresses(arena):
    addresses = [arena.tensor(slot, arena.layout.places[0]).data_ptr() for slot in range(3)]
    assert len(set(addresses)) == 3
    assert arena.offsets(1)["C"] - arena.offsets(0)["C"] == arena.layout.slot_bytes


@pytest.mark.parametrize(
    ("shift", "name"),
    [(-1, "C"), (ONE_MATRIX, "C"), (ONE_MATRIX + GUARD_BYTES - 1, "C"), (-GUARD_BYTES, "C")],
)
def test_a_byte_beside_a_tensor_is_noticed_and_named(arena, shift, name):
    place = arena.offsets(2)["C"] + shift
    arena.memory.tensor[place] ^= 1
    assert arena.broken_guards(2) == (name,)
    assert arena.broken_guards(0) == ()


def test_the_tensor_itself_is_no_guard(arena):
    arena.outputs(0)["C"].fill_(1.0)
    assert arena.broken_guards(0) == ()


def test_the_shared_memory_cannot_be_made_shorter_under_the_judge():
    memory = HostMemory(1 << 16)
    descriptor = memory.descriptors()[0]
    with pytest.raises(PermissionError):
        os.ftruncate(descriptor, 0)
    seen_elsewhere = mmap.mmap(descriptor, 1 << 16)
    memory.tensor[5] = 77
    assert seen_elsewhere[5] == 77
    memory.close()


def test_outputs_are_poison_before_a_call_and_inputs_differ_from_call_to_call(buffers):
    first = buffers.prepare(0).inputs["A"].clone()
    assert torch.isnan(buffers.arena.outputs(0)["C"]).all()
    assert not torch.equal(buffers.prepare(0).inputs["A"], first)


def test_inputs_reach_the_shared_memory_only_when_they_are_delivered(buffers):
    earlier = buffers.prepare(0).inputs["A"].clone()
    later = buffers.make(0)
    assert torch.equal(buffers.arena.inputs(0)["A"], earlier)
    buffers.deliver(later.slots)
    assert torch.equal(buffers.arena.inputs(0)["A"], later.inputs["A"])


def test_neighbouring_slots_are_handed_over_together_and_no_others(buffers):
    made = [buffers.make(slot) for slot in range(3)]
    buffers.arena.memory.tensor.zero_()
    buffers.deliver(range(1, 3))
    for one in made:
        delivered = torch.equal(buffers.arena.inputs(one.slot)["B"], one.inputs["B"])
        assert delivered is (one.slot > 0)
    assert buffers.broken_guards(1) == buffers.broken_guards(2) == ()


def test_what_was_taken_does_not_change_with_the_shared_memory(buffers):
    prepared = buffers.prepare(1)
    buffers.arena.outputs(1)["C"].fill_(3.0)
    taken = buffers.take(prepared.slots)
    buffers.arena.memory.tensor.zero_()
    assert bool((taken.outputs(1)["C"] == 3.0).all())
    assert buffers.mutated_inputs(prepared, taken) == ()
    assert taken.broken_guards(1) == ()
    assert buffers.mutated_inputs(prepared) == ("A", "B")


def test_inputs_changed_before_the_call_are_a_mutation_too(buffers):
    prepared = buffers.prepare(1)
    expected = buffers.expected(prepared)["C"]
    buffers.arena.inputs(1)["A"].zero_()
    assert torch.equal(buffers.expected(prepared)["C"], expected)
    assert buffers.mutated_inputs(prepared) == ("A",)


def test_a_flipped_bit_of_an_input_is_a_mutation(buffers):
    kept = buffers.prepare(1)
    assert buffers.mutated_inputs(kept) == ()
    buffers.arena.inputs(1)["B"].view(torch.int16)[3, 4] ^= 1
    assert buffers.mutated_inputs(kept) == ("B",)


def test_the_references_outputs_pass_their_own_comparison(buffers):
    kept = buffers.prepare(2)
    expected = buffers.expected(kept)
    (error,) = buffers.errors(expected, expected, buffers.fp32(kept))
    assert isinstance(error, OutputError)
    assert (error.bad_count, error.unwritten_count) == (0, 0)


def test_as_many_slots_as_the_budget_holds_within_bounds():
    one = slot_layout(parameters(PROBLEM), 1).slot_bytes
    assert slots_within(parameters(PROBLEM), 0) == MIN_SLOTS
    assert slots_within(parameters(PROBLEM), 5 * one) == 5
    assert slots_within(parameters(PROBLEM), 10_000 * one) == MAX_SLOTS


def test_guards_hold_another_byte_from_call_to_call(arena):
    """A candidate that learned the byte of one call must not know that of the next."""
    seen = set()
    for _ in range(40):
        arena.guard(0)
        _, band = arena._bands(0)[0]
        seen.add(int(band[0]))
    assert len(seen) > 5
    assert not seen & {0, 255}
