//! The database: what was graded, when and how. SQLite by default.
