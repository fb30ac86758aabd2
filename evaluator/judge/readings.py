"""Clock, temperature, power and throttle reasons of the GPU through NVML; None without one."""

from functools import cache
from typing import Any

from evaluator.records.evidence import DeviceReading

# nvml.h, nvmlClocksEventReason*
THROTTLE_REASONS = {
    0x2: "applications_clocks_setting",
    0x4: "power_cap",
    0x8: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "thermal_software",
    0x40: "thermal_hardware",
    0x80: "power_brake",
    0x100: "display_clock_setting",
}


class Readings:
    """NVML of one device; every missing value is None, never a guess."""

    def __init__(self, index: int = 0) -> None:
        self._nvml = _nvml()
        self._device = self._nvml.nvmlDeviceGetHandleByIndex(index) if self._nvml else None

    def read(self) -> DeviceReading | None:
        if self._nvml is None:
            return None
        clock = self._ask("nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_SM)
        power = self._ask("nvmlDeviceGetPowerUsage")
        celsius = self._ask("nvmlDeviceGetTemperature", self._nvml.NVML_TEMPERATURE_GPU)
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons") or 0
        return DeviceReading(
            sm_clock_hz=None if clock is None else clock * 1_000_000,
            temperature_celsius=celsius,
            power_watts=None if power is None else power / 1000,
            throttle_reasons=throttle_names(bits),
        )

    def driver(self) -> str | None:
        return None if self._nvml is None else str(self._nvml.nvmlSystemGetDriverVersion())

    def uuid(self) -> str | None:
        answer = self._ask("nvmlDeviceGetUUID")
        return None if answer is None else str(answer)

    def _ask(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nvml, name)(self._device, *arguments)
        except (AttributeError, self._nvml.NVMLError):
            return None


def throttle_names(bits: int) -> tuple[str, ...]:
    return tuple(name for bit, name in THROTTLE_REASONS.items() if bits & bit)


@cache
def _nvml() -> Any:
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no package, no driver or no device: all mean that nothing can be read
        return None
    return pynvml
