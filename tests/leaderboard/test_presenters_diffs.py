import time

from leaderboard.views.presenters.diffs import MAX_LINES, DiffLine, diff


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))


def test_it_keeps_four_lines_around_a_change_and_counts_what_it_leaves_out():
    found = diff(numbered(20), numbered(20).replace("line 10\n", "line ten\n"))
    assert (found.added, found.removed, found.reason) == (1, 1, "")
    assert found.lines[0] == DiffLine(sign="@", text="5 equal lines")
    assert found.lines[1] == DiffLine(sign=" ", text="line 6", before=6, after=6)
    assert found.lines[5:7] == (
        DiffLine(sign="-", text="line 10", before=10),
        DiffLine(sign="+", text="line ten", after=10),
    )
    assert found.lines[-1] == DiffLine(sign="@", text="6 equal lines")


def test_it_numbers_both_sides_after_lines_that_were_added():
    found = diff("a\nb\n", "new\na\nb\n")
    assert [(one.before, one.after) for one in found.lines] == [(None, 1), (1, 2), (2, 3)]


def test_it_says_that_nothing_changed():
    found = diff("a\r\nb\n", "a\nb")
    assert (found.lines, found.reason) == ((), "The code is the same as before.")


def test_it_refuses_to_match_what_takes_too_long():
    found = diff("a\n", numbered(MAX_LINES + 1))
    assert found.lines == ()
    assert found.reason == "4001 lines are too many to compare here, the limit is 4000."


def test_its_worst_case_is_bearable():
    before = "".join(f"{number % 7}\n" for number in range(MAX_LINES))
    after = "".join(f"{number * 3 % 7}\n" for number in range(MAX_LINES))
    start = time.monotonic()
    diff(before, after)
    assert time.monotonic() - start < 10


def test_it_shows_hidden_characters_and_cuts_endless_lines():
    found = diff("", f"x\u202ey\n{'z' * 5000}\n")
    assert found.lines[0].text == "x[U+202E]y"
    assert len(found.lines[1].text) == 2001
