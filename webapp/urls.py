"""Addresses of the site: pages, REST, and two probes for whoever watches the machine."""

from django.contrib import admin
from django.urls import include, path

from leaderboard.views.pages.sign_in import operator_sign_in
from leaderboard.views.privacy import robots
from leaderboard.views.probes import healthz, readyz

handler400 = "leaderboard.errors.bad_request"
handler403 = "leaderboard.errors.permission_denied"
handler404 = "leaderboard.errors.page_not_found"
handler500 = "leaderboard.errors.server_error"

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("robots.txt", robots, name="robots"),
    path("admin/login/", operator_sign_in),
    path("admin/", admin.site.urls),
    path("api/", include("leaderboard.api.urls")),
    path("", include("leaderboard.views.pages.urls")),
]
