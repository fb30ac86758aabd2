"""The evaluator: builds, checks, profiles and times a candidate. Imports no Django."""

HARNESS_VERSION = "2"
"""Part of every build-cache key and record; raised when a change can alter a verdict or a time."""

SCORING_VERSION = "1"
"""Raised when timing or tolerance changes; boards show one version at a time."""
