"""Polymnia: one memory server for AI agents that speaks every memory dialect."""

__version__ = "0.1.0"
