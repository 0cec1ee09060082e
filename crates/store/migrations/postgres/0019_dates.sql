-- Sessions without a date used to count at the last change of their file, which every copy has
-- another of. They are undated.
UPDATE session_grades SET counts_at = NULL WHERE session_start IS NULL AND counts_at IS NOT NULL;
