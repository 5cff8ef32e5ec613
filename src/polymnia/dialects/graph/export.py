"""A graph as a diagram: Mermaid and Graphviz, with any text as a label."""

import re

from polymnia.model import Graph

_PLAIN_LABEL = re.compile(r"[A-Za-z0-9_ -]*[A-Za-z0-9_-]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def as_mermaid(graph: Graph) -> str:
    """A flowchart from left to right."""
    numbers = _numbers(graph)
    lines = ["graph LR"]
    lines += [f'  {node}["{_mermaid_text(name)}"]' for name, node in numbers.items()]
    for relation in graph.relations:
        arrow = f"-->|{_mermaid_label(relation.type)}|" if relation.type.strip() else "-->"
        lines.append(f"  {numbers[relation.source]} {arrow} {numbers[relation.target]}")
    return "\n".join(lines)


def as_dot(graph: Graph) -> str:
    """A directed graph in Graphviz's language."""
    numbers = _numbers(graph)
    lines = ["digraph G {"]
    lines += [f'  {node} [label="{_dot_text(name)}"];' for name, node in numbers.items()]
    for relation in graph.relations:
        ends = f"{numbers[relation.source]} -> {numbers[relation.target]}"
        lines.append(f'  {ends} [label="{_dot_text(relation.type)}"];')
    return "\n".join([*lines, "}"])


def _numbers(graph: Graph) -> dict[str, str]:
    """A node for every entity, then for every name that only relations have."""
    names = [entity.name for entity in graph.entities]
    names += [end for relation in graph.relations for end in (relation.source, relation.target)]
    return {name: f"n{number}" for number, name in enumerate(dict.fromkeys(names))}


def _mermaid_label(text: str) -> str:
    return text if _PLAIN_LABEL.fullmatch(text) else f'"{_mermaid_text(text)}"'


def _mermaid_text(text: str) -> str:
    """Characters that mean something to Mermaid, or to the HTML it makes, as entity codes; never empty."""
    spelled = [f"#{ord(each)};" if each in _MERMAID_SPECIAL else each for each in _CONTROL.sub(" ", text)]
    return "".join(spelled).strip() or " "


_MERMAID_SPECIAL = frozenset('"#<>&;`|[]{}()\\')


def _dot_text(text: str) -> str:
    """A quoted string's inside: backslashes and quotes escaped, line breaks as such, other control characters out."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r\n", "\n").replace("\n", "\\n")
    return _CONTROL.sub(" ", escaped)
