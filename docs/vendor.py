"""Fetch the scripts of other projects that the web interface serves: `python -m docs.vendor`.

It needs npm and the network. To take a new version, change it here, run this, and put the hash that
it prints into the table.
"""

import io
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

STATIC = Path(__file__).parent.parent / "src/polymnia/web/static"


class VendoredFile(NamedTuple):
    """A file of an npm package, as it is there: where it goes, and the hash of its content."""

    package: str
    version: str
    source: str
    target: str
    sha256: str


FILES = (
    VendoredFile(
        "htmx.org",
        "2.0.11",
        "dist/htmx.min.js",
        "htmx.min.js",
        "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    ),
    VendoredFile(
        "htmx.org",
        "2.0.11",
        "LICENSE",
        "htmx.LICENSE",
        "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
    ),
    VendoredFile(
        "sigma",
        "3.0.3",
        "dist/sigma.min.js",
        "vendor/sigma.min.js",
        "58e30383ab428f832068d9d16a5215c65ba12430d438ed091c5703f398de9e16",
    ),
    VendoredFile(
        "sigma",
        "3.0.3",
        "LICENSE.txt",
        "vendor/sigma.LICENSE",
        "2d6beb4435a5186414986ef25facdea68619d0f3e1043b9a795f5c6233914013",
    ),
    VendoredFile(
        "graphology",
        "0.26.0",
        "dist/graphology.umd.min.js",
        "vendor/graphology.umd.min.js",
        "dc337efa23903f61e064c8e7e7f93a429e6855dccfc2458802b4ed30c621c087",
    ),
    VendoredFile(
        "graphology",
        "0.26.0",
        "LICENSE.txt",
        "vendor/graphology.LICENSE",
        "9d396b4882c329077f32861c0d6822dcee48f2d0ff6196d8459af70844196275",
    ),
    VendoredFile(
        "graphology-layout-forceatlas2",
        "0.10.1",
        "iterate.js",
        "vendor/forceatlas2-iterate.js",
        "a20b1bbc2e5dfb94fc09f8ce75acf600974893a658a5e188bb2e429598cd2276",
    ),
    VendoredFile(
        "graphology-layout-forceatlas2",
        "0.10.1",
        "LICENSE.txt",
        "vendor/forceatlas2.LICENSE",
        "9d396b4882c329077f32861c0d6822dcee48f2d0ff6196d8459af70844196275",
    ),
)


def main() -> int:
    """Write every file anew, and report those whose hash is not the expected one."""
    unexpected = 0
    for file in FILES:
        data = _fetch(file)
        (STATIC / file.target).write_bytes(data)
        found = sha256(data).hexdigest()
        if found != file.sha256:
            unexpected += 1
            sys.stderr.write(f"{file.target}: expected {file.sha256}, got {found}\n")
    return 1 if unexpected else 0


def _fetch(file: VendoredFile) -> bytes:
    with TemporaryDirectory() as directory:
        command = ["npm", "pack", "--silent", f"{file.package}@{file.version}"]
        packed = subprocess.run(
            command, cwd=directory, check=True, capture_output=True, text=True
        ).stdout.split()[-1]
        with tarfile.open(fileobj=io.BytesIO((Path(directory) / packed).read_bytes())) as archive:
            found = archive.extractfile(f"package/{file.source}")
            assert found is not None, file
            return found.read()


if __name__ == "__main__":
    sys.exit(main())
