-- Which observation of the entity replaced one that ended: its ordinal. NULL: none did, or it is unknown.
ALTER TABLE observations ADD COLUMN successor INTEGER;

-- Before this column, only a change that ended one observation of an entity and created one told which replaced which.
UPDATE observations SET successor = created.ordinal
FROM (
    SELECT entity, until AS change, min(id) AS id, min(ordinal) AS ordinal FROM observations
    WHERE until IN (SELECT id FROM changes WHERE operation IN ('remember', 'revise'))
    GROUP BY entity, until HAVING count(*) = 1
) AS ended
JOIN (
    SELECT entity, since AS change, min(ordinal) AS ordinal FROM observations
    WHERE since IN (SELECT id FROM changes WHERE operation IN ('remember', 'revise'))
    GROUP BY entity, since HAVING count(*) = 1
) AS created ON created.entity = ended.entity AND created.change = ended.change
WHERE observations.id = ended.id AND created.ordinal > ended.ordinal;
