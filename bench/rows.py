"""The rows: what is measured, one function each."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bench.client import Answer, Session
from bench.commit import CommitProbe
from bench.dataset import entity, entity_name, relation, sentence, token
from bench.errors import BenchError
from bench.figures import HUNDREDS_PER_SECOND, MEGABYTES, MILLISECONDS, SECONDS, TIMES, Unit
from bench.replies import Check, found, graph_counts, holds, is_path, names_of, same
from bench.servers import FLOOR, FOLLOWERS, LOG, SPEAKERS, SQLITE, WHOLE_MEMORY_LIMIT
from bench.stage import Stage

HUNDRED = 100
PROBE = "probe"  # takes the place of a server's name in the figures of a probe
REAL = tuple(name for name in SPEAKERS if name != FLOOR)


@dataclass(frozen=True, slots=True)
class Probe:
    """Something other than a server, sampled in the same rounds as a row."""

    key: str
    title: str
    unit: Unit
    place: Callable[[Path], CommitProbe]


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: `sample` returns the seconds (or bytes) of one repetition.

    The contestants of a row that alternates take one sample at a time.
    """

    key: str
    title: str
    unit: Unit
    sample: Callable[[Stage], float]
    most: int = 1000
    servers: Sequence[str] = SPEAKERS
    on_empty: bool = False
    writes: bool = False
    alternate: bool = False
    max_size: int | None = None
    probe: Probe | None = None


def start(stage: Stage) -> float:
    """Start the process and wait for its reply to `initialize`."""
    began = perf_counter()
    with closing(stage.start()):
        return perf_counter() - began


def start_and_read(stage: Stage) -> float:
    """Start the process and wait for its reply to a first point read."""
    name = entity_name(stage.pick())
    began = perf_counter()
    with closing(stage.start()) as session:
        answer = session.call("open_nodes", {"names": [name]})
        seconds = perf_counter() - began
        check(stage, session, answer, lambda text: found(text, name))
    return seconds


def point_read(stage: Stage) -> float:
    """Open one random entity."""
    name = entity_name(stage.pick())
    return ask(stage, "open_nodes", {"names": [name]}, lambda text: found(text, name))


def one_hit_search(stage: Stage) -> float:
    """Search for the word that one random entity alone has."""
    index = stage.pick()
    arguments = {"query": token(index)}
    name = entity_name(index)
    return ask(stage, "search_nodes", arguments, lambda text: found(text, name))


def read_graph(stage: Stage) -> float:
    """Read everything. Measured before the rows that write, so the counts are known."""
    counts = (stage.size, 2 * stage.size)
    return ask(stage, "read_graph", {}, lambda text: graph_counts(text) == counts)


def add_fact(stage: Stage) -> float:
    """Add one new observation to one random entity."""
    name = entity_name(stage.pick())
    content = f"{sentence(stage.rng)} {stage.new_number()}"
    arguments = {"observations": [{"entityName": name, "contents": [content]}]}
    right = [{"entityName": name, "addedObservations": [content]}]
    return ask(stage, "add_observations", arguments, lambda text: same(text, right))


def create_relation(stage: Stage) -> float:
    """Create one relation between two random entities."""
    source, target = entity_name(stage.pick()), entity_name(stage.pick())
    new = relation(source, target, f"bench-{stage.new_number()}")
    return ask(stage, "create_relations", {"relations": [new]}, lambda text: same(text, [new]))


def create_one(stage: Stage) -> float:
    """Create one entity of three observations."""
    return create(stage, 1)


def create_hundred(stage: Stage) -> float:
    """Create a hundred entities of three observations in one call."""
    return create(stage, HUNDRED)


def neighbours(stage: Stage) -> float:
    """Read one random entity and those one relation away."""
    name = entity_name(stage.pick())
    return ask(stage, "get_neighbors", {"name": name}, lambda text: name in names_of(text))


def subgraph(stage: Stage) -> float:
    """Read everything within two relations of one random entity."""
    name = entity_name(stage.pick())
    arguments = {"names": [name], "depth": 2}
    return ask(stage, "extract_subgraph", arguments, lambda text: name in names_of(text))


def path(stage: Stage) -> float:
    """Find the shortest path between two entities that are at most three relations apart."""
    source = entity_name(stage.pick())
    near = stage.session().call("get_neighbors", {"name": source, "depth": 3})
    target = stage.rng.choice(names_of(near.text))
    arguments = {"from": source, "to": target}
    return ask(stage, "find_path", arguments, lambda text: is_path(text, source, target))


def describe(stage: Stage) -> float:
    """Describe one random entity."""
    name = entity_name(stage.pick())
    return ask(stage, "describe_entity", {"name": name}, lambda text: name in text)


def delete_one(stage: Stage) -> float:
    """Delete one entity of three observations."""
    name = f"doomed-{stage.new_number():06d}"
    new = entity(stage.rng, name, f"unique {name}")
    stage.session().call("create_entities", {"entities": [new]})
    right = {"deletedEntities": [name], "deletedRelations": 0}
    return ask(stage, "delete_entities", {"entityNames": [name]}, lambda text: same(text, right))


def direct_read(stage: Stage) -> float:
    """Read one random entity and its relations in this process."""
    name = entity_name(stage.pick())
    began = perf_counter()
    with stage.direct().reading() as read:
        entities, _ = read.entities([name]), read.relations([name])
    seconds = perf_counter() - began
    return expect(stage, seconds, [item.name for item in entities] == [name])


def past_read(stage: Stage) -> float:
    """Read one random entity and its relations as they were when the store was loaded."""
    name = entity_name(stage.pick())
    began = perf_counter()
    with stage.direct().reading() as read:
        rows = read.history.state_at(stage.loaded_at, [name])
    seconds = perf_counter() - began
    return expect(
        stage,
        seconds,
        [(item.name, len(item.facts)) for item in rows.entities] == [(name, 3)],
    )


def expect(stage: Stage, seconds: float, is_right: bool) -> float:
    """Return the seconds. Raise BenchError unless what was read is right."""
    if not is_right:
        raise BenchError(f"{stage.title}: a read in this process returned the wrong entities")
    return seconds


def resident(stage: Stage) -> float:
    """Return the memory of the process after a call, so that what a call needs is loaded."""
    session = stage.session()
    session.call("open_nodes", {"names": [entity_name(0)]})
    return session.resident_bytes()


def on_disk(stage: Stage) -> float:
    """Return the size of the loaded store, before the rows that write."""
    return stage.stored_bytes()


def on_disk_ratio(stage: Stage) -> float:
    """Return the size of the loaded store as a multiple of the same memory as JSON lines."""
    return stage.stored_bytes() / stage.dataset_bytes


def bulk_import(stage: Stage) -> float:
    """Return the processor time of the import that filled the store."""
    return stage.import_seconds


def create(stage: Stage, count: int) -> float:
    """Return the seconds of creating `count` new entities in one call."""
    names = [f"new-{stage.new_number():06d}" for _ in range(count)]
    new = [entity(stage.rng, name, f"unique {name}") for name in names]
    return ask(stage, "create_entities", {"entities": new}, lambda text: same(text, new))


def ask(stage: Stage, tool: str, arguments: Mapping[str, object], right: Check) -> float:
    """Return the seconds of one call. Raise BenchError if its reply is wrong."""
    session = stage.session()
    answer = session.call(tool, arguments)
    check(stage, session, answer, right)
    return answer.seconds


def check(stage: Stage, session: Session, answer: Answer, right: Check) -> None:
    """Raise BenchError if a reply is wrong, unless it is a constant one.

    Constant replies are decoded too: what the client does between two calls decides how warm the
    caches are for the server, so it must be the same for all.
    """
    if not holds(right, answer.text) and stage.server.load is not None:
        raise session.failure(f"answered {answer.tool} wrongly: {answer.text[:300]}")


# In this order: starts while no session is open, then reads, then writes. Few writes keep the small
# store small.
START = Row("start", "start to initialize reply", MILLISECONDS, start, most=15, on_empty=True)
START_AND_READ = Row(
    "start_and_read",
    "start to first point read",
    MILLISECONDS,
    start_and_read,
    most=15,
    servers=(*SPEAKERS, LOG),
)
IMPORT = Row("import", "import, processor time", SECONDS, bulk_import, most=1, servers=(SQLITE,))
ON_DISK = Row("on_disk", "size on disk", MEGABYTES, on_disk, most=1, servers=REAL)
ON_DISK_RATIO = Row(
    "on_disk_ratio", "size on disk / JSON lines", TIMES, on_disk_ratio, most=1, servers=(SQLITE,)
)
POINT_READ = Row("point_read", "point read", MILLISECONDS, point_read)
SEARCH = Row("search", "one-hit search", MILLISECONDS, one_hit_search)
READ_GRAPH = Row(
    "read_graph",
    "read_graph",
    MILLISECONDS,
    read_graph,
    most=50,
    servers=REAL,
    max_size=WHOLE_MEMORY_LIMIT,
)
DESCRIBE = Row("describe", "describe_entity", MILLISECONDS, describe, servers=FOLLOWERS)
NEIGHBOURS = Row("neighbours", "get_neighbors", MILLISECONDS, neighbours, servers=FOLLOWERS)
SUBGRAPH = Row("subgraph", "extract_subgraph, depth 2", MILLISECONDS, subgraph, servers=FOLLOWERS)
PATH = Row("path", "find_path, up to 3 relations", MILLISECONDS, path, most=300, servers=FOLLOWERS)
DELETE_ONE = Row(
    "delete_one",
    "delete_entities x1",
    MILLISECONDS,
    delete_one,
    most=100,
    servers=FOLLOWERS,
    writes=True,
)
ADD_OBSERVATION = Row(
    "add_observation", "add_observations x1", MILLISECONDS, add_fact, most=200, writes=True
)
CREATE_RELATION = Row(
    "create_relation", "create_relations x1", MILLISECONDS, create_relation, most=200, writes=True
)
BARE_COMMIT = Probe("bare_commit", "one bare durable SQLite commit", MILLISECONDS, CommitProbe)
CREATE_ONE = Row(
    "create_one", "create_entities x1", MILLISECONDS, create_one, most=200, writes=True
)
POINT_WRITE = Row(
    "point_write",
    "create_entities x1, in turn with bare commits",
    MILLISECONDS,
    create_one,
    most=200,
    servers=(SQLITE,),
    writes=True,
    alternate=True,
    probe=BARE_COMMIT,
)
CREATE_HUNDRED = Row(
    "create_hundred",
    "create_entities x100",
    HUNDREDS_PER_SECOND,
    create_hundred,
    most=30,
    writes=True,
)
DIRECT_READ = Row("direct_read", "read in process", MILLISECONDS, direct_read, servers=(SQLITE,))
PAST_READ = Row(
    "past_read",
    "read in process, as of before the writes",
    MILLISECONDS,
    past_read,
    servers=(SQLITE,),
)
RESIDENT = Row("resident", "resident memory, after all", MEGABYTES, resident, most=1, on_empty=True)

ROWS = (
    START,
    START_AND_READ,
    IMPORT,
    ON_DISK,
    ON_DISK_RATIO,
    POINT_READ,
    SEARCH,
    READ_GRAPH,
    DESCRIBE,
    NEIGHBOURS,
    SUBGRAPH,
    PATH,
    DELETE_ONE,
    ADD_OBSERVATION,
    CREATE_RELATION,
    CREATE_ONE,
    POINT_WRITE,
    CREATE_HUNDRED,
    DIRECT_READ,
    PAST_READ,
    RESIDENT,
)
