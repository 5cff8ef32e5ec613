"""Sixteen tools over projects that know nothing of each other: seven for the projects, nine for the graph in one."""

from polymnia.dialects.project.dialect import DIALECT

__all__ = ["DIALECT"]
