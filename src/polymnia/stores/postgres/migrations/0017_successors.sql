-- usable by: 6
-- Which observation of the entity replaced one that ended: its ordinal. NULL: none did, or it is unknown. Earlier programs do
-- not write it.
ALTER TABLE observations ADD COLUMN successor bigint;

-- Before this column, only a change that ended one observation of an entity and created one told which replaced which.
WITH replacing AS (
    SELECT workspace_id, id AS change FROM changes WHERE operation IN ('remember', 'revise')
), ended AS (
    SELECT o.workspace_id, o.entity, o.until AS change, min(o.row_key) AS row_key, min(o.ordinal) AS ordinal
    FROM observations AS o JOIN replacing AS r ON r.workspace_id = o.workspace_id AND r.change = o.until
    GROUP BY o.workspace_id, o.entity, o.until HAVING count(*) = 1
), created AS (
    SELECT o.workspace_id, o.entity, o.since AS change, min(o.ordinal) AS ordinal
    FROM observations AS o JOIN replacing AS r ON r.workspace_id = o.workspace_id AND r.change = o.since
    GROUP BY o.workspace_id, o.entity, o.since HAVING count(*) = 1
)
UPDATE observations AS o SET successor = created.ordinal
FROM ended JOIN created USING (workspace_id, entity, change)
WHERE o.workspace_id = ended.workspace_id AND o.row_key = ended.row_key AND created.ordinal > ended.ordinal;
