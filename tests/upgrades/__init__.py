"""Stores that earlier versions wrote, and what they hold."""
