-- usable by: 3
-- Which schema a program must know to use the database after a migration: servers of two versions can run at once.
ALTER TABLE migrations ADD COLUMN usable_by integer;
