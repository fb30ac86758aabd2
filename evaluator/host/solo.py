"""One call on buffers of our own, for tools that watch a whole process (sanitizer, profiler)."""

import ctypes
import sys
from pathlib import Path

from evaluator.host.binding import CandidateError, EntryMissing, Parameter, bind
from evaluator.host.cuda import CudaError, Driver
from evaluator.host.memory import own_buffers
from evaluator.host.protocol import Message

LOAD_FAILED, DEVICE_FAILED, CANDIDATE_FAILED = 13, 14, 15
LOADING = "ptxboard: the candidate is loaded now"


def run_once(specification: Message) -> int:
    """Exit code: 0, or one of the constants above with a line on stderr.

    LOADING on stdout says that everything was well before anything of the candidate's ran.
    """
    try:
        _call(specification)
    except CudaError as error:
        return _fail(DEVICE_FAILED, f"device error: {error}")
    except (CandidateError, EntryMissing) as error:
        return _fail(CANDIDATE_FAILED, str(error))
    except OSError as error:
        return _fail(LOAD_FAILED, f"could not load the library: {error}")
    return 0


def _call(specification: Message) -> None:
    driver = Driver()
    parameters = [
        Parameter(
            name=value["name"],
            dtype=value["dtype"],
            shape=None if value["shape"] is None else tuple(value["shape"]),
        )
        for value in specification["parameters"]
    ]
    stream = driver.stream()
    contents = {name: Path(file).read_bytes() for name, file in specification["contents"].items()}
    buffers = own_buffers(driver, parameters, specification["seed"], contents)
    print(LOADING, flush=True)
    entry = bind(
        ctypes.CDLL(specification["library"]),
        specification["symbol"],
        specification["binding"],
        parameters,
        stream=stream,
        ffi_library=specification.get("ffi_library"),
    )
    scalars = specification["scalars"]
    values = zip(parameters, buffers, strict=True)
    entry([scalars[p.name] if buffer is None else buffer for p, buffer in values])
    driver.synchronise()


def _fail(code: int, text: str) -> int:
    print(text, file=sys.stderr, flush=True)
    return code
