"""Embedders turn texts into vectors, locally or through a service."""

from polymnia.embedders.base import open_embedder

__all__ = ["open_embedder"]
