"""A program ends with its own status while threads are inside the model."""

import subprocess
import sys

from tests.processes import TIMEOUT_S

PROGRAM = """
import threading
from polymnia.embedders import open_embedder

embedder = open_embedder("local")
is_running = threading.Event()

def embed(asking):
    while True:
        embedder.embed(["some words about gardens"] * 4, asking=asking)
        is_running.set()

for asking in (True, False):
    threading.Thread(target=embed, args=(asking,), daemon=True).start()
is_running.wait()
"""


def test_a_program_whose_threads_are_inside_the_model_ends_cleanly() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, timeout=TIMEOUT_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
