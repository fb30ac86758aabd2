"""Triton candidates: checked, traced and compiled without a GPU into an ordinary library."""
