"""Addresses of the pages. A page's address is permanent: it is linked from papers."""

from django.urls import path

from leaderboard.views.pages import (
    account,
    boards,
    home,
    packs,
    problems,
    reference,
    sign_in,
    submissions,
    submit,
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
    path("account/", account.account, name="account"),
    path("account/tokens/<int:token_id>/revoke/", account.revoke, name="token-revoke"),
    path("sign-in/", sign_in.SignIn.as_view(), name="sign-in"),
    path("sign-out/", sign_in.SignOut.as_view(), name="sign-out"),
]
