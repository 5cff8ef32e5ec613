"""Hooks of coding agents: a briefing when a session starts, and checkpoints of its conversation."""
