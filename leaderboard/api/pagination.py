"""Pages by cursor: rows neither repeat nor get lost while new ones come in."""

from django.utils.dateparse import parse_datetime
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request


class NewestFirst(CursorPagination):
    ordering = ("-created_at", "-id")
    page_size = 50
    invalid_cursor_message = "the cursor is none of ours; begin again without it"
    page_size_query_param = "page_size"
    max_page_size = 200

    def decode_cursor(self, request: Request) -> Cursor | None:
        """A cursor of somebody's own making must not reach the database. Raises NotFound."""
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            try:
                parsed = parse_datetime(cursor.position)
            except ValueError:
                parsed = None
            if parsed is None:
                raise NotFound(self.invalid_cursor_message)
        return cursor
