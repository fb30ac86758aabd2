"""The base prompt: what it says, by level and variant, and that its example really compiles."""

import subprocess

import pytest

from evaluator.agent.examples import example
from evaluator.agent.extraction import ExtractionState, extract
from evaluator.agent.messages import canonical_bytes
from evaluator.agent.prompt import base_messages
from evaluator.agent.requirements import CALL_SECONDS, COMPILE_SECONDS, LIBRARIES
from evaluator.agent.task import (
    GPU_CALLS,
    GPU_WARMUP,
    GUARD_KIB,
    HOST_CALLS,
    HOST_WARMUP,
    PTX_OF_FAMILY,
    TRIALS,
)
from evaluator.agent.variants import NO_SCHEDULE, SCHEDULED, Variant, find_variant, variants_for
from evaluator.bench import Bench
from evaluator.build import COMPILE_SECONDS as COMPILER_SECONDS
from evaluator.problems import find_problem, prototype
from evaluator.records.candidate import Candidate, Source
from evaluator.records.flashinfer import (
    ConstAxis,
    Definition,
    DType,
    RandomInput,
    TensorSpec,
    Workload,
)
from evaluator.records.problem import Baseline, Family, Problem
from evaluator.records.verdicts import Verdict
from evaluator.stages import compilation, policy
from evaluator.stages.policy import LIBRARIES as BANNED
from evaluator.targets import TARGETS, Arch, find_target
from evaluator.toolchain import Toolchain
from evaluator.triton.tracer.rules import OFFERED_TORCH
from evaluator.work import Work
from packs.pack import Level, pack_for
from tests.packs.lint import schedules_named

GEMM = "gemm_n7168_k5120"


def prompt(**changes) -> tuple[str, str]:
    arguments = {
        "problem": find_problem(GEMM),
        "target": find_target("h200"),
        "language": "cuda",
        "binding": "c",
        "pack": None,
        "level": Level.SCHEDULE,
        "variant": NO_SCHEDULE,
        "guidance": False,
        "target_speedup": 1.2,
        "turns": 8,
    }
    system, user = base_messages(**{**arguments, **changes})
    assert (system.role, user.role) == ("system", "user")
    return system.content, user.content


def test_it_states_what_the_paper_s_prompt_leaves_out():
    system, user = prompt()
    assert "- A call that has not ended after 30 s is stopped.\n" in system
    assert "A tensor map holds an address: encode it anew in each call.\n" in system
    for said in (
        "K = 5120, M = 8192, N = 7168.",
        "| C | output | bfloat16 | [M=8192, N=7168], 58720256 elements |",
        "|out - ref| <= 0.01 + 0.01 * |ref|",
        "memcheck over one call: no error at all",
        "3 trials on fresh secret inputs",
        "hashed before and after the call",
        "3 trials of 10 warm-up and 50 timed calls with cold caches",
        "- GMMA: matrix arithmetic of a warpgroup (`wgmma.mma_async`)",
        "The target is a speedup of 1.2",
        "There are 8 turns.",
        "latency of cuBLAS (`torch.matmul(A, B.T)`)",
        "no call can take less than 608.0 us",
        "return torch.matmul(A, B.T)",
        prototype(find_problem(GEMM)),
    ):
        assert said in user


def test_the_definition_is_shown_without_tags_and_whatever_order_it_was_stored_in():
    problem = find_problem(GEMM)
    stored = problem.model_dump(mode="json")
    stored["definition"]["tags"] = ["secret-tag"]
    shuffled = {**stored, "definition": dict(sorted(stored["definition"].items(), reverse=True))}
    tagged, reordered = Problem.model_validate(stored), Problem.model_validate(shuffled)
    assert "secret-tag" not in prompt(problem=tagged)[1]
    assert prompt(problem=tagged) == prompt(problem=reordered) == prompt()


def test_equal_arguments_give_equal_bytes():
    arguments = {
        "problem": find_problem("mha_bwd_d128"),
        "target": find_target("h200"),
        "language": "cuda",
        "binding": "c",
        "pack": pack_for(Arch.HOPPER),
        "level": "schedule",
        "variant": variants_for("mha_backward", "hopper")[1],
        "guidance": True,
        "target_speedup": 1.2,
        "turns": 8,
    }
    first = canonical_bytes(base_messages(**arguments))
    assert first == canonical_bytes(base_messages(**arguments))
    assert first != canonical_bytes(base_messages(**{**arguments, "turns": 7}))


@pytest.mark.parametrize("level", Level)
def test_the_pack_s_text_enters_to_the_letter(level):
    pack = pack_for(Arch.HOPPER)
    system, _ = prompt(pack=pack, level=level)
    assert pack.text(level) in system
    assert ("no library that you can include" in system) is level.holds(Level.FUNCTIONS)


def test_variant_and_guidance_add_their_texts_and_nothing_else():
    pack, problem = pack_for(Arch.HOPPER), find_problem("mha_with_lse_d128")
    variant = find_variant("fa3-forward", problem.family, Arch.HOPPER)
    plain, _ = prompt(pack=pack, problem=problem)
    with_both, _ = prompt(pack=pack, problem=problem, variant=variant, guidance=True)
    family = problem.family
    text = pack.text(Level.SCHEDULE, schedules=variant.schedules, guidance_for=family)
    assert with_both == plain.replace(pack.text(Level.SCHEDULE), text)
    assert with_both != plain


def test_bad_choices_are_refused_in_words():
    pack = pack_for(Arch.HOPPER)
    scheduled = variants_for("gemm", "hopper")[1]
    with pytest.raises(ValueError, match="only level schedule holds schedules"):
        prompt(pack=pack, level="contracts", variant=scheduled)
    with pytest.raises(KeyError, match="has no schedule 'none-such'"):
        prompt(pack=pack, variant=Variant(slug="x", title="X", schedules=("none-such",)))
    with pytest.raises(ValueError, match="language 'rust' is not known; known: cuda, cpp, triton"):
        prompt(language="rust")
    with pytest.raises(ValueError, match="target h200 takes no cpp"):
        prompt(language="cpp")
    with pytest.raises(ValueError, match="target host takes no cuda"):
        prompt(target=find_target("host"))


def test_the_host_target_is_told_of_no_gpu():
    problem = find_problem("gemm_n256_k256")
    system, user = prompt(problem=problem, target=find_target("host"), language="cpp")
    assert "g++ -O3 -march=native -std=c++17" in system
    assert "3 trials of 3 warm-up and 20 timed calls" in user
    for word in ("CUDA", "memcheck", "GMMA", "tensor map", "Required instructions"):
        assert word not in system + user


@pytest.mark.parametrize("binding", ["c", "tvm-ffi"])
def test_each_binding_has_its_own_entry_point(binding):
    system, user = prompt(binding=binding)
    is_ffi = binding == "tvm-ffi"
    assert ("Export the entry point with `TVM_FFI_DLL_EXPORT_TYPED_FUNC(run" in system) is is_ffi
    assert prototype(find_problem(GEMM), binding) in user
    assert ("-ltvm_ffi" in system) is is_ffi


def test_what_it_says_of_the_evaluation_is_what_the_evaluation_does():
    from evaluator.judge.arena import GUARD_BYTES
    from evaluator.judge.checking import TRIALS as CHECKED
    from evaluator.judge.judge import CALL_SECONDS as JUDGE_SECONDS
    from evaluator.judge.measuring import GPU_PLAN, HOST_PLAN

    assert (GPU_PLAN.trials, GPU_PLAN.warmup, GPU_PLAN.calls) == (TRIALS, GPU_WARMUP, GPU_CALLS)
    assert (HOST_PLAN.trials, HOST_PLAN.warmup, HOST_PLAN.calls) == (
        TRIALS,
        HOST_WARMUP,
        HOST_CALLS,
    )
    assert (CHECKED, GUARD_BYTES) == (TRIALS, GUARD_KIB << 10)
    assert (COMPILER_SECONDS, JUDGE_SECONDS) == (COMPILE_SECONDS, CALL_SECONDS)
    assert set(BANNED) == set(LIBRARIES)
    assert {family for target in TARGETS.values() for family in target.families} == set(
        PTX_OF_FAMILY
    )


@pytest.mark.parametrize(("place", "variants"), SCHEDULED.items())
def test_every_variant_names_schedules_that_the_pack_has_for_the_family(place, variants):
    architecture, family = place
    known = {schedule.slug for schedule in pack_for(architecture).schedules_for(family)}
    assert len(variants) == 2
    assert {slug for variant in variants for slug in variant.schedules} <= known


@pytest.mark.parametrize(("place", "variants"), SCHEDULED.items())
def test_no_variant_refers_to_a_schedule_that_it_does_not_show(place, variants):
    pack = pack_for(place[0])
    for variant in variants:
        shown = [pack.schedule(slug) for slug in variant.schedules]
        named = set().union(*(schedules_named(one, pack) for one in shown))
        assert named <= set(variant.schedules), variant.slug
        assert variant.schedules[-1] == variant.slug


def test_the_paper_s_variants_are_no_schedule_and_two_schedules():
    slugs = [variant.slug for variant in variants_for(Family.GEMM, Arch.HOPPER)]
    assert slugs == ["no-schedule", "multicast", "warp-specialisation"]
    assert variants_for("gemm", "hopper", "contracts") == (NO_SCHEDULE,)
    assert variants_for("other", "hopper") == (NO_SCHEDULE,)
    assert variants_for("gemm", "x86-64") == (NO_SCHEDULE,)


def test_an_unknown_variant_lists_the_known_ones():
    with pytest.raises(KeyError, match="known: no-schedule, multicast, warp-specialisation"):
        find_variant("fa3-forward", "gemm", "hopper")


@pytest.mark.parametrize(
    ("language", "binding", "tag"),
    [
        ("cuda", "c", "cuda"),
        ("cuda", "tvm-ffi", "cuda"),
        ("cpp", "c", "cpp"),
        ("triton", "c", "python"),
    ],
)
def test_the_example_is_what_extraction_takes(language, binding, tag):
    code = example(language, binding)
    found = extract(f"```{tag}\n{code}```\n", finish_reason="stop", language=language)
    assert (found.state, found.source) == (ExtractionState.EXTRACTED, code)


@pytest.mark.parametrize(("binding", "architecture"), [("c", "100a"), ("tvm-ffi", "90a")])
def test_the_cuda_examples_compile_without_a_warning(tmp_path, binding, architecture):
    toolchain = Toolchain.find()
    source = tmp_path / "kernel.cu"
    source.write_text(example("cuda", binding))
    ffi = toolchain.need_tvm_ffi()
    gencode = f"arch=compute_{architecture},code=sm_{architecture}"
    command = [
        toolchain.need("nvcc").path, "-O3", "-std=c++17", "-gencode", gencode, "-Xcompiler",
        "-fPIC", "-Werror", "all-warnings", "-isystem", ffi.include, "-c", source,
        "-o", tmp_path / "kernel.o",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_cpp_example_compiles_without_a_warning(tmp_path):
    source = tmp_path / "kernel.cpp"
    source.write_text(example("cpp", "c"))
    command = [
        "g++",
        "-O3",
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fPIC",
        "-shared",
        source,
    ]
    done = subprocess.run([*command, "-o", tmp_path / "k.so"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


SCALE_ROWS = Problem(
    name="scale_rows",
    title="Rows times factors",
    family=Family.OTHER,
    definition=Definition(
        name="scale_rows",
        op_type="elementwise",
        axes={"R": ConstAxis(type="const", value=4096), "C": ConstAxis(type="const", value=1024)},
        inputs={
            "X": TensorSpec(shape=("R", "C"), dtype=DType.BFLOAT16),
            "S": TensorSpec(shape=("R",), dtype=DType.BFLOAT16),
        },
        outputs={"Y": TensorSpec(shape=("R", "C"), dtype=DType.BFLOAT16)},
        reference="import torch\n\n\ndef run(X, S):\n    return X * S[:, None]\n",
    ),
    workload=Workload(
        axes={},
        inputs={name: RandomInput(type="random") for name in ("X", "S")},
        uuid="6f1f2f0e-53b5-4b0e-9a5e-0d4a39e5c1aa",
    ),
    flop_count=4096 * 1024,
    byte_count=2 * (2 * 4096 * 1024 + 4096),
    baseline=Baseline(name="torch", call="X * S[:, None]"),
    targets=("host", "h200", "b200"),
)


@pytest.mark.parametrize(
    ("language", "target", "name"),
    [
        ("cuda", "h200", "kernel.cu"),
        ("triton", "h200", "kernel.py"),
        ("triton", "b200", "kernel.py"),
        ("cpp", "host", "kernel.cpp"),
    ],
)
def test_the_example_passes_the_stages_of_the_build(tmp_path, language, target, name):
    candidate = Candidate(
        problem=SCALE_ROWS.name,
        target=target,
        language=language,
        sources=(Source(path=name, content=example(language, "c")),),
        entry_file=name,
    )
    work = Work(
        candidate=candidate, problem=SCALE_ROWS, target=find_target(target), folder=tmp_path
    )
    bench = Bench.of_this_machine(cache=None)
    for stage in (policy, compilation):
        result = stage.run(work, bench)
        assert result.verdict is Verdict.PASSED, result.message


def test_triton_is_told_its_own_rules():
    system, user = prompt(language="triton", pack=pack_for(Arch.HOPPER))
    assert "Its functions cannot be called from Triton" in system
    assert "copy what you use into your file" not in system
    for said in ("Define `def run(...)` at the top level", OFFERED_TORCH, "No autotuning"):
        assert said in system
    assert "nvcc" not in system.replace(pack_for(Arch.HOPPER).text(Level.SCHEDULE), "")
    assert "1. Policy: what the file imports and calls." in user
    assert prototype(find_problem(GEMM), "c", "triton") in user
