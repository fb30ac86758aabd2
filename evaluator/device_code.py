"""Device code that a library carries outside of the section where compilers put it.

What is compiled here stands in `.nv_fatbin`, is disassembled and shown. A cubin, a fatbin or PTX
text anywhere else is there to be loaded by hand, so that what runs would not be what was looked at.
What gets past: code in disguise, which the names of launched kernels give away (timing).
Source: ELF-64 section headers; EM_CUDA is 190; the magic of `fatbinary_section.h`.
"""

import re
import struct
from collections.abc import Iterator

OWN_SECTION = b".nv_fatbin"
NO_BITS = 8
KINDS = {
    "a cubin": re.compile(rb"\x7fELF[\x01\x02]\x01.{12}\xbe\x00", re.DOTALL),
    "a fatbin": re.compile(rb"\x50\xed\x55\xba\x01\x00"),
    "PTX text": re.compile(rb"\.version\s+\d+\.\d+\s.{0,400}?\.target\s+sm_\d+", re.DOTALL),
}


def foreign_device_code(library: bytes) -> tuple[str, ...]:
    """What was found and where: `PTX text at offset 8192`; the first of each kind."""
    own = tuple(_own_ranges(library))
    found = ((kind, _first_outside(pattern, library, own)) for kind, pattern in KINDS.items())
    return tuple(f"{kind} at offset {at}" for kind, at in found if at is not None)


def _first_outside(
    pattern: re.Pattern[bytes], library: bytes, own: tuple[range, ...]
) -> int | None:
    starts = (match.start() for match in pattern.finditer(library))
    return next((at for at in starts if not any(at in part for part in own)), None)


def _own_ranges(library: bytes) -> Iterator[range]:
    """Where `.nv_fatbin` lies; nothing where the headers cannot be read."""
    try:
        (table,) = struct.unpack_from("<Q", library, 40)
        size, count, names = struct.unpack_from("<HHH", library, 58)
        headers = [struct.unpack_from("<IIQQQQ", library, table + i * size) for i in range(count)]
        names_at = headers[names][4]
    except (struct.error, IndexError):
        return
    for name, kind, _, _, offset, length in headers:
        end = library.find(b"\0", names_at + name)
        if kind != NO_BITS and library[names_at + name : end] == OWN_SECTION:
            yield range(offset, offset + length)
