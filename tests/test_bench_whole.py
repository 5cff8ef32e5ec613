"""Check the table of all benchmarks, in a short run beside a server that keeps nothing."""

from pathlib import Path

from bench.whole import BEGIN, END, main


def test_the_table_replaces_what_is_between_the_markers(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"above\n\n{BEGIN}\nearlier\n{END}\n\nbelow\n")
    options = ["--quick", "--sizes", "50", "--peer", "floor"]
    assert main([*options, "--cache", str(tmp_path), "--page", str(page)]) == 0
    text = page.read_text()
    assert text.startswith(f"above\n\n{BEGIN}\n\nCommit ")
    assert text.endswith(f"\n\n{END}\n\nbelow\n")
    assert "earlier" not in text
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert {row.partition(",")[0] for row in rows[2:]} == {"reference", "native", "recall"}
