"""How many of what: the lines under a run, and the heading of the table in the docs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.corpus.cases import Expectation, Kind
from evaluator.corpus.outcomes import Finding

DONE = {
    Finding.CAUGHT: "refused",
    Finding.HARMLESS: "gain nothing",
    Finding.HOLE: "pass through a known hole",
}
WORSE = {
    Finding.FORGED: "forged passes",
    Finding.FALSE_ALARM: "false alarms",
    Finding.OTHER: "other verdicts than expected",
}
OPEN = {
    Finding.INCONCLUSIVE: "inconclusive",
    Finding.BUILT: "built only",
    Finding.FAULT: "faults of ours",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    counts: Counter[tuple[Kind, Finding]]

    @classmethod
    def of(cls, findings: Sequence[tuple[Expectation, Finding]]) -> "Tally":
        return cls(counts=Counter((expected.kind, finding) for expected, finding in findings))

    @property
    def is_clean(self) -> bool:
        """What counts: no forged pass and no false alarm."""
        return not self.number(Finding.FORGED) and not self.number(Finding.FALSE_ALARM)

    def number(self, *findings: Finding, kind: Kind | None = None) -> int:
        return sum(
            count
            for (one, finding), count in self.counts.items()
            if finding in findings and kind in (None, one)
        )

    def lines(self) -> list[str]:
        cheats = self._total(Kind.CHEAT)
        without_gain = self.number(Finding.CAUGHT, Finding.HARMLESS, kind=Kind.CHEAT)
        detail = ", ".join(
            f"{self.number(finding, kind=Kind.CHEAT)} {words}" for finding, words in DONE.items()
        )
        lines = [f"cheats: {without_gain} of {cheats} without gain ({detail})"]
        honest, fine = self._total(Kind.HONEST), self.number(Finding.HONEST, kind=Kind.HONEST)
        lines.append(f"honest kernels: {fine} of {honest} passed")
        mistakes = self._total(Kind.MISTAKE)
        told = self.number(Finding.TOLD, Finding.HONEST, kind=Kind.MISTAKE)
        lines.append(f"mistakes: {told} of {mistakes} told as expected")
        lines.append(", ".join(f"{self.number(one)} {words}" for one, words in WORSE.items()))
        unfinished = [f"{self.number(one)} {words}" for one, words in OPEN.items()]
        return [*lines, f"not settled: {', '.join(unfinished)}"]

    def _total(self, kind: Kind) -> int:
        return sum(count for (one, _), count in self.counts.items() if one is kind)
