"""Check that the wheel has every file of the package: SQL, models and type marker included."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_wheel_has_every_file_of_the_package(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("polymnia/")}
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "polymnia").rglob("*.*")}
    assert packed == {name for name in source if "__pycache__" not in name}
