"""The loader, on small packs written here, and its promises on every pack of the project."""

import hashlib
import itertools
from pathlib import Path

import pytest

from evaluator.records.problem import Family
from evaluator.targets import TARGETS, Arch
from packs.pack import PACKS, ROOT, InvalidPack, Level, find_pack, load_pack, pack_for
from packs.tokens import count_tokens, write_counts

MANIFEST = """\
title = "A small one"
version = "0.1.0"
architecture = "hopper"
targets = ["h200"]
evidence = "Never run."

[[part]]
level = "parameters"
title = "Figures"
file = "parameters.md"
tokens = 3

[[part]]
level = "functions"
title = "Wrappers"
file = "templates/sync.cuh"
tokens = 5

[[part]]
level = "contracts"
title = "Rules"
file = "contracts/rules.md"
tokens = 7

[[schedule]]
slug = "ring"
title = "A ring of buffers"
families = ["gemm"]
file = "schedules/ring.md"
tokens = 11

[[guidance]]
title = "Advice"
families = ["mha_forward"]
file = "guidance/advice.md"
tokens = 13

[[source]]
id = "ptx:sync"
title = "PTX"
url = "https://example.org/ptx"

[[source]]
id = "measured:sync"
title = "Our own"
"""
FILES = {
    "parameters.md": "132 SMs\n",
    "templates/sync.cuh": "void sync();\n",
    "contracts/rules.md": "Call `sync()` [ptx:sync].\n",
    "schedules/ring.md": "load, sync\n",
    "guidance/advice.md": "Begin small.\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "small"
    for name, text in {**FILES, "pack.toml": MANIFEST}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def change(folder: Path, old: str, new: str) -> None:
    manifest = folder / "pack.toml"
    assert old in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(old, new))


def test_it_reads_a_pack(folder):
    pack = load_pack(folder)
    assert (pack.name, pack.title, pack.version) == ("small", "A small one", "0.1.0")
    assert pack.architecture is Arch.HOPPER
    assert pack.targets == ("h200",)
    assert [source.url for source in pack.sources] == ["https://example.org/ptx", None]
    assert pack.schedules_for(Family.GEMM) == (pack.schedule("ring"),)
    assert pack.schedules_for(Family.MHA_FORWARD) == ()


@pytest.mark.parametrize(
    ("level", "text", "tokens"),
    [
        (
            Level.PARAMETERS,
            "# A small one: what the hardware offers\n\nNever run.\n\n"
            "## Architecture parameters\n\n### Figures\n\n132 SMs\n",
            3,
        ),
        (
            Level.FUNCTIONS,
            "# A small one: what the hardware offers\n\nNever run.\n\n"
            "## Architecture parameters\n\n### Figures\n\n132 SMs\n\n"
            "## PTX wrapper functions\n\n### Wrappers (`sync.cuh`)\n\n"
            "```cuda\nvoid sync();\n```\n",
            8,
        ),
    ],
)
def test_it_gives_the_exact_text_and_tokens_of_a_level(folder, level, text, tokens):
    pack = load_pack(folder)
    assert pack.text(level) == text
    assert pack.token_count(level) == tokens


def test_each_level_holds_all_before_it(folder):
    pack = load_pack(folder)
    texts = [pack.text(level) for level in Level]
    for shorter, longer in itertools.pairwise(texts):
        assert longer.startswith(shorter)
    assert texts[2] == texts[3]
    full = pack.text(Level.SCHEDULE, schedules=["ring"])
    assert full == texts[3] + "\n## Schedules\n\n### A ring of buffers\n\nload, sync\n"


def test_it_adds_guidance_for_the_family_that_it_is_for(folder):
    pack = load_pack(folder)
    plain = pack.text(Level.CONTRACTS)
    advised = pack.text(Level.CONTRACTS, guidance_for=Family.MHA_FORWARD)
    assert advised == plain + "\n## Guidance\n\n### Advice\n\nBegin small.\n"
    assert pack.text(Level.CONTRACTS, guidance_for=Family.GEMM) == plain


def test_it_refuses_a_schedule_that_it_has_not(folder):
    with pytest.raises(KeyError, match="no schedule 'spiral'; it has: ring"):
        load_pack(folder).text(Level.SCHEDULE, schedules=["spiral"])


def test_it_refuses_a_schedule_below_its_level(folder):
    with pytest.raises(ValueError, match="asked for at level contracts"):
        load_pack(folder).text(Level.CONTRACTS, schedules=["ring"])


def test_its_digest_is_over_the_name_length_and_bytes_of_every_file(folder):
    expected = hashlib.sha256()
    for name, text in sorted({**FILES, "pack.toml": MANIFEST}.items()):
        expected.update(f"{name}\0{len(text)}\0{text}".encode())
    assert load_pack(folder).digest == expected.hexdigest()


@pytest.mark.parametrize("name", [*FILES, "pack.toml"])
def test_its_digest_changes_with_any_file(folder, name):
    before = load_pack(folder).digest
    with (folder / name).open("a") as file:
        file.write("# more\n")
    assert load_pack(folder).digest != before


def test_a_loaded_pack_keeps_its_text_and_digest_when_a_file_changes(folder):
    pack, twin = load_pack(folder), load_pack(folder)
    (folder / "contracts/rules.md").write_text("Other rules.\n")
    assert "Other rules" not in pack.text(Level.CONTRACTS)
    assert pack.digest == twin.digest != load_pack(folder).digest


def test_probes_are_no_part_of_a_pack(folder):
    before = load_pack(folder).digest
    (folder / "probes").mkdir()
    (folder / "probes/sync.cu").write_text("int main() {}\n")
    assert load_pack(folder).digest == before


def test_a_file_of_another_pack_can_be_shared(folder):
    other = folder.parent / "other"
    other.mkdir()
    (folder / "templates/sync.cuh").rename(other / "sync.cuh")
    change(folder, "templates/sync.cuh", "../other/sync.cuh")
    assert "void sync();" in load_pack(folder).text(Level.FUNCTIONS)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("contracts/rules.md", "contracts/law.md", "names contracts/law.md, which is not there"),
        ("contracts/rules.md", "../../../etc/hosts", "lies outside the packs"),
        ('level = "contracts"', 'level = "secrets"', "'secrets' is not a valid Level"),
        ('"hopper"', '"volta"', "'volta' is not a valid Arch"),
        ('["h200"]', '["h200", "v100"]', r"targets \['v100'\] are not known; known: h200"),
        ('["mha_forward"]', '["mha"]', "'mha' is not a valid Family"),
        ('id = "measured:sync"', 'id = "ptx:sync"', "source 'ptx:sync' is there twice"),
        ('title = "A small one"', "", "KeyError: 'title'"),
        ("tokens = 11", 'tokens = "many"', "invalid literal for int"),
        ("[[source]]", "[[source]", "TOMLDecodeError"),
    ],
)
def test_it_refuses_a_pack_that_is_not_as_it_says(folder, old, new, message):
    change(folder, old, new)
    with pytest.raises(InvalidPack, match=message):
        load_pack(folder)


def test_it_refuses_a_file_that_nobody_named(folder):
    (folder / "contracts/draft.md").write_text("?\n")
    with pytest.raises(InvalidPack, match=r"does not name contracts/draft.md, which lies beside"):
        load_pack(folder)


def test_it_refuses_a_folder_without_a_manifest(tmp_path):
    with pytest.raises(InvalidPack, match=r"pack.toml: FileNotFoundError"):
        load_pack(tmp_path)


def test_it_writes_the_tokenizers_counts_into_the_manifest(folder):
    assert write_counts(load_pack(folder)) == 5
    pack = load_pack(folder)
    for one in pack.files:
        assert one.token_count == count_tokens(one.text)
    assert write_counts(pack) == 0
    assert pack.title == "A small one"


def test_it_counts_as_the_published_tokenizer_does():
    """Qwen writes every digit as a token of its own, and common words as one."""
    assert count_tokens("the kernel") == 2
    assert count_tokens("2048") == 4
    assert count_tokens("") == 0
    assert count_tokens("<|endoftext|>") > 1


def test_an_unknown_pack_is_refused_with_the_known_ones():
    with pytest.raises(KeyError, match="pack 'volta' is not known; known packs: hopper, blackwell"):
        find_pack("volta")
    with pytest.raises(KeyError, match="x86-64"):
        pack_for(Arch.X86_64)


@pytest.mark.parametrize("name", PACKS)
def test_every_pack_of_the_project_loads_and_is_for_targets_of_its_architecture(name):
    pack = load_pack(ROOT / name)
    assert pack_for(pack.architecture).digest == pack.digest
    assert pack.targets == tuple(
        slug for slug in sorted(TARGETS) if TARGETS[slug].arch is pack.architecture
    )
    assert all(pack.parts_of(level) for level in list(Level)[:-1])
