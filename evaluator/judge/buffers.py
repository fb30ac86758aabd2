"""A problem's tensors in an arena: prepared before a call, examined after it.

Slots are made ready in the judge's own memory and handed over in one copy: what a host does to the
arena meanwhile changes neither the reference nor what the inputs are compared with afterwards.
What a call left is taken back in one copy too, before it is looked at.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from evaluator.comparison import compare, poison
from evaluator.host.binding import Value
from evaluator.host.cuda import Driver
from evaluator.judge.arena import (
    Arena,
    DeviceMemory,
    HostMemory,
    Memory,
    PrivateMemory,
    slot_layout,
)
from evaluator.problems.exact import fp32_reference
from evaluator.problems.prototypes import Parameter, parameters
from evaluator.problems.tensors import Tensors, make_inputs, reference, refresh_inputs
from evaluator.records.evidence import OutputError
from evaluator.records.problem import Problem

SEED_BITS = 62
MIN_SLOTS, MAX_SLOTS = 3, 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a slot is given: the inputs in memory that no host can reach, until it is made anew."""

    slot: int
    inputs: Tensors

    @property
    def slots(self) -> range:
        return range(self.slot, self.slot + 1)


class Buffers:
    """Slots of one problem on one device. `driver` is None on CPU memory."""

    def __init__(self, problem: Problem, driver: Driver | None, slot_count: int) -> None:
        self.problem, self._driver = problem, driver
        self.device = "cuda" if driver else "cpu"
        self._parameters = parameters(problem)
        layout = slot_layout(self._parameters, slot_count)
        memory: Memory = (
            DeviceMemory(driver, layout.byte_count) if driver else HostMemory(layout.byte_count)
        )
        self.arena = Arena(memory, layout)
        self._reference = reference(problem)
        self._taken: Arena | None = None
        try:
            self._given = self._private_arena()
            self._latest = make_inputs(problem, secrets.randbits(SEED_BITS), self.device)
        except BaseException:
            self.arena.close()
            raise

    @property
    def slot_count(self) -> int:
        return self.arena.layout.slot_count

    def _private_arena(self) -> Arena:
        layout = self.arena.layout
        return Arena(PrivateMemory(layout.byte_count, self.device), layout)

    def prepare(self, slot: int) -> Prepared:
        """Fresh inputs from a secret seed in the slot, poisoned outputs, fresh guards."""
        prepared = self.make(slot)
        self.deliver(prepared.slots)
        return prepared

    def make(self, slot: int) -> Prepared:
        """The same, but no host sees any of it before `deliver`."""
        refresh_inputs(self.problem, secrets.randbits(SEED_BITS), self._latest)
        return self.give(self._latest, slot)

    def give(self, inputs: Tensors, slot: int) -> Prepared:
        """These inputs for a slot, its outputs poisoned, its guards fresh; to be delivered."""
        places = self._given.inputs(slot)
        for name, tensor in places.items():
            tensor.copy_(inputs[name])
        for output in self._given.outputs(slot).values():
            poison(output)
        self._given.guard(slot)
        scalars = {name: value.clone() for name, value in inputs.items() if name not in places}
        return Prepared(slot=slot, inputs={**places, **scalars})

    def deliver(self, slots: range) -> None:
        """One copy, so that its time depends on the bytes alone."""
        self.arena.copy_from(self._given, slots)

    def take(self, slots: range) -> Arena:
        """The slots as they are at this moment, in memory that no host can reach; one copy."""
        if self._taken is None:
            self._taken = self._private_arena()
        self._taken.copy_from(self.arena, slots)
        return self._taken

    def arguments(self, prepared: Prepared) -> list[Value]:
        """Offsets of tensors in the arena and values of scalars, in call order."""
        offsets = self.arena.offsets(prepared.slot)
        return [
            prepared.inputs[item.name].item() if item.is_scalar else offsets[item.name]
            for item in self._parameters
        ]

    def expected(self, prepared: Prepared) -> Tensors:
        """The reference's outputs, in memory that no host can reach."""
        return self._reference(**prepared.inputs)

    def outputs(self, slot: int) -> Tensors:
        """A private copy of the outputs as they are at this moment."""
        return {name: tensor.clone() for name, tensor in self.arena.outputs(slot).items()}

    def errors(
        self, actual: Tensors, expected: Tensors, fp32: Mapping[str, torch.Tensor] | None = None
    ) -> tuple[OutputError, ...]:
        tolerance, exact = self.problem.tolerance, fp32 or {}
        return tuple(
            compare(name, actual[name], expected[name], tolerance, exact.get(name))
            for name in self.problem.definition.outputs
        )

    def fp32(self, prepared: Prepared) -> Tensors:
        return fp32_reference(self.problem, prepared.inputs)

    def mutated_inputs(self, prepared: Prepared, seen: Arena | None = None) -> tuple[str, ...]:
        """Names of inputs whose bits, in `seen` or the shared arena, are not those given."""
        now = (seen or self.arena).inputs(prepared.slot)
        return tuple(name for name in now if not _same_bits(now[name], prepared.inputs[name]))

    def broken_guards(self, slot: int) -> tuple[str, ...]:
        return self.arena.broken_guards(slot)

    def synchronise(self) -> None:
        if self._driver:
            torch.cuda.synchronize()

    def close(self) -> None:
        self.synchronise()
        self.arena.close()


def slots_within(items: Sequence[Parameter], budget_bytes: int) -> int:
    """As many slots as fit into the budget, between MIN_SLOTS and MAX_SLOTS."""
    return max(MIN_SLOTS, min(MAX_SLOTS, budget_bytes // slot_layout(items, 1).slot_bytes))


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(left.view(torch.uint8), right.view(torch.uint8))
