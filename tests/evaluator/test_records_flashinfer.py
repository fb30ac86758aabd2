"""FlashInfer records: nothing is lost on the way through, and every broken rule is told at once."""

import copy
import json

import pytest

from evaluator.records import (
    Definition,
    Evaluation,
    InvalidRecord,
    Solution,
    Trace,
    Workload,
    read,
    write,
)

DEFINITION = {
    "name": "scale",
    "op_type": "toy",
    "axes": {
        "M": {"type": "var", "note": "kept"},
        "N": {"type": "const", "value": 4, "description": None},
    },
    "inputs": {
        "z": {"shape": ["M", "N"], "dtype": "bfloat16"},
        "a": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["M", "N"], "dtype": "bfloat16"}},
    "reference": "def run(z, a):\n    return z * a\n",
    "constraints": ["M % 8 == 0"],
    "license": {"text": "MIT", "years": [2024, 2025.0]},
}
SOLUTION = {
    "name": "mine",
    "definition": "scale",
    "author": "alice",
    "license": "MIT",
    "spec": {
        "language": "cuda",
        "target_hardware": ["H200"],
        "entry_point": "src/kernel.cu::run",
        "compiler_hint": None,
    },
    "sources": [
        {"path": "src/kernel.cu", "content": "// kernel\n"},
        {"path": "src/tile.cuh", "content": ""},
    ],
}
WORKLOAD = {
    "axes": {"M": 8},
    "inputs": {
        "z": {"type": "random", "seed_hint": 3},
        "a": {"type": "scalar", "value": 1},
        "b": {"type": "scalar", "value": 1.0},
        "c": {"type": "scalar", "value": True},
        "d": {"type": "safetensors", "path": "./blob/x.safetensors", "tensor_key": "d"},
    },
    "uuid": "w1",
    "outputs": None,
}
EVALUATION = {
    "status": "PASSED",
    "environment": {"hardware": "NVIDIA H200", "libs": {"torch": "2.11.0"}},
    "timestamp": "2026-11-29T12:00:00",
    "correctness": {"max_relative_error": None, "max_absolute_error": 0, "extra": {"n": 1}},
    "performance": {"latency_ms": 1, "reference_latency_ms": 1.5, "speedup_factor": 1.5},
}
TRACE = {
    "definition": "scale",
    "workload": WORKLOAD,
    "solution": "mine",
    "evaluation": EVALUATION,
}
WORKLOAD_TRACE = {
    "definition": "scale",
    "workload": WORKLOAD,
    "solution": None,
    "evaluation": None,
}


def changed(value, path, new):
    """A deep copy with the member at `path` replaced, or removed where `new` is `...`."""
    value = copy.deepcopy(value)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    if new is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = new
    return value


def problems_of(model, value):
    text = value if isinstance(value, str) else json.dumps(value)
    with pytest.raises(InvalidRecord) as caught:
        read(model, text)
    return caught.value.problems


def same_json(one, other):
    """Equal as JSON, with 1 and 1.0 and true told apart."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (Definition, DEFINITION),
        (Solution, SOLUTION),
        (Workload, WORKLOAD),
        (Trace, TRACE),
        (Trace, WORKLOAD_TRACE),
        (Evaluation, EVALUATION),
    ],
)
def test_it_gives_back_the_very_json_it_was_given(model, value):
    text = write(read(model, json.dumps(value)))
    assert same_json(json.loads(text), value)
    assert write(read(model, text)) == text


def test_it_keeps_the_call_order():
    definition = read(Definition, json.dumps(DEFINITION))
    assert definition.call_order == ("z", "a", "y")
    assert list(json.loads(write(definition))["inputs"]) == ["z", "a"]


def test_it_keeps_big_integers_and_every_digit():
    text = json.dumps(changed(WORKLOAD, ["inputs", "a", "value"], 2**63 + 1))
    assert str(2**63 + 1) in write(read(Workload, text))


def test_it_knows_a_workload_trace():
    assert read(Trace, json.dumps(WORKLOAD_TRACE)).is_workload_trace
    assert not read(Trace, json.dumps(TRACE)).is_workload_trace


@pytest.mark.parametrize(
    ("path", "new", "pointer", "rule"),
    [
        (["name"], "", "name", "at least 1 character"),
        (["op_type"], ..., "op_type", "required, but missing"),
        (["axes", "N", "value"], -1, "axes.N.value", "greater than or equal to 0"),
        (["axes", "N", "value"], True, "axes.N.value", "valid integer"),
        (["axes", "N", "value"], "4", "axes.N.value", "valid integer"),
        (["axes", "N", "type"], "fixed", "axes.N", "'const', 'var'"),
        (["inputs", "z", "shape"], ["M", "K"], "inputs.z.shape", "axis 'K' is not among"),
        (["inputs", "z", "dtype"], "int4", "inputs.z.dtype", "'float32', 'float16', 'bfloat16'"),
        (["outputs", "z"], {"shape": [], "dtype": "bool"}, "outputs.z", "name of an input"),
        (["reference"], "def ran(): pass", "reference", "function 'run' at its top level"),
        (["reference"], "if True:\n    def run(): pass", "reference", "at its top level"),
        (["reference"], "def run(:", "reference", "valid Python: invalid syntax at line 1"),
        (["reference"], "def run(): pass\0", "reference", "valid Python"),
        (["constraints"], ["M >"], "constraints[0]", "Python expression"),
        (["constraints"], ["x = 1"], "constraints[0]", "Python expression"),
    ],
)
def test_it_names_the_field_and_the_rule_of_a_definition(path, new, pointer, rule):
    (problem,) = problems_of(Definition, changed(DEFINITION, path, new))
    assert problem.pointer == pointer
    assert rule in problem.rule


@pytest.mark.parametrize(
    ("path", "new", "pointer", "rule"),
    [
        (["spec", "language"], "cutile", "spec.language", "'python', 'triton', 'cpp', 'cuda'"),
        (["spec", "entry_point"], "kernel.cu", "spec.entry_point", "expected 'file::symbol'"),
        (["spec", "entry_point"], "a::b::c", "spec.entry_point", "exactly one '::'"),
        (["spec", "entry_point"], "::run", "spec.entry_point", "expected 'file::symbol'"),
        (["spec", "entry_point"], "other.cu::run", "spec.entry_point", "'other.cu' is not among"),
        (["spec", "dependencies"], ["cublas"], "spec.dependencies[0]", "libraries are banned"),
        (["spec", "dependencies"], ["nvidia-cudnn-cu13"], "spec.dependencies[0]", "banned"),
        (["spec", "binding"], "c", "spec.binding", "'tvm-ffi' or 'torch'"),
        (["spec", "target_hardware"], [], "spec.target_hardware", "at least 1"),
        (["spec", "destination_passing_style"], "yes", "spec.destination_passing_style", "bool"),
        (["sources"], [], "sources", "at least 1"),
        (["sources", 1, "path"], "src/./kernel.cu", "sources[1].path", "occurs twice"),
        (["sources", 1, "path"], "/abs/k.cu", "sources[1].path", "must be relative"),
        (["sources", 1, "path"], "../k.cu", "sources[1].path", "'..' is not allowed"),
        (["sources", 1, "path"], "a/../../k.cu", "sources[1].path", "'..' is not allowed"),
        (["sources", 1, "path"], "..\\k.cu", "sources[1].path", "forward slashes"),
        (["sources", 1, "path"], "C:\\k.cu", "sources[1].path", "no drive letters"),
        (["sources", 1, "path"], "k.cu/", "sources[1].path", "expected a file name"),
        (["sources", 1, "path"], "k\0.cu", "sources[1].path", "control characters"),
        (["sources", 1, "path"], "", "sources[1].path", "expected a file name"),
    ],
)
def test_it_names_the_field_and_the_rule_of_a_solution(path, new, pointer, rule):
    value = copy.deepcopy(SOLUTION)
    if path[-1] in ("dependencies", "binding", "destination_passing_style"):
        value["spec"][path[-1]] = new
    else:
        value = changed(value, path, new)
    found = {problem.pointer: problem.rule for problem in problems_of(Solution, value)}
    assert rule in found[pointer]


def test_it_tells_all_problems_in_one_answer():
    value = changed(SOLUTION, ["spec", "language"], "cutile")
    value = changed(value, ["spec", "entry_point"], "kernel.cu")
    value = changed(value, ["sources", 1, "path"], "../k.cu")
    value["spec"]["dependencies"] = ["cublas"]
    del value["author"]
    assert {problem.pointer for problem in problems_of(Solution, value)} == {
        "author",
        "spec.language",
        "spec.entry_point",
        "spec.dependencies[0]",
        "sources[1].path",
    }


def test_it_shows_the_value_seen_but_not_all_of_a_long_one():
    (problem,) = problems_of(Solution, changed(SOLUTION, ["spec", "language"], "x" * 5000))
    assert problem.seen.startswith('"xxx')
    assert len(problem.seen) == 120


def test_it_defaults_to_tvm_ffi_and_destination_passing():
    spec = read(Solution, json.dumps(SOLUTION)).spec
    assert spec.binding is None
    assert spec.effective_binding == "tvm-ffi"
    assert spec.destination_passing_style is True


@pytest.mark.parametrize(
    ("path", "new", "pointer"),
    [
        (["axes", "M"], -1, "axes.M"),
        (["axes", "M"], 8.0, "axes.M"),
        (["axes", "M"], True, "axes.M"),
        (["inputs", "a", "value"], "1", "inputs.a.value"),
        (["inputs", "z", "type"], "normal", "inputs.z"),
        (["inputs", "d", "path"], ..., "inputs.d.path"),
        (["uuid"], ..., "uuid"),
    ],
)
def test_it_names_the_field_of_a_workload(path, new, pointer):
    (problem,) = problems_of(Workload, changed(WORKLOAD, path, new))
    assert problem.pointer == pointer


@pytest.mark.parametrize(
    ("status", "forbidden", "required"),
    [
        ("PASSED", [], ["correctness", "performance"]),
        ("INCORRECT_NUMERICAL", ["performance"], ["correctness"]),
        ("INCORRECT_SHAPE", ["correctness", "performance"], []),
        ("INCORRECT_DTYPE", ["correctness", "performance"], []),
        ("RUNTIME_ERROR", ["correctness", "performance"], []),
        ("COMPILE_ERROR", ["correctness", "performance"], []),
        ("TIMEOUT", ["correctness", "performance"], []),
    ],
)
def test_a_status_forbids_and_requires_its_payloads(status, forbidden, required):
    full = changed(EVALUATION, ["status"], status)
    bare = {key: full[key] for key in full if key not in ("correctness", "performance")}
    right = {key: full[key] for key in full if key not in forbidden}
    assert read(Evaluation, json.dumps(right)).status == status
    if forbidden:
        assert [item.pointer for item in problems_of(Evaluation, full)] == forbidden
    if required:
        assert [item.pointer for item in problems_of(Evaluation, bare)] == required


def test_it_takes_flashinfers_words_for_errors_that_are_not_finite():
    value = changed(EVALUATION, ["correctness", "max_relative_error"], "Infinity")
    assert read(Evaluation, json.dumps(value)).correctness.max_relative_error == "Infinity"


def test_it_refuses_nan_and_names_its_line():
    text = (
        '{"definition":"the NaN","solution":"s1","workload":{"axes":{"M":8},"inputs":{},'
        '"uuid":"w1"},\n "evaluation":{"status":"PASSED","correctness":'
        '{"max_absolute_error":NaN,"max_relative_error":Infinity}}}'
    )
    (problem,) = problems_of(Trace, text)
    assert problem.rule == "not valid JSON: NaN at line 2"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"name":"a","name":"b"}', "key 'name' occurs twice in one object"),
        ('{"name": 1e999}', "beyond the range of a double"),
        ('{"name": -Infinity}', "-Infinity at line 1"),
        ('{"name": ' + "1" * 5000 + "}", "more than 4300 digits"),
        ("[" * 100_000, "nested too deeply"),
        ('{"name":\n\n}', "at line 3"),
    ],
)
def test_it_refuses_what_is_no_json(text, rule):
    (problem,) = problems_of(Solution, text)
    assert problem.rule.startswith("not valid JSON: ")
    assert rule in problem.rule


def test_it_refuses_bytes_that_are_not_utf8():
    with pytest.raises(InvalidRecord, match="not UTF-8, offset 2"):
        read(Solution, b'{"\xff"}')


@pytest.mark.parametrize("value", [[], None, 3, "text"])
def test_it_refuses_a_body_that_is_no_object(value):
    (problem,) = problems_of(Solution, value)
    assert problem.pointer == ""


def test_a_record_cannot_be_changed():
    definition = read(Definition, json.dumps(DEFINITION))
    with pytest.raises(ValueError, match="frozen"):
        definition.name = "other"
