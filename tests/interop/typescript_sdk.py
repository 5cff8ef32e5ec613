"""The official TypeScript SDKs: the scripts that use them, and the modes of each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TypeScriptClient:
    """A script, the mode in which it connects, and the revision that it must negotiate."""

    script: str
    mode: str
    revision: str

    def __str__(self) -> str:
        return f"{self.script}-{self.mode}"


CLIENTS = (
    TypeScriptClient("sdk_v1", "legacy", "2025-11-25"),
    TypeScriptClient("sdk_v2", "legacy", "2025-11-25"),
    TypeScriptClient("sdk_v2", "auto", "2026-07-28"),
    TypeScriptClient("sdk_v2", "2026-07-28", "2026-07-28"),
)
