"""What a built library exports, needs and leaves open, as `readelf` tells it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from evaluator.records.candidate import Binding

NEEDED = re.compile(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]")
ROW = re.compile(
    r"^\s*\d+:\s+[0-9a-f]+\s+\S+\s+(?P<type>\w+)\s+(?P<bind>\w+)\s+\w+\s+(?P<section>\w+)"
    r"\s+(?P<name>\S+)"
)
VENDOR_NAMES = r"cublas|cudnn|cufft|cusolver|cusparse|cutensor|curand"
BANNED_SYMBOL = re.compile(rf"^(?:{VENDOR_NAMES})(?:Lt|Xt|Mg|Dn|Sp)?[A-Z_]\w*$")
BANNED_LIBRARY = re.compile(rf"^lib(?:{VENDOR_NAMES}|cutlass|torch|c10|aten)\w*\.so")
# Every library that a system brings gives its symbols a version; these are loaded before ours.
DRIVER_SYMBOL = re.compile(r"^cu[A-Z]\w+$")
SYSTEM_LIBRARY = re.compile(r"^(?:lib(?:c|m|dl|rt|pthread|stdc\+\+|gcc_s)|ld-linux[\w-]*)\.so")
LINKER_NAMES = frozenset({"_init", "_fini", "_edata", "_end", "__bss_start"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbols:
    exported: tuple[str, ...]
    undefined: tuple[str, ...]
    needed: tuple[str, ...]
    unversioned: tuple[str, ...] = ()

    @property
    def banned_symbols(self) -> tuple[str, ...]:
        return tuple(name for name in self.undefined if BANNED_SYMBOL.match(name))

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Undefined, not weak, of no system library and not the driver's: the loader will fail.

        Unknown, hence nothing, where a library without versions is linked (TVM-FFI).
        """
        if not all(SYSTEM_LIBRARY.match(name) for name in self.needed):
            return ()
        return tuple(name for name in self.unversioned if not DRIVER_SYMBOL.match(name))

    @property
    def banned_libraries(self) -> tuple[str, ...]:
        return tuple(name for name in self.needed if BANNED_LIBRARY.match(name))


def parse(listing: str) -> Symbols:
    """From the output of `readelf --wide --dynamic --dyn-syms`."""
    exported, undefined, unversioned = set(), set(), set()
    for line in listing.splitlines():
        row = ROW.match(line)
        if row is None or row["bind"] == "LOCAL":
            continue
        name = row["name"].split("@")[0]
        if row["section"] == "UND":
            undefined.add(name)
            if row["bind"] == "GLOBAL" and "@" not in row["name"]:
                unversioned.add(name)
        elif row["type"] in ("FUNC", "OBJECT", "IFUNC") and name not in LINKER_NAMES:
            exported.add(name)
    return Symbols(
        exported=tuple(sorted(exported)),
        undefined=tuple(sorted(undefined)),
        needed=tuple(NEEDED.findall(listing)),
        unversioned=tuple(sorted(unversioned)),
    )


def looked_up(entry_symbol: str, binding: Binding) -> str:
    """The name that the host asks the loader for."""
    return f"__tvm_ffi_{entry_symbol}" if binding is Binding.TVM_FFI else entry_symbol


def why_missing(entry_symbol: str, binding: Binding, exported: Sequence[str]) -> str:
    """Which symbol was looked up, what came near, and what to add."""
    wanted = looked_up(entry_symbol, binding)
    mangled = re.compile(rf"^_Z(?:N\w*?)?{len(entry_symbol)}{re.escape(entry_symbol)}(?![a-z])")
    near = [name for name in exported if mangled.match(name)]
    if binding is Binding.TVM_FFI:
        bare = f", exported without the macro: {entry_symbol!r}" if entry_symbol in exported else ""
        add = f"add TVM_FFI_DLL_EXPORT_TYPED_FUNC({entry_symbol}, your_function);"
        return f"entry point {wanted!r} is not exported{bare}; {add}"
    if near:
        return (
            f"entry point {wanted!r} is not exported; found {near[0]!r}, "
            f'which has C++ linkage: write extern "C" before {entry_symbol}'
        )
    close = get_close_matches(wanted, exported, n=3, cutoff=0.6)
    seen = f"near names: {', '.join(close)}" if close else _listed(exported)
    rule = 'define it as an extern "C" host function, neither static nor inline'
    return f"entry point {wanted!r} is not exported; {seen}; {rule}"


def _listed(exported: Sequence[str]) -> str:
    names = ", ".join(exported[:5])
    return f"exported: {names}" if names else "nothing is exported"
