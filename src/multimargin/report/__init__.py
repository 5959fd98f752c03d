"""A page about a fitted model: one HTML file that needs nothing else and loads nothing."""

from __future__ import annotations

from .card import card
from .page import page
from .subject import Certificate, Grid, Judged, Subject, Support, Suspect, Weights

__all__ = ["Certificate", "Grid", "Judged", "Subject", "Support", "Suspect", "Weights", "card", "page"]
