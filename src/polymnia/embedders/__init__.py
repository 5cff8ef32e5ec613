"""Embedders: from text to vectors, locally or through a service."""

from polymnia.embedders.open import open_embedder

__all__ = ["open_embedder"]
