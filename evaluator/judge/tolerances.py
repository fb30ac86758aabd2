"""How far the judge's own clock may exceed a reported span before the time is disputed.

A bracket of n calls may take n * (span * (1 + share) + per_call_ns) + per_bracket_ns.

GPU   share: the power limit slows a burst more than single calls (5 % after 75 ms, not seen
      after 20 ms); per call: launch by ctypes and gaps between kernels (2 to 4 us seen); per
      bracket: two messages and two switches of the device between the judge's context and the
      host's (0.8 to 1.2 ms seen on an H200, by the shortest of six)
host  share: whoever else uses the processor (2 cores with 4 busy processes: 90 % seen, by the
      shortest of three); per call: the loop of the host's interpreter; per bracket: two messages
      through a pipe
"""

from dataclasses import dataclass

from evaluator.targets import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    share: float
    per_call_ns: float
    per_bracket_ns: float

    def allowed_ns(self, span_ns: float, call_count: int) -> float:
        """The longest wall time of a bracket that still fits the span."""
        per_call_ns = span_ns * (1 + self.share) + self.per_call_ns
        return call_count * per_call_ns + self.per_bracket_ns


GPU_EXCESS = Excess(share=0.04, per_call_ns=8_000, per_bracket_ns=1_500_000)
HOST_EXCESS = Excess(share=1.0, per_call_ns=100_000, per_bracket_ns=3_000_000)


# A GPU that a candidate has warmed up runs some per cent slower; a shared CPU core much more.
GPU_BASELINE_EXCESS, HOST_BASELINE_EXCESS = 0.25, 1.0


def excess_of(target: Target) -> Excess:
    return GPU_EXCESS if target.is_gpu else HOST_EXCESS


def baseline_excess_of(target: Target) -> float:
    """How much slower than before the candidate was loaded the baseline may be, a share."""
    return GPU_BASELINE_EXCESS if target.is_gpu else HOST_BASELINE_EXCESS


def speed_of_light_ns(flop_count: int, byte_count: int, target: Target) -> float | None:
    """The shorter a cold call cannot be by the vendor's data sheet; None where there is none."""
    if target.peak_flops is None or target.memory_bandwidth is None:
        return None
    return 1e9 * max(flop_count / target.peak_flops, byte_count / target.memory_bandwidth)
