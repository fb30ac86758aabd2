"""`serve DESCRIPTOR EVALUATION` or `solo SPECIFICATION`; the only program of the untrusted side."""

import json
import os
import sys


def main(arguments: list[str]) -> int:
    if arguments[0] == "serve":
        from evaluator.host.serve import serve

        serve(int(arguments[1]), arguments[2])
        return 0
    from evaluator.host.solo import run_once

    return run_once(json.loads(arguments[1]))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
