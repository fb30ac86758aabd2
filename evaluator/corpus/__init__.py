"""The corpus of cheats, mistakes and honest kernels in `tests/candidates`, run without a site."""
