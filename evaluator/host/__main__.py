"""The only program of the untrusted side.

`serve DESCRIPTOR EVALUATION`, `solo SPECIFICATION`, or `read-profile REPORT MODULES OUTPUT`
"""

import json
import os
import sys


def main(arguments: list[str]) -> int:
    if arguments[0] == "serve":
        from evaluator.host.serve import serve

        serve(int(arguments[1]), arguments[2])
    if arguments[0] == "read-profile":
        from evaluator.host.read_profile import read_profile

        return read_profile(arguments[1], arguments[2], arguments[3])
    from evaluator.host.solo import run_once

    return run_once(json.loads(arguments[1]))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
