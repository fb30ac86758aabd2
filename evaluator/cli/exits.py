"""What the command's exit code says."""

EXIT_PASSED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_FAULT = 3
EXIT_INTERRUPTED = 130


class UsageError(Exception):
    """What was typed cannot be carried out; the message names what is known or allowed."""
