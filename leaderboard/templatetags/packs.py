"""Anchors of a knowledge pack's sources."""

from django import template

from leaderboard.views.presenters.packs import source_anchor

register = template.Library()
register.filter("source_anchor", source_anchor)
