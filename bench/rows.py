"""The rows: what is measured, one function each; a new row is one more in ROWS."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bench.client import Answer, Session
from bench.commit import CommitProbe
from bench.dataset import entity, entity_name, relation, sentence, token
from bench.figures import HUNDREDS_PER_SECOND, MEGABYTES, MILLISECONDS, Unit
from bench.replies import Check, found, graph_counts, holds, is_path, names_of, same
from bench.servers import FLOOR, FOLLOWERS, LOG, SPEAKERS
from bench.stage import Stage

HUNDRED = 100
PROBE = "probe"  # stands where a server's name would, in the figures of a probe
REAL = tuple(name for name in SPEAKERS if name != FLOOR)


@dataclass(frozen=True, slots=True)
class Probe:
    """Something that is no server, sampled in the same rounds as a row."""

    key: str
    title: str
    unit: Unit
    place: Callable[[Path], CommitProbe]


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: `sample` gives seconds (or bytes) of one repetition."""

    key: str
    title: str
    unit: Unit
    sample: Callable[[Stage], float]
    most: int = 1000
    servers: Sequence[str] = SPEAKERS
    on_empty: bool = False
    writes: bool = False
    probe: Probe | None = None


def start(stage: Stage) -> float:
    """From spawning the process to its reply to `initialize`."""
    began = perf_counter()
    with closing(stage.start()):
        return perf_counter() - began


def start_and_read(stage: Stage) -> float:
    """From spawning the process to its reply to a first point read."""
    name = entity_name(stage.pick())
    began = perf_counter()
    with closing(stage.start()) as session:
        answer = session.call("open_nodes", {"names": [name]})
        seconds = perf_counter() - began
        check(stage, session, answer, lambda text: found(text, name))
    return seconds


def first_read(stage: Stage) -> float:
    """Open one random entity that this session has not opened before."""
    name = entity_name(stage.pick_unread())
    return ask(stage, "open_nodes", {"names": [name]}, lambda text: found(text, name))


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
    """Read everything; taken before the rows that write, so the counts are known."""
    counts = (stage.size, 2 * stage.size)
    return ask(stage, "read_graph", {}, lambda text: graph_counts(text) == counts)


def add_observation(stage: Stage) -> float:
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
    """One random entity and those one relation away."""
    name = entity_name(stage.pick())
    return ask(stage, "get_neighbors", {"name": name}, lambda text: name in names_of(text))


def subgraph(stage: Stage) -> float:
    """Everything within two relations of one random entity."""
    name = entity_name(stage.pick())
    arguments = {"names": [name], "depth": 2}
    return ask(stage, "extract_subgraph", arguments, lambda text: name in names_of(text))


def path(stage: Stage) -> float:
    """The shortest path between two entities that are at most three relations apart."""
    source = entity_name(stage.pick())
    near = stage.session().call("get_neighbors", {"name": source, "depth": 3})
    target = stage.rng.choice(names_of(near.text))
    arguments = {"from": source, "to": target}
    return ask(stage, "find_path", arguments, lambda text: is_path(text, source, target))


def describe(stage: Stage) -> float:
    """One random entity with all it touches."""
    name = entity_name(stage.pick())
    return ask(stage, "describe_entity", {"name": name}, lambda text: name in text)


def delete_one(stage: Stage) -> float:
    """Delete one entity of three observations."""
    name = f"doomed-{stage.new_number():06d}"
    new = entity(stage.rng, name, f"unique {name}")
    stage.session().call("create_entities", {"entities": [new]})
    right = {"deletedEntities": [name], "deletedRelations": 0}
    return ask(stage, "delete_entities", {"entityNames": [name]}, lambda text: same(text, right))


def resident(stage: Stage) -> float:
    """Memory of the process, after a call: what a call needs is then loaded."""
    session = stage.session()
    session.call("open_nodes", {"names": [entity_name(0)]})
    return session.resident_bytes()


def on_disk(stage: Stage) -> float:
    """Size of the loaded store, before the rows that write."""
    return stage.stored_bytes()


def create(stage: Stage, count: int) -> float:
    """Seconds of creating `count` new entities in one call."""
    names = [f"new-{stage.new_number():06d}" for _ in range(count)]
    new = [entity(stage.rng, name, f"unique {name}") for name in names]
    return ask(stage, "create_entities", {"entities": new}, lambda text: same(text, new))


def ask(stage: Stage, tool: str, arguments: Mapping[str, object], right: Check) -> float:
    """Seconds of one call. Raises BenchError if its reply is not right."""
    session = stage.session()
    answer = session.call(tool, arguments)
    check(stage, session, answer, right)
    return answer.seconds


def check(stage: Stage, session: Session, answer: Answer, right: Check) -> None:
    """Raise BenchError if a reply that is not canned is not right.

    Canned ones are looked at too: what the client does between two calls decides how warm the server finds its caches,
    so it must be the same for all.
    """
    if not holds(right, answer.text) and stage.server.load is not None:
        raise session.failure(f"answered {answer.tool} wrongly: {answer.text[:300]}")


# In order: starts while no session is open, then reads, those of new names first, then
# writes. The caps on writes keep the small store small: all servers grow alike.
START = Row("start", "start to initialize reply", MILLISECONDS, start, most=15, on_empty=True)
START_AND_READ = Row(
    "start_and_read", "start to first point read", MILLISECONDS, start_and_read, most=15, servers=(*SPEAKERS, LOG)
)
ON_DISK = Row("on_disk", "size on disk", MEGABYTES, on_disk, most=1, servers=REAL)
FIRST_READ = Row("first_read", "point read, new names", MILLISECONDS, first_read)
POINT_READ = Row("point_read", "point read", MILLISECONDS, point_read)
SEARCH = Row("search", "one-hit search", MILLISECONDS, one_hit_search)
READ_GRAPH = Row("read_graph", "read_graph", MILLISECONDS, read_graph, most=50, servers=REAL)
DESCRIBE = Row("describe", "describe_entity", MILLISECONDS, describe, servers=FOLLOWERS)
NEIGHBOURS = Row("neighbours", "get_neighbors", MILLISECONDS, neighbours, servers=FOLLOWERS)
SUBGRAPH = Row("subgraph", "extract_subgraph, depth 2", MILLISECONDS, subgraph, servers=FOLLOWERS)
PATH = Row("path", "find_path, up to 3 relations", MILLISECONDS, path, most=300, servers=FOLLOWERS)
DELETE_ONE = Row("delete_one", "delete_entities x1", MILLISECONDS, delete_one, most=100, servers=FOLLOWERS, writes=True)
ADD_OBSERVATION = Row("add_observation", "add_observations x1", MILLISECONDS, add_observation, most=200, writes=True)
CREATE_RELATION = Row("create_relation", "create_relations x1", MILLISECONDS, create_relation, most=200, writes=True)
BARE_COMMIT = Probe("bare_commit", "one bare durable SQLite commit", MILLISECONDS, CommitProbe)
CREATE_ONE = Row("create_one", "create_entities x1", MILLISECONDS, create_one, most=200, writes=True, probe=BARE_COMMIT)
CREATE_HUNDRED = Row(
    "create_hundred", "create_entities x100", HUNDREDS_PER_SECOND, create_hundred, most=30, writes=True
)
RESIDENT = Row("resident", "resident memory, after all", MEGABYTES, resident, most=1, on_empty=True)

ROWS = (
    START,
    START_AND_READ,
    ON_DISK,
    FIRST_READ,
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
    CREATE_HUNDRED,
    RESIDENT,
)
