"""Pages by cursor: rows neither repeat nor get lost while new ones come in."""

from rest_framework.pagination import CursorPagination


class NewestFirst(CursorPagination):
    ordering = ("-created_at", "-id")
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200
