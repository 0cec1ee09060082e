-- Which rules and weights graded a file: under others it is read again.

ALTER TABLE session_files ADD COLUMN rules TEXT;
