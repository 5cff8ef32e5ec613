"""A store with two names, by hard links or mounts, is read, but not written under either."""

import subprocess
import sys
from pathlib import Path

import pytest

from polymnia.errors import StoreError
from polymnia.stores import open_store
from tests.durability.graphs import create, names, opened


@pytest.fixture(params=["memory.db", "memory.jsonl", "memory.mcpmem"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    with opened(path) as memory:
        create(memory, "known")
    return path


def test_a_store_with_two_names_is_not_written(path: Path) -> None:
    other = path.with_name(f"other{path.suffix}")
    other.hardlink_to(path)
    before = path.read_bytes()
    for name in (path, other):
        with pytest.raises(StoreError, match=r"has 2 names \(hard links\)"), opened(name) as memory:
            create(memory, "lost")
    assert path.read_bytes() == before


def test_a_second_name_is_refused_while_a_server_writes_under_the_first(path: Path) -> None:
    other = path.with_name(f"other{path.suffix}")
    with opened(path) as memory:
        create(memory, "first")
        other.hardlink_to(path)
        with pytest.raises(StoreError, match="has 2 names"), opened(other) as second:
            create(second, "lost")
        other.unlink()
        create(memory, "last")
        assert names(memory) == ["known", "first", "last"]


def test_a_store_with_two_names_can_be_read(path: Path) -> None:
    path.with_name(f"other{path.suffix}").hardlink_to(path)
    store = open_store(str(path), read_only=True)
    with store.reading() as read:
        assert [entity.name for entity in read.entities()] == ["known"]
    store.close()


def test_a_store_that_is_mounted_as_a_single_file_is_not_written(path: Path) -> None:
    mounted = path.with_name(f"a mounted{path.suffix}")
    mounted.touch()
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.durability.graphs import create, opened\n"
        "with opened(Path(sys.argv[1])) as memory:\n"
        "    create(memory, 'lost')\n"
    )
    before = path.read_bytes()
    # In a mount namespace of its own, so that nothing stays mounted.
    script = 'mount --bind "$1" "$2" && exec "$3" -c "$4" "$2"'
    shell = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh"]
    names = [str(path), str(mounted), sys.executable, program]
    done = subprocess.run([*shell, *names], capture_output=True, text=True, check=False)
    if done.returncode and "Traceback" not in done.stderr:
        pytest.skip(f"this machine does not allow mounts: {done.stderr}")
    assert "is mounted as a single file" in done.stderr
    assert path.read_bytes() == before
