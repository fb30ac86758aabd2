"""The index of field cases names every case, every bad input, and tests that exist."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.field_cases import (
    CASES,
    CLI,
    COMPILATION,
    FORM,
    HOSTILE,
    IDEMPOTENCY,
    SOLUTIONS,
    SUBMITTING,
    WORKER,
    WORKER_API,
)

TESTS = Path(__file__).parent

BAD_INPUT: dict[str, tuple[str, ...]] = {
    "wrong problem, target, language or binding": (
        f"{SUBMITTING}it_says_what_was_seen_and_what_is_allowed",
        f"{CLI}wrong_usage_exits_2_and_names_what_is_known",
        f"{FORM}it_keeps_what_was_typed_and_says_what_is_wrong",
    ),
    "source above 1 MiB": (
        f"{SUBMITTING}sources_above_one_mebibyte_are_413_with_both_numbers",
        f"{SUBMITTING}sources_of_exactly_one_mebibyte_are_taken",
        f"{CLI}a_file_that_cannot_be_taken_exits_2",
        f"{FORM}it_refuses_files_that_are_no_sources",
    ),
    "UTF-16": (f"{SUBMITTING}a_utf16_file_gets_one_line", f"{COMPILATION}utf16_gets_one_line"),
    "text that no database can hold": (
        f"{HOSTILE}text_that_no_database_can_hold_is_400",
        f"{HOSTILE}an_unknown_field_with_an_impossible_name_is_named",
    ),
    "missing entry point": (
        f"{COMPILATION}an_entry_point_with_cpp_linkage_is_found_out_at_build_time",
        f"{COMPILATION}an_entry_point_hidden_from_the_loader_is_missing",
    ),
    "wrong signature": (f"{COMPILATION}a_wrong_prototype_is_told_in_words",),
    "path traversal in file names": (
        f"{SUBMITTING}a_path_that_leaves_the_folder_is_refused",
        f"{SOLUTIONS}a_bad_path_is_named_by_its_field",
        f"{FORM}it_keeps_what_was_typed_and_says_what_is_wrong",
    ),
    "idempotency key with another body": (f"{IDEMPOTENCY}the_same_key_with_another_body_is_409",),
    "no token": (f"{SUBMITTING}a_visitor_gets_401_and_the_scheme",),
    "worker token used for submitting": (f"{SUBMITTING}a_worker_token_gets_403_that_says_so",),
    "unknown stage": (f"{WORKER_API}an_unknown_stage_is_400_with_the_known_ones",),
    "stale fencing token": (
        f"{WORKER_API}a_stale_fence_is_409_everywhere",
        f"{WORKER_API}a_fence_that_is_no_uuid_is_409_too",
        f"{WORKER}it_stops_without_completing_when_its_fence_is_stale",
    ),
}

NUMBERS = (*range(1, 16), *range(20, 24), *range(29, 33), 37, 38, 40)
NAMED = sorted(
    {name for aspects in CASES.values() for names in aspects.values() for name in names}
    | {name for names in BAD_INPUT.values() for name in names}
)


@cache
def functions_of(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("name", NAMED)
def test_a_named_test_exists(name):
    file, _, function = name.partition("::")
    function, _, parameter = function.rstrip("]").partition("[")
    assert function in functions_of(file), f"{file} has no {function}"
    if "recorded_verdicts" in file:
        assert (TESTS / "evidence" / f"{parameter}.json").is_file()
    elif parameter:
        assert (TESTS / "candidates" / parameter / "expect.toml").is_file()


def test_every_case_of_this_part_of_the_product_is_here():
    assert [case.split(" ")[0] for case in CASES] == [f"O-{number:02}" for number in NUMBERS]
    assert all(names for aspects in CASES.values() for names in aspects.values())
