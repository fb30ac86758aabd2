"""Two worlds, one bridge: who may import torch and Django, shown in fresh interpreters.

Each case walks every module of its packages, so a new module is covered the day it is written.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Imports every module below the named packages and prints what else has come with them.
# Packages that need a GPU's machine may be missing here; a module that wants one is named.
WALK = """
import importlib, importlib.util, json, pkgutil, sys

MACHINE_ONLY = {"cupti", "pynvml", "ncu_report", "cuda", "tvm_ffi"}
names, missing = [], []

def visit(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in MACHINE_ONLY:
            raise
        missing.append(name)
        return
    names.append(name)
    if hasattr(module, "__path__"):
        for child in pkgutil.iter_modules(module.__path__):
            if child.name != "__main__":
                visit(f"{name}.{child.name}")

if "--without-django" in sys.argv:
    class NoDjango:  # kombu brings a piece of Django along wherever Django is installed
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "django":
                raise ImportError("django is not installed on a worker")
            return None

    sys.meta_path.insert(0, NoDjango())
if "--django" in sys.argv:
    import os
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    import django
    django.setup()
for package in sys.argv[1].split(","):
    if importlib.util.find_spec(package) is not None:
        visit(package)
loaded = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps({"names": names, "missing": missing, "loaded": loaded}))
"""


def walk(packages: str, *arguments: str) -> dict:
    """What a fresh interpreter has loaded after importing all of `packages`."""
    command = [sys.executable, "-c", WALK, packages, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_bridge_imports_neither_torch_nor_django():
    seen = walk("evaluator.records,evaluator.targets,evaluator.metrics,evaluator.agent")
    assert {"evaluator.records.flashinfer", "evaluator.agent.prompt"} <= set(seen["names"])
    assert {"torch", "django", "triton", "httpx2", "requests"} & set(seen["loaded"]) == set()


def test_the_problem_set_is_read_without_torch():
    code = (
        "import sys; from evaluator.problems import find_problem, load_problems, prototype; "
        "problem = find_problem('mha_bwd_d128_causal'); prototype(problem); load_problems(); "
        "assert not {'torch', 'django'} & set(sys.modules), 'imported'; print('clean')"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "clean\n", done.stderr


def test_the_evaluator_works_where_django_is_not_installed():
    seen = walk("evaluator", "--without-django")
    assert {"evaluator.admission", "evaluator.worker.main"} <= set(seen["names"])
    assert "django" not in seen["loaded"]


def test_the_site_imports_no_torch():
    seen = walk("leaderboard,webapp", "--django")
    assert "leaderboard.models" in seen["names"]
    assert "torch" not in seen["loaded"]


def test_a_walk_sees_what_a_module_brings_along():
    """The proof itself: a walk over a module that needs torch does show torch."""
    assert "torch" in walk("evaluator.comparison")["loaded"]
