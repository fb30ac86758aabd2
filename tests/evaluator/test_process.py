"""Bounded output and the command that sets limits."""

from evaluator.process import HEAD_BYTES, TAIL_BYTES, BoundedOutput, Limits, limited


def test_output_within_the_bound_is_kept_whole():
    output = BoundedOutput()
    output.add(b"a" * HEAD_BYTES)
    output.add(b"b" * TAIL_BYTES)
    assert output.text() == ("a" * HEAD_BYTES + "b" * TAIL_BYTES, False)


def test_one_byte_more_drops_the_first_byte_of_the_tail_and_says_so():
    output = BoundedOutput()
    output.add(b"a" * HEAD_BYTES + b"x" + b"b" * TAIL_BYTES)
    text, truncated = output.text()
    assert truncated is True
    assert text == "a" * HEAD_BYTES + "\n[... 1 bytes left out ...]\n" + "b" * TAIL_BYTES


def test_the_last_bytes_survive_many_small_pieces():
    output = BoundedOutput()
    for number in range(20_000):
        output.add(b"%07d\n" % number)
    text, truncated = output.text()
    assert truncated is True
    assert text.startswith("0000000\n0000001\n")
    assert text.endswith("0019998\n0019999\n")
    assert len(text) < HEAD_BYTES + TAIL_BYTES + 60


def test_bytes_that_are_no_text_are_shown_as_such():
    output = BoundedOutput()
    output.add(b"\xff\xfe ok")
    assert output.text() == ("\N{REPLACEMENT CHARACTER}" * 2 + " ok", False)


def test_limits_become_options_of_prlimit():
    limits = Limits(
        cpu_seconds=5, file_bytes=10, open_files=None, processes=3, address_space_bytes=99
    )
    assert limited(["tool", "-x"], limits) == [
        "/usr/bin/prlimit", "--core=0", "--cpu=5:7", "--fsize=10", "--nproc=3", "--as=99",
        "--", "tool", "-x",
    ]  # fmt: skip
