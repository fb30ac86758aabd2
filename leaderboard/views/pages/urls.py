"""Addresses of the pages. A page's address is permanent: it is linked from papers."""

from django.urls import path

from leaderboard.views.pages import (
    account,
    boards,
    home,
    model_runs,
    packs,
    problems,
    reference,
    sign_in,
    submissions,
    submit,
    submit_model,
    trajectories,
    workers,
)

urlpatterns = [
    path("", home.home, name="home"),
    path("boards/", boards.board_list, name="boards"),
    path("boards/<slug:target>/<str:problem>/", boards.board, name="board"),
    path("boards/<slug:target>/<str:problem>.csv", boards.board_csv, name="board-csv"),
    path("problems/", problems.problem_list, name="problems"),
    path("problems/<str:name>/", problems.problem, name="problem"),
    path("packs/", packs.pack_list, name="packs"),
    path("packs/<str:name>/", packs.pack, name="pack"),
    path("packs/<str:name>.txt", packs.pack_text, name="pack-text"),
    path("targets/", reference.targets, name="targets"),
    path("api-guide/", reference.api_guide, name="api-guide"),
    path("rules/", reference.rules, name="rules"),
    path("workers/", workers.workers, name="workers"),
    path("submit/", submit.submit, name="submit"),
    path("submissions/", submissions.submission_list, name="submissions"),
    path("submissions/mine/", submissions.my_submissions, name="my-submissions"),
    path("submissions/<uuid:submission_id>/", submissions.submission, name="submission"),
    path(
        "submissions/<uuid:submission_id>/progress/",
        submissions.progress,
        name="submission-progress",
    ),
    path(
        "submissions/<uuid:submission_id>/sources/<int:number>/",
        submissions.source,
        name="submission-source",
    ),
    path("submissions/<uuid:submission_id>/cancel/", submissions.cancel, name="submission-cancel"),
    path("submissions/<uuid:submission_id>/rerun/", submissions.rerun, name="submission-rerun"),
    path("model-runs/", model_runs.model_run_list, name="model-runs"),
    path("model-runs/mine/", model_runs.my_model_runs, name="my-model-runs"),
    path("model-runs/submit/", submit_model.submit_model, name="submit-model"),
    path("model-runs/<uuid:run_id>/", model_runs.model_run, name="model-run"),
    path("model-runs/<uuid:run_id>/progress/", model_runs.progress, name="model-run-progress"),
    path("model-runs/<uuid:run_id>/turns.csv", model_runs.turns_csv, name="model-run-csv"),
    path("model-runs/<uuid:run_id>/pause/", model_runs.pause, name="model-run-pause"),
    path("model-runs/<uuid:run_id>/resume/", model_runs.resume, name="model-run-resume"),
    path("model-runs/<uuid:run_id>/cancel/", model_runs.cancel, name="model-run-cancel"),
    path("trajectories/<uuid:trajectory_id>/", trajectories.trajectory, name="trajectory"),
    path("trajectories/<uuid:trajectory_id>/pause/", trajectories.pause, name="trajectory-pause"),
    path(
        "trajectories/<uuid:trajectory_id>/resume/", trajectories.resume, name="trajectory-resume"
    ),
    path(
        "trajectories/<uuid:trajectory_id>/cancel/", trajectories.cancel, name="trajectory-cancel"
    ),
    path("turns/<int:turn_id>/", trajectories.turn, name="turn"),
    path("turns/<int:turn_id>/prompt/", trajectories.prompt, name="turn-prompt"),
    path("turns/<int:turn_id>/parts/<str:name>/", trajectories.part, name="turn-part"),
    path("account/", account.account, name="account"),
    path("account/tokens/<int:token_id>/revoke/", account.revoke, name="token-revoke"),
    path("sign-in/", sign_in.SignIn.as_view(), name="sign-in"),
    path("sign-out/", sign_in.SignOut.as_view(), name="sign-out"),
]
