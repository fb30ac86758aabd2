"""For the operator's eyes: records are append-only, so nothing is edited here but a revocation."""

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from leaderboard.models import (
    ApiToken,
    Attempt,
    AuditEntry,
    Correction,
    Entrant,
    Evaluation,
    ModelRun,
    Submission,
    Trajectory,
    Worker,
)
from leaderboard.services.tokens import token_revoke


class ReadOnly(admin.ModelAdmin):
    """Lists and shows; adding, changing and deleting are done by services, with their audit."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Submission)
class SubmissionAdmin(ReadOnly):
    list_display = ("name", "entrant", "problem", "target", "state", "verdict", "created_at")
    list_filter = ("state", "verdict", "target")
    list_select_related = ("entrant", "problem")


@admin.register(Attempt)
class AttemptAdmin(ReadOnly):
    list_display = ("id", "lane", "target", "number", "state", "worker", "created_at", "message")
    list_filter = ("state", "lane", "target")


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnly):
    list_display = ("submission_id", "target", "verdict", "speedup", "valid", "trust", "worker")
    list_filter = ("verdict", "target", "valid", "trust")


@admin.register(ModelRun)
class ModelRunAdmin(ReadOnly):
    """The endpoint's key is no field here, not even encrypted."""

    list_display = ("name", "owner", "model", "problem", "target", "state", "created_at", "reason")
    list_filter = ("state", "target")
    list_select_related = ("owner", "problem")


@admin.register(Trajectory)
class TrajectoryAdmin(ReadOnly):
    list_display = ("id", "run", "variant", "number", "state", "ending", "failures", "reason")
    list_filter = ("state", "ending")
    list_select_related = ("run", "variant")


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = (
        "prefix",
        "scope",
        "user",
        "worker_name",
        "lanes",
        "targets",
        "last_used_at",
        "revoked_at",
    )
    list_select_related = ("user",)
    actions = ("revoke",)

    @admin.action(description="Revoke the chosen tokens")
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        for token in tokens:
            token_revoke(token=token, actor=request.user.get_username())


@admin.register(Worker)
class WorkerAdmin(ReadOnly):
    list_display = ("name", "state", "lanes", "targets", "last_seen", "note")


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    list_display = ("sequence", "created_at", "actor", "action", "subject")
    list_filter = ("action",)


admin.site.register((Entrant, Correction), ReadOnly)
