"""Diagrams of a graph as text, for Mermaid and Graphviz."""

import re

from polymnia.model import Graph

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def as_mermaid(graph: Graph) -> str:
    """Return a Mermaid flowchart from left to right."""
    nodes = _node_ids(graph)
    lines = ["graph LR"]
    lines += [f'  {node}["{_mermaid_text(name)}"]' for name, node in nodes.items()]
    for relation in graph.relations:
        arrow = f"-->|{_mermaid_label(relation.type)}|" if relation.type.strip() else "-->"
        lines.append(f"  {nodes[relation.source]} {arrow} {nodes[relation.target]}")
    return "\n".join(lines)


def as_dot(graph: Graph) -> str:
    """Return a directed graph in the DOT language."""
    nodes = _node_ids(graph)
    lines = ["digraph G {"]
    lines += [f'  {node} [label="{_dot_text(name)}"];' for name, node in nodes.items()]
    for relation in graph.relations:
        ends = f"{nodes[relation.source]} -> {nodes[relation.target]}"
        lines.append(f'  {ends} [label="{_dot_text(relation.type)}"];')
    return "\n".join([*lines, "}"])


def _node_ids(graph: Graph) -> dict[str, str]:
    """Return a node id for every entity, then for every name that only relations mention."""
    names = [entity.name for entity in graph.entities]
    names += [end for relation in graph.relations for end in (relation.source, relation.target)]
    return {name: f"n{number}" for number, name in enumerate(dict.fromkeys(names))}


def _mermaid_label(text: str) -> str:
    return (
        text if re.fullmatch(r"[A-Za-z0-9_ -]*[A-Za-z0-9_-]", text) else f'"{_mermaid_text(text)}"'
    )


def _mermaid_text(text: str) -> str:
    """Return the text with special characters of Mermaid and HTML as entity codes; never empty."""
    escaped = ""
    for character in _CONTROL.sub(" ", text):
        if character in _MERMAID_SPECIAL:
            escaped += f"#{ord(character)};"
        else:
            escaped += character
    return escaped.strip() or " "


_MERMAID_SPECIAL = frozenset('"#<>&;`|[]{}()\\')


def _dot_text(text: str) -> str:
    """Escape text for a quoted DOT string: keep line breaks, drop other control characters."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\r\n", "\n").replace("\n", "\\n")
    )
    return _CONTROL.sub(" ", escaped)
