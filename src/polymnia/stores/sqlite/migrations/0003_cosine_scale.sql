-- Models differ in the cosines of unrelated texts: the scale is measured when a model is used first. NULL: not measured.
ALTER TABLE models ADD COLUMN cosine_zero REAL;
ALTER TABLE models ADD COLUMN cosine_unit REAL;
