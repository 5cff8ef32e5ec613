-- usable by: 5
-- Models differ in the cosines of unrelated texts: the scale is measured when a model is used first. NULL: not measured.
ALTER TABLE models
    ADD COLUMN cosine_zero double precision,
    ADD COLUMN cosine_unit double precision;
