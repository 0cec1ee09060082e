-- What was called verified is named after what was seen.
UPDATE session_grades SET outcome = 'checks_passed' WHERE outcome = 'verified';
