"""The tools that write: create, add, delete, upsert, merge, compact."""

from msgspec.json import encode

from polymnia.dialects import camel
from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.graph import shapes
from polymnia.engine import curate, entities, observations, relations


@tool(shapes.Entities, needs="write")
def create_entities(call: Call, arguments: shapes.Entities) -> Reply:
    """Create entities. Names that exist are left as they are; returns the entities that were created."""
    created = entities.create(call.memory, [camel.draft(each) for each in arguments.entities], by=call.by)
    return said([camel.entity_shape(each) for each in created])


@tool(shapes.Relations, needs="write")
def create_relations(call: Call, arguments: shapes.Relations) -> Reply:
    """Create directed relations between entities. Those that exist are skipped; returns the ones created."""
    created = relations.create(call.memory, [camel.relation(each) for each in arguments.relations], by=call.by)
    return said([camel.relation_shape(each) for each in created])


@tool(shapes.AddObservations, needs="write")
def add_observations(call: Call, arguments: shapes.AddObservations) -> Reply:
    """Add observations to existing entities, skipping those they have; returns what was added to each."""
    additions = [camel.addition(each) for each in arguments.observations]
    added = observations.add(call.memory, additions, by=call.by, skip_repeats=True)
    return said([camel.added_shape(each) for each in added])


@tool(shapes.DeleteEntities, needs="write", destructive=True, idempotent=True)
def delete_entities(call: Call, arguments: shapes.DeleteEntities) -> Reply:
    """Delete entities by name, and every relation that touches one of them."""
    deleted = entities.delete(call.memory, set(arguments.entity_names), by=call.by)
    names = [entity.name for entity in deleted.entities]
    return said({"deletedEntities": names, "deletedRelations": len(deleted.relations)})


@tool(shapes.DeleteObservations, needs="write", destructive=True, idempotent=True)
def delete_observations(call: Call, arguments: shapes.DeleteObservations) -> Reply:
    """Delete observations from entities by their exact text."""
    removed = observations.remove(call.memory, [camel.deletion(each) for each in arguments.deletions], by=call.by)
    return said({"deletedObservations": sum(len(each.observations) for each in removed)})


@tool(shapes.Relations, needs="write", destructive=True, idempotent=True)
def delete_relations(call: Call, arguments: shapes.Relations) -> Reply:
    """Delete relations by their exact from, to and relationType."""
    deleted = relations.delete(call.memory, [camel.relation(each) for each in arguments.relations], by=call.by)
    return said({"deletedRelations": len(deleted)})


@tool(shapes.Entities, needs="write", idempotent=True)
def upsert_entities(call: Call, arguments: shapes.Entities) -> Reply:
    """Create entities or, where they exist, add the observations they lack; an existing type is kept."""
    outcome = curate.upsert(call.memory, [camel.draft(each) for each in arguments.entities], by=call.by)
    return said([{"name": each.name, "created": each.created, "addedObservations": each.added} for each in outcome])


@tool(shapes.Merge, needs="write", destructive=True)
def merge_entities(call: Call, arguments: shapes.Merge) -> Reply:
    """Merge one entity into another: observations and relations move to the target, the source is deleted."""
    merged = curate.merge(call.memory, arguments.source, arguments.target, by=call.by)
    return said(
        {
            "source": arguments.source,
            "target": arguments.target,
            "movedObservations": merged.moved,
            "addedObservations": merged.added,
            "redirectedRelations": merged.redirected,
        }
    )


@tool(shapes.Nothing, needs="write", idempotent=True)
def compact(call: Call, arguments: shapes.Nothing) -> Reply:
    """Rewrite the store without what has been deleted. Nothing that is remembered changes."""
    curate.compact(call.memory)
    with call.memory.reading() as read:
        counts = read.counts()
    return said({"compacted": True, "entities": counts.entities, "relations": counts.relations})


def said(value: object) -> Reply:
    """A reply whose text is compact JSON."""
    return Reply(encode(value).decode())
