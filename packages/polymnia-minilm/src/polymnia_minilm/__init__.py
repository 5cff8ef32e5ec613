"""all-MiniLM-L6-v2 with int8 weights in ONNX, as a file in a package."""

from pathlib import Path

SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


def model_path() -> Path:
    """Return the installed model.onnx."""
    return Path(__file__).parent / "model.onnx"
