"""Errors with one-sentence messages."""

from __future__ import annotations


class InputError(ValueError):
    """Invalid call or input: the message names the thing, the value and what is allowed."""
