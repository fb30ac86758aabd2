"""REST under /api/v1/ and the worker API under /api/v1/worker/."""
