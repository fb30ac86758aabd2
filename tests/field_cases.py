"""Which tests answer for which field case: an index to read.

The cases are failures seen in other services, retold; each has a number. `CASES` names for each
aspect of a case the tests that go through the public door: the command line, HTTP, or a stage with
its real tools. What only a GPU can show is there twice: recorded on an H200 and judged again
(`test_recorded_verdicts`), and as a folder of `tests/candidates` under the marker `gpu`.
"""

EVALUATOR, SITE = "evaluator/test_", "leaderboard/test_"

COMPILATION = f"{EVALUATOR}compilation.py::test_"
POLICY = f"{EVALUATOR}policy.py::test_"
SASS = f"{EVALUATOR}sass.py::test_"
COUNTERS = f"{EVALUATOR}counters.py::test_"
PROFILING = f"{EVALUATOR}profiling.py::test_"
CORRECTNESS = f"{EVALUATOR}correctness.py::test_"
COMPARISON = f"{EVALUATOR}comparison.py::test_"
ON_HOST = f"{EVALUATOR}judge_host_target.py::test_"
ARENA = f"{EVALUATOR}judge_arena.py::test_"
ADMISSION = f"{EVALUATOR}admission.py::test_"
CLI = f"{EVALUATOR}cli.py::test_"
WORKER = f"{EVALUATOR}worker.py::test_"
SUBMITTING = f"{SITE}api_submitting.py::test_"
SOLUTIONS = f"{SITE}api_solutions.py::test_"
IDEMPOTENCY = f"{SITE}api_idempotency.py::test_"
WORKER_API = f"{SITE}worker_api.py::test_"
DUTIES = f"{SITE}duties.py::test_"
DELIVERY = f"{SITE}delivery.py::test_"
HOSTILE = f"{SITE}hostile_input.py::test_"
SAFETY = f"{SITE}pages_safety.py::test_"
LARGE = f"{SITE}large_bodies.py::test_"
FORM = f"{SITE}pages_submit.py::test_"
PAGES = f"{SITE}pages_submissions.py::test_"
ROWS = f"{SITE}instruction_rows.py::test_"
RECORDS = f"{EVALUATOR}records_flashinfer.py::test_"

TRICK = "gpu/test_tricks.py::test_it_gets_the_verdict_that_its_folder_names"
BUILD = f"{EVALUATOR}corpus.py::test_the_build_lane_gives_the_verdict_that_the_trick_expects"
RECORDED = f"{EVALUATOR}recorded_verdicts.py::test_a_recorded_run_gets_its_verdict_in_these_words"

CASES: dict[str, dict[str, tuple[str, ...]]] = {
    "O-01 plain sm_90 chosen instead of sm_90a": {
        "built for sm_90a and nothing else; command and compiler version kept": (
            f"{COMPILATION}hopper_code_is_built_for_sm_90a_and_what_was_built_is_kept",
            f"{COMPILATION}the_build_is_for_the_targets_architecture_alone",
        ),
        "refused for sm_100a in words, the author's error": (
            f"{COMPILATION}hopper_code_for_blackwell_is_the_authors_error_and_names_the_architecture",
            f"{BUILD}[plain_sm90_feature]",
        ),
        "a compile error ends the job, nothing is retried": (
            f"{WORKER_API}a_compile_error_is_a_verdict_and_ends_the_job",
        ),
    },
    "O-02 source encodings and line ends": {
        "BOM, CRLF, backslash and space, accent: built": (
            f"{COMPILATION}odd_but_readable_sources_build",
        ),
        "stored, hashed and compiled bytes are those that came": (
            f"{SUBMITTING}the_bytes_stay_as_they_were_sent",
            f"{FORM}it_keeps_every_byte_of_an_uploaded_file",
            f"{COMPILATION}the_bytes_compiled_are_the_bytes_sent",
        ),
        "Latin-1 is refused with its offset": (
            f"{FORM}it_refuses_files_that_are_no_sources",
            f"{CLI}a_file_that_cannot_be_taken_exits_2",
        ),
        "UTF-16 gets one line": (
            f"{FORM}it_refuses_files_that_are_no_sources",
            f"{CLI}a_file_that_cannot_be_taken_exits_2",
            f"{SUBMITTING}a_utf16_file_gets_one_line",
            f"{SUBMITTING}a_body_in_utf16_is_no_json",
            f"{POLICY}bytes_that_are_no_text_get_one_line",
            f"{COMPILATION}utf16_gets_one_line",
        ),
        "the log is cut": (f"{COMPILATION}a_long_log_is_cut_and_keeps_the_errors",),
    },
    "O-03 entry point without C linkage": {
        "symbol looked up, near match, what to add; in the build lane": (
            f"{COMPILATION}an_entry_point_with_cpp_linkage_is_found_out_at_build_time",
            f"{COMPILATION}a_near_name_is_offered",
            f"{COMPILATION}the_tvm_ffi_binding_says_which_macro_is_missing",
            f"{BUILD}[no_extern_c]",
            f"{CLI}the_record_alone_is_printed_when_asked_for",
        ),
        "wrong parameters": (
            f"{COMPILATION}a_wrong_prototype_is_told_in_words",
            f"{COMPILATION}a_wrong_prototype_on_the_host_is_told_in_words",
            f"{BUILD}[wrong_signature]",
        ),
        "a crash in the call is this job's only": (
            f"{ON_HOST}it_blames_the_candidate_for_a_segmentation_fault",
            f"{ON_HOST}the_judge_stays_well_after_everything_that_candidates_did",
        ),
    },
    "O-04 compile log that reads the host's files": {
        "no byte, no path, no secret in what comes back": (
            f"{COMPILATION}the_log_holds_nothing_of_this_machine",
            f"{COMPILATION}it_cannot_embed_a_file_of_the_host",
            f"{POLICY}a_host_file_is_not_quoted",
            f"{POLICY}a_file_of_the_system_cannot_be_included_even_where_it_reads_empty",
            f"{BUILD}[host_file_include]",
        ),
        "the files are not there, the environment is empty": (
            f"{EVALUATOR}sandbox.py::test_it_sees_nothing_of_the_worker",
            f"{EVALUATOR}sandbox.py::test_it_has_only_the_named_environment",
            f"{EVALUATOR}compiler_log.py::"
            "test_it_takes_the_paths_of_this_machine_out_and_leaves_the_authors",
        ),
    },
    "O-05 build cache key leaves out fields": {
        "three builds for two targets and a newer compiler; hits are shown": (
            f"{COMPILATION}equal_sources_for_two_targets_and_a_newer_compiler_are_three_builds",
            f"{COMPILATION}the_cache_answers_the_second_time_with_the_same_bytes",
        ),
        "every byte, path, flag, tool and the harness are in the key": (
            f"{COMPILATION}everything_that_changes_a_build_changes_its_key",
            f"{COMPILATION}a_new_harness_builds_again",
        ),
        "the other call convention is refused before": (
            f"{SOLUTIONS}one_wrong_thing_is_named_by_its_field",
        ),
    },
    "O-06 include built by macros, spliced lines, digraphs": {
        "the header that entered is named": (
            f"{POLICY}it_bans_a_header_however_it_is_written_where_the_library_is_not_installed",
            f"{POLICY}it_bans_a_header_however_it_is_written_where_the_library_is_installed",
            f"{BUILD}[macro_include_paste]",
            f"{BUILD}[macro_include_splice]",
            f"{BUILD}[macro_include_digraph]",
        ),
    },
    "O-07 text that only mentions the library": {
        "passes": (
            f"{POLICY}it_lets_text_that_only_mentions_a_library_pass",
            f"{POLICY}asking_whether_a_header_exists_convicts_nobody_where_it_does_exist",
            f"{BUILD}[mentions_library]",
            f"{TRICK}[mentions_library]",
        ),
    },
    "O-08 loading the library at run time": {
        "convicted by what the process mapped": (
            f"{ON_HOST}a_vendor_library_opened_at_run_time_is_seen_in_the_process",
            f"{RECORDED}[correctness/h200_cublas_dlopen]",
            f"{TRICK}[cublas_dlopen]",
        ),
        "importing dlopen convicts nobody": (
            f"{COMPILATION}opening_libraries_at_run_time_is_not_convicted_here",
            f"{BUILD}[honest_plain]",
            f"{TRICK}[honest_plain]",
        ),
    },
    "O-09 cuBLAS through PyTorch's headers": {
        "one rule for both headers": (
            f"{POLICY}torch_headers_have_one_answer",
            f"{BUILD}[torch_headers]",
        ),
    },
    "O-10 all-zero output passes on tiny references": {
        "such a problem is not admitted": (
            f"{ADMISSION}it_refuses_a_softmax_over_393216_values_because_zeros_pass",
            f"{ADMISSION}it_refuses_an_operator_that_a_copy_of_the_input_solves",
            f"{ADMISSION}it_refuses_one_output_that_is_constant_beside_one_that_is_fine",
            f"{CLI}a_problem_is_admitted_only_with_its_proof",
        ),
        "every problem that ships was": (
            f"{ADMISSION}it_admits_the_small_twins_with_every_wrong_answer_failing",
            f"{EVALUATOR}problems_gpu.py::test_it_is_admitted",
        ),
    },
    "O-11 infinities, NaN, minus zero, one ulp of bf16": {
        "the table": (
            f"{COMPARISON}it_matches_as_the_rule_says",
            f"{COMPARISON}it_accepts_the_next_bf16_value",
        ),
        "NaN in the reference is the problem's fault": (
            f"{COMPARISON}it_counts_nan_in_the_reference_apart",
            f"{CORRECTNESS}a_reference_with_nan_is_our_fault",
            f"{ADMISSION}it_refuses_a_reference_that_holds_nan",
        ),
        "null and a first index instead of NaN": (
            f"{COMPARISON}it_holds_null_instead_of_nan",
            f"{CORRECTNESS}a_constant_ratio_and_values_that_are_not_finite_are_told",
        ),
    },
    "O-12 tail never written, stale memory looks right": {
        "counted and placed": (
            f"{CORRECTNESS}a_tail_that_was_never_written_is_counted_and_placed",
            f"{ON_HOST}it_tells_elements_that_were_never_written",
            f"{RECORDED}[correctness/h200_stale_tail]",
            f"{TRICK}[stale_tail]",
        ),
        "an empty body": (
            f"{ON_HOST}an_empty_body_leaves_every_element_unwritten",
            f"{RECORDED}[correctness/h200_empty_run]",
            f"{TRICK}[empty_run]",
        ),
        "poison before each call": (
            f"{ARENA}outputs_are_poison_before_a_call_and_inputs_differ_from_call_to_call",
            f"{COMPARISON}it_counts_elements_that_still_hold_the_poison",
        ),
    },
    "O-13 candidate overwrites its inputs": {
        "wiping inputs and outputs alike": (
            f"{ON_HOST}wiping_inputs_and_outputs_alike_is_no_agreement",
        ),
        "one changed byte, though the output is right": (
            f"{ON_HOST}it_sees_a_changed_input",
            f"{ARENA}a_flipped_bit_of_an_input_is_a_mutation",
            f"{RECORDED}[correctness/h200_input_writer]",
            f"{TRICK}[input_writer]",
        ),
    },
    "O-14 log-sum-exp in base 2": {
        "O fine, LSE wrong, the ratio as a hint": (
            f"{ON_HOST}a_log_sum_exp_in_base_2_is_wrong_beside_an_output_that_is_fine",
            f"{COMPARISON}it_hints_at_another_base_of_the_logarithm",
        ),
        "the page states the base": (
            f"{SITE}pages_problems.py::test_it_states_the_base_of_its_logarithm",
            f"{EVALUATOR}problems.py::test_a_description_states_base_mask_layout_and_tolerance",
        ),
    },
    "O-15 result depends on garbage or on a race": {
        "never passed": (
            f"{RECORDED}[correctness/h200_racy_reduction]",
            f"{TRICK}[racy_reduction]",
            f"{ON_HOST}a_result_that_depends_on_the_number_of_the_call_is_caught",
            f"{CORRECTNESS}two_calls_that_disagree_are_wrong",
        ),
        "honest differences within the tolerance pass": (
            f"{ON_HOST}bits_that_differ_from_call_to_call_are_no_failure_within_the_tolerance",
        ),
    },
    "O-20 which Hopper instructions count": {
        "the table": (
            f"{SASS}it_counts_on_hopper",
            f"{SASS}it_does_not_count_on_hopper",
            f"{SASS}the_recorded_hopper_listing_gives_exactly_the_kernels_that_count",
        ),
        "counts per opcode are stored": (f"{SASS}counts_cover_every_opcode",),
        "prefetch and flush alone are absent": (
            f"{SASS}a_binary_without_target_instructions_passes_and_says_so",
        ),
    },
    "O-21 a kernel that is only called HGMMA": {
        "names are no rows": (
            f"{SASS}names_sections_and_encodings_are_never_rows",
            f"{SASS}a_kernel_only_called_like_one_has_none",
            f"{TRICK}[name_decoy]",
        ),
        "nor in the profiler's kernel names": (
            f"{PROFILING}a_kernel_named_like_an_instruction_is_no_instruction",
        ),
    },
    "O-22 instruction present, never executed": {
        "static yes, dynamic no, no mark": (
            f"{SASS}a_guarded_instruction_stands_in_the_binary",
            f"{COUNTERS}an_instruction_that_no_thread_ran_is_not_executed",
            f"{COUNTERS}the_records_of_an_h200_still_load",
            f"{PROFILING}an_instruction_that_never_ran_passes_without_the_mark",
            f"{TRICK}[guarded_instruction]",
            f"{TRICK}[unlaunched_tma]",
        ),
        "correctness and speed stay visible": (
            f"{ROWS}it_ranks_by_its_speed_and_says_what_is_known",
            f"{ROWS}the_board_never_marks_a_kernel_that_did_not_run_its_instructions",
        ),
        "executed only when profiled does not count": (
            f"{COUNTERS}other_kernels_in_the_timed_run_make_the_instructions_unknown",
        ),
    },
    "O-23 profiler has no permission": {
        "unknown with the operator's fix, whatever the exit code": (
            f"{PROFILING}counters_that_are_not_permitted_are_unknown_with_the_operators_fix",
            f"{PROFILING}a_profile_that_came_to_nothing_is_unknown_and_never_a_no",
            f"{ROWS}the_page_tells_author_and_operator_why_nothing_was_counted",
        ),
        "correctness and timing are untouched": (
            f"{PROFILING}a_refused_profile_leaves_verdict_and_time_untouched",
            f"{ROWS}it_ranks_by_its_speed_and_says_what_is_known",
        ),
    },
    "O-29 FlashInfer-Trace solution that is almost right": {
        "each change by its field": (
            f"{SOLUTIONS}one_wrong_thing_is_named_by_its_field",
            f"{SOLUTIONS}a_refused_language_lists_the_allowed_ones",
            f"{SOLUTIONS}an_unknown_extra_field_is_accepted",
            f"{SOLUTIONS}two_paths_that_are_one_are_refused",
            f"{SOLUTIONS}a_bad_path_is_named_by_its_field",
            f"{SOLUTIONS}a_missing_binding_is_tvm_ffi",
            f"{RECORDS}it_names_the_field_and_the_rule_of_a_solution",
        ),
        "several errors in one reply": (
            f"{SOLUTIONS}several_errors_come_in_one_answer",
            f"{SUBMITTING}it_tells_all_errors_at_once",
        ),
    },
    "O-30 NaN and Infinity in JSON": {
        "refused before anything is stored": (
            f"{HOSTILE}a_trace_with_numbers_that_are_none_is_no_json",
            f"{SUBMITTING}what_is_no_json_is_refused_before_anything_is_stored",
            f"{HOSTILE}a_worker_cannot_store_a_number_that_is_none",
            f"{RECORDS}it_refuses_nan_and_names_its_line",
        ),
        "never sent": (
            f"{EVALUATOR}records.py::test_canonical_json_is_sorted_and_holds_no_nan",
            f"{COMPARISON}it_holds_null_instead_of_nan",
        ),
        "a claimed evaluation is not taken": (
            f"{HOSTILE}an_evaluation_that_the_client_claims_is_not_taken",
            f"{SOLUTIONS}an_evaluation_inside_a_solution_is_not_taken",
        ),
    },
    "O-31 retry after a lost answer": {
        "one submission, one job, one place": (
            f"{IDEMPOTENCY}the_same_key_and_body_give_the_same_submission_with_200",
            f"{IDEMPOTENCY}eight_equal_requests_at_once_make_one_submission",
            f"{HOSTILE}a_repeated_key_counts_once_against_the_limit",
        ),
        "other bytes under the key": (f"{IDEMPOTENCY}the_same_key_with_another_body_is_409",),
        "no key": (f"{IDEMPOTENCY}the_same_body_without_a_key_is_409_and_names_the_first",),
    },
    "O-32 huge or compressed body": {
        "300 MB of JSON": (f"{LARGE}a_huge_body_is_413_in_flat_memory",),
        "compressed: 415, never unpacked": (
            f"{LARGE}a_compressed_body_is_never_unpacked",
            f"{SUBMITTING}a_compressed_body_is_415",
        ),
        "no end": (
            f"{LARGE}a_body_without_an_end_is_413_and_others_are_served",
            f"{LARGE}others_are_served_while_a_body_does_not_end",
        ),
        "40 MB of spaces": (f"{LARGE}a_source_of_forty_megabytes_is_413",),
        "5,000 files": (f"{SUBMITTING}too_many_files_are_400_with_the_limit",),
        "limits are published": (f"{SITE}boards.py::test_the_root_publishes_the_limits",),
    },
    "O-37 broker delivers a running job again": {
        "the second delivery drops itself": (
            f"{DELIVERY}a_message_that_comes_again_during_a_long_job_changes_nothing",
            f"{WORKER_API}the_second_delivery_of_a_message_is_dropped",
            f"{WORKER_API}of_eight_claims_at_once_one_wins",
            f"{WORKER}it_claims_nothing_when_another_worker_was_faster",
        ),
        "the lease lives by beats, not by the broker": (
            f"{WORKER_API}a_heartbeat_lengthens_the_lease",
            f"{DELIVERY}without_beats_the_lease_ends_after_a_minute",
            f"{SITE}settings.py::test_every_queue_of_a_target_is_declared_and_a_typo_makes_none",
        ),
        "a late worker changes nothing": (
            f"{DUTIES}a_lapsed_lease_gives_the_work_to_another_and_the_late_one_409",
        ),
    },
    "O-38 poison job": {
        "a final state after three, told to author and operator": (
            f"{DUTIES}a_job_that_kills_its_worker_ends_after_three",
            f"{DELIVERY}a_crashing_job_is_kept_with_all_its_attempts",
            f"{PAGES}it_takes_the_blame_for_infrastructure_and_lists_the_attempts",
        ),
        "the others go first": (f"{DELIVERY}a_job_that_kills_its_worker_lets_the_others_go_first",),
        "the compiler that takes all memory": (
            f"{COMPILATION}a_compiler_without_memory_is_the_authors_error_and_names_the_limit",
        ),
        "a judge that dies": (
            f"{EVALUATOR}judge_client.py::"
            "test_a_judge_that_dies_costs_this_attempt_and_is_started_anew",
        ),
    },
    "O-40 script in a kernel name, source or log": {
        "text on every page, in the title, in embedded JSON": (
            f"{SAFETY}it_shows_hostile_text_as_text_on_every_page",
            f"{SAFETY}it_quotes_name_author_message_and_source_to_the_letter",
            f"{SAFETY}it_escapes_the_numbers_json_that_a_page_carries",
        ),
        "in error pages and the API": (
            f"{HOSTILE}an_error_page_shows_the_address_as_text",
            f"{HOSTILE}an_error_of_the_api_is_json_that_no_browser_runs",
            f"{HOSTILE}the_workers_page_shows_hostile_names_as_text",
        ),
        "a policy without inline script": (
            f"{SAFETY}it_sends_a_policy_without_inline_code_with_every_page",
            f"{SITE}probes.py::test_every_answer_forbids_inline_script",
            "browser/test_pages.py::test_axe_finds_nothing_on_any_page",
        ),
        "downloads are plain text under a name of ours": (
            f"{PAGES}it_numbers_the_source_and_offers_it_as_plain_text",
            f"{HOSTILE}a_download_is_named_by_us_whatever_the_file_was_called",
        ),
    },
}
