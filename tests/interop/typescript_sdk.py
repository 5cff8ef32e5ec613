"""The official TypeScript SDKs: the scripts that use them, and the modes of each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TypeScriptClient:
    """A script, how it is told to connect, and the revision it should settle on."""

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
