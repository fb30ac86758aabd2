"""What a pack's texts call and cite, against what its templates define and its manifest lists."""

import re

from packs.pack import Pack, Part

DEFINITION = re.compile(r"\b(?:inline|constexpr|__device__)\s+[\w:<>*&\s]+?\b(\w+)\s*\(")
TYPE = re.compile(r"\b(?:struct|enum class|using)\s+(\w+)")
FENCED = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
CALL = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^<>();=]*>)?\(")
NAME = re.compile(r"([A-Za-z_]\w*)(?:<[^<>]*>)?(\*?)")
CITATION = re.compile(r"\[([a-z][a-z0-9]*(?::[\w.-]+)?)\]")

# A bare name with one of these beginnings is a wrapper, not a variable.
WRAPPER_PREFIXES = (
    *("bulk_", "cluster_", "elect_", "fence_", "launch_", "mbarrier_", "mma_", "named_barrier"),
    *("setmaxnreg_", "stmatrix_", "tcgen05_", "tile_desc", "tma_", "tmem_", "wgmma"),
)
BUILT_IN = frozenset(
    [
        *("if", "for", "while", "switch", "return", "sizeof", "static_assert", "__launch_bounds__"),
        *("int", "float", "bool", "char", "uint16_t", "uint32_t", "uint64_t", "size_t"),
        *("make_float2", "make_float4", "make_uint2", "make_uint4", "fmaxf", "fminf", "fmaf"),
        *("__float_as_uint", "__uint_as_float", "__float_as_int", "__int_as_float", "min", "max"),
        *("__shfl_sync", "__shfl_xor_sync", "__any_sync", "__all_sync", "atomicAdd"),
        *("__syncwarp", "__syncthreads"),
    ]
)


def functions_of(pack: Pack) -> frozenset[str]:
    """Names of the functions that the pack's templates define, also through macros."""
    return frozenset(
        name for part in _templates(pack) for name in DEFINITION.findall(_code(part.text))
    )


def unknown_calls(pack: Pack) -> dict[str, list[str]]:
    """By file: what is called or named like a wrapper and is none."""
    known = functions_of(pack)
    types = {name for part in _templates(pack) for name in TYPE.findall(part.text)}
    found = {}
    for part in pack.files:
        if part.path.suffix == ".md":
            names = _calls(part.text) - known - types - BUILT_IN | _dead_names(part.text, known)
        else:
            names = _dead_names_in_comments(part.text, known | types)
        if names:
            found[part.file] = sorted(names)
    return found


def unknown_sources(pack: Pack) -> dict[str, list[str]]:
    """By file: what stands in brackets like a source and is not in `pack.toml`."""
    listed = {source.id for source in pack.sources}
    found = {part.file: sorted(_cited(part) - listed) for part in _texts(pack)}
    return {file: ids for file, ids in found.items() if ids}


def schedules_named(part: Part, pack: Pack) -> set[str]:
    """Slugs of other schedules that a text refers to, written with hyphens or with spaces."""
    spaced = " ".join(part.text.split())
    found = {
        one.slug
        for one in pack.schedules
        if re.search(rf"(?<![\w-]){re.sub('-', '[- ]', one.slug)}(?![\w-])", spaced)
    }
    return found - {one.slug for one in pack.schedules if one.file == part.file}


def unused_sources(pack: Pack) -> list[str]:
    cited = {id_ for part in _texts(pack) for id_ in _cited(part)}
    return sorted({source.id for source in pack.sources} - cited)


def _templates(pack: Pack) -> list[Part]:
    return [part for part in pack.files if part.path.suffix == ".cuh"]


def _texts(pack: Pack) -> list[Part]:
    return [part for part in pack.files if part.path.suffix == ".md"]


def _code(text: str) -> str:
    return COMMENT.sub("", text)


def _calls(markdown: str) -> set[str]:
    """Names followed by parentheses in code; what a block defines itself does not count."""
    called: set[str] = set()
    for block in FENCED.findall(markdown):
        code = _code(block)
        own = set(re.findall(r"\b(\w+)\s*=\s*\[", code)) | set(DEFINITION.findall(code))
        called |= set(CALL.findall(code)) - own
    for span in INLINE.findall(FENCED.sub("", markdown)):
        called |= set(CALL.findall(span))
    return called


def _dead_names(markdown: str, known: frozenset[str]) -> set[str]:
    dead = set()
    for span in INLINE.findall(FENCED.sub("", markdown)):
        found = NAME.fullmatch(span.strip())
        if found and found[1].startswith(WRAPPER_PREFIXES) and not _names(found, known):
            dead.add(found[0])
    return dead


def _names(found: re.Match[str], known: frozenset[str]) -> bool:
    """`mma_*` is any of them; `mma_ss` is that one."""
    if found[2]:
        return any(name.startswith(found[1]) for name in known)
    return found[1] in known


def _dead_names_in_comments(code: str, known: frozenset[str] | set[str]) -> set[str]:
    comments = " ".join(COMMENT.findall(code))
    named = {name for name in CALL.findall(comments) if name.startswith(WRAPPER_PREFIXES)}
    return named - set(known)


def _cited(part: Part) -> set[str]:
    prose = INLINE.sub("", FENCED.sub("", part.text))
    return set(CITATION.findall(prose))
