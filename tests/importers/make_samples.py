"""Write samples with the code of the programs that they come from.

`python make_samples.py samples/made`.

Needs an environment of its own with mcp-memory-service (12.2.0), mem0ai (2.2.1), graphiti-core
(0.31.1), mempalace (3.11.0) and basic-memory (0.22.1), and a Python from 3.12 on that loads
extensions of SQLite. No model is asked: for vectors, each program has a stand-in.
"""

import asyncio
import gzip
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_ORIGINS = """# Coffee Bean Origins

- [origin] Ethiopian beans taste of flowers #taste
- part_of [[Coffee Brewing Methods]]
"""
_METHODS = """# Coffee Brewing Methods

An exploration of manual brewing. See also [[Water Chemistry]].

## Observations
- [method] Pour over gives more clarity than French press #brewing (from experience)
- [technique] Water at 94 degrees works best

## Relations
- relates_to [[Coffee Bean Origins]]
- requires [[Proper Grinding]] (burr grinder)
"""


def main(folder: Path) -> None:
    """Write all samples."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for sample in ("mempalace.sqlite3", "memory-service.db"):
        Path(sample).unlink(missing_ok=True)
    write_mempalace(Path("mempalace.sqlite3"))
    write_graphiti(Path("graphiti.json"))
    with TemporaryDirectory() as home:
        write_basic_memory(Path("basic-memory").resolve(), home)
    with TemporaryDirectory() as directory:
        write_mem0(Path("mem0.json"), Path(directory))
    database = Path("memory-service.db")
    asyncio.run(write_memory_service(database, Path("memory-service.json")))
    Path("memory-service.db.gz").write_bytes(gzip.compress(database.read_bytes(), mtime=0))
    database.unlink()


def write_basic_memory(folder: Path, home: str) -> None:
    """Write notes with the program's own commands."""
    environment = {**os.environ, "HOME": home, "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false"}

    def run(*command: str) -> None:
        subprocess.run(["basic-memory", *command], env=environment, check=True)

    def write(title: str, content: str, *options: str) -> None:
        about = ("--title", title, "--folder", "brewing", "--content", content)
        run("tool", "write-note", "--project", "kitchen", *about, *options)

    shutil.rmtree(folder, ignore_errors=True)
    run("project", "add", "kitchen", str(folder), "--default", "--local")
    write("Coffee Bean Origins", _ORIGINS, "--type", "guide")
    write("Coffee Brewing Methods", _METHODS, "--tags", "coffee", "--tags", "brewing")
    more = ("--operation", "append", "--content", "- [rating] The Chemex is worth its price")
    run("tool", "edit-note", "--project", "kitchen", "brewing/coffee-brewing-methods", *more)


def write_mempalace(path: Path) -> None:
    """Write a knowledge graph of MemPalace."""
    from mempalace.knowledge_graph import KnowledgeGraph

    with KnowledgeGraph(str(path)) as graph:
        graph.add_entity("Ada", "person", {"role": "engineer", "nested": {"a": 1}})
        graph.add_triple(
            "Ada", "lives in", "Berlin", valid_from="2024-01-05", valid_to="2026-05-01"
        )
        graph.add_triple(
            "Ada",
            "lives in",
            "Munich",
            valid_from="2026-05-01",
            confidence=0.8,
            source_file="chat.txt",
        )
        graph.add_triple("Ada", "knows", "Zoë")


def write_graphiti(path: Path) -> None:
    """Write what the models of Graphiti dump."""
    from graphiti_core.edges import EntityEdge
    from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode

    start, end = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)
    of_shop: dict[str, Any] = {"group_id": "shop", "created_at": start}
    ada = EntityNode(
        name="Ada",
        labels=["Entity", "Person"],
        summary="",
        attributes={"role": "engineer"},
        **of_shop,
    )
    berlin = EntityNode(name="Berlin", labels=["Entity"], **of_shop)
    ends = {"source_node_uuid": ada.uuid, "target_node_uuid": berlin.uuid}
    fact: dict[str, Any] = {
        "name": "LIVES_IN",
        "fact": "Ada lives in Berlin",
        "valid_at": start,
        "invalid_at": end,
    }
    edge = EntityEdge(**ends, **fact, **of_shop)
    said: dict[str, Any] = {
        "source": EpisodeType.message,
        "source_description": "chat",
        "content": "Ada: I moved",
        "valid_at": start,
    }
    episode = EpisodicNode(name="message 1", entity_edges=[edge.uuid], **said, **of_shop)
    parts = {"nodes": [ada, berlin], "edges": [edge], "episodes": [episode]}
    dumped = {name: [item.model_dump(mode="json") for item in some] for name, some in parts.items()}
    path.write_text(json.dumps(dumped, indent=1) + "\n", "utf-8")


def write_mem0(path: Path, vectors: Path) -> None:
    """Write what `get_all` of mem0 returns."""
    os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none", "MEM0_DIR": str(vectors)}
    from mem0 import Memory
    from mem0.embeddings.mock import MockEmbeddings

    store = {
        "provider": "qdrant",
        "config": {"path": str(vectors / "db"), "embedding_model_dims": 10},
    }
    memory = Memory.from_config(
        {"vector_store": store, "history_db_path": str(vectors / "history.db")}
    )
    memory.embedding_model = MockEmbeddings()
    memory.add("Prefers window seats", user_id="zoe", metadata={"category": "travel"}, infer=False)
    memory.add("Is allergic to nuts", user_id="zoe", agent_id="concierge", infer=False)
    path.write_text(
        json.dumps(memory.get_all(filters={"user_id": "zoe"}), indent=1) + "\n", "utf-8"
    )


async def write_memory_service(database: Path, export: Path) -> None:
    """Write the SQLite file and the JSON export of mcp-memory-service.

    Memories, a deleted one, and associations.
    """
    os.environ["HOSTNAME"] = "desk"
    from mcp_memory_service.models.memory import Memory
    from mcp_memory_service.storage.graph import GraphStorage
    from mcp_memory_service.storage.mixins.embeddings import _HashEmbeddingModel
    from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
    from mcp_memory_service.sync.exporter import MemoryExporter
    from mcp_memory_service.utils.hashing import generate_content_hash

    storage = SqliteVecMemoryStorage(str(database))

    async def use_stand_in() -> None:
        storage.embedding_model = _HashEmbeddingModel(storage.embedding_dimension)

    storage._initialize_embedding_model = use_stand_in
    await storage.initialize()
    texts = (
        "The deploy script needs VPN access.\nAsk Dana.",
        "We chose PostgreSQL",
        "Zoë likes 茶",
        "gone",
    )
    hashes = [generate_content_hash(text) for text in texts]
    for number, (text, digest) in enumerate(zip(texts, hashes, strict=True)):
        memory = Memory(
            text,
            digest,
            ["deploy", "infra"],
            "note",
            {"source": "chat"},
            created_at=1760000000.5 + number,
        )
        await storage.store(memory, skip_semantic_dedup=True)
    await storage.delete(hashes[3])
    graph = GraphStorage(str(database))
    await graph.store_association(
        hashes[0], hashes[1], 0.7, ["semantic"], relationship_type="causes"
    )
    await graph.store_association(hashes[1], hashes[2], 0.6, ["semantic"])
    await MemoryExporter(storage).export_to_json(export)
    await graph.close()
    await storage.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
