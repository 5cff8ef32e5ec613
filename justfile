# Commands for working on Polymnia; `just` lists them. Each runs in .venv, which `just setup` creates.

bin := if os() == "windows" { ".venv/Scripts" } else { ".venv/bin" }
python := if os() == "windows" { "python" } else { "python3" }

default:
    @just --list

# Create .venv with everything that the other commands need.
setup:
    {{python}} -m venv .venv
    {{bin}}/pip install -q --require-hashes -r requirements-dev.txt
    {{bin}}/pip install -q --no-deps -e .

# Run the unmarked tests, or what the arguments say: `just test tests/mcp -k ping`.
test *arguments:
    {{bin}}/pytest {{arguments}}

# Run the behaviour, protocol and dialect tests on SQLite and in memory, in about a minute.
quick *arguments:
    {{bin}}/pytest -q tests/behaviour tests/mcp tests/dialects -k 'not postgres and not jsonl and not binlog' {{arguments}}

# Run the durability matrices, crashes, hostile clients, crowds, and benchmarks as smoke tests.
slow:
    {{bin}}/pytest -m slow

# Run what the unmarked tests show for a few cases, for all: every store, role and shell, hostile inputs.
matrix:
    {{bin}}/pytest -m matrix

# Run other people's clients and servers, the conformance suites, and the web interface in a browser (needs Node 20 and Chromium).
interop:
    {{bin}}/pytest -m interop

# Check style.
lint:
    {{bin}}/ruff check .
    {{bin}}/ruff format --check .

# Repair what the linter can repair.
fix:
    {{bin}}/ruff check --fix .
    {{bin}}/ruff format .

# Check types.
types:
    {{bin}}/mypy

# Measure speed beside the reference server: `just bench` is short, `just bench --help` shows the options.
bench *arguments='--quick':
    {{bin}}/python -m bench {{arguments}}

# Write the table of benchmarks in docs/benchmarks.md, before a release, on an idle machine (some minutes).
bench-all *arguments:
    {{bin}}/python -m bench.whole {{arguments}}

# Check that the documentation is complete and its links resolve, and build the site.
docs:
    {{bin}}/pytest -n 0 tests/test_docs.py
    {{bin}}/mkdocs build --strict --quiet

# Write the parts of the documentation that are made from code.
generate:
    {{bin}}/python -m docs.generate

# Take the pictures of the web interface (needs Chromium).
screenshots *names:
    {{bin}}/python -m docs.screenshots {{names}}

# Check and pack the bundle for hosts of .mcpb files (needs Node 20).
bundle:
    npx --yes @anthropic-ai/mcpb@2.1.2 validate packages/mcpb/manifest.json
    npx --yes @anthropic-ai/mcpb@2.1.2 pack packages/mcpb dist/polymnia.mcpb

# Report which lines the unmarked tests reach.
coverage:
    {{bin}}/pytest --cov --cov-report=term --cov-report=xml

# Fetch the scripts of other projects that the web interface serves (needs npm).
vendor:
    {{bin}}/python -m docs.vendor

# Write the versions and hashes of all development packages to requirements-dev.txt.
lock *arguments:
    {{bin}}/uv pip compile -q --universal --python-version 3.11 --generate-hashes --all-extras --no-annotate \
        --custom-compile-command 'just lock' pyproject.toml -o requirements-dev.txt {{arguments}}

# Look up known vulnerabilities of the packages in requirements-dev.txt.
audit:
    {{bin}}/uv tool run pip-audit==2.10.1 --require-hashes --disable-pip -r requirements-dev.txt
