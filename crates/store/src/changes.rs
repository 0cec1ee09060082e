//! Detects changes of the database by any process, and counts grades per model.

use sqlx::{AnyConnection, ConnectOptions as _, Connection as _, Row as _};

use super::row::Columns;
use super::statement::DatabaseEngine;
use super::{Store, StoreError};

/// Watches a database over its own connection.
pub struct ChangeWatcher {
    connection: AnyConnection,
    engine: DatabaseEngine,
    place: String,
}

impl ChangeWatcher {
    /// Returns a number that differs after every change, by this process or another. Its value has
    /// no meaning of its own.
    pub async fn version(&mut self) -> Result<i64, StoreError> {
        let row =
            sqlx::query(self.engine.change_counter_query()).fetch_one(&mut self.connection).await;
        let version = row.and_then(|row| row.try_get(0));
        version.map_err(|error| StoreError::from_sqlx(self.engine, &self.place, error))
    }

    /// Closes the connection.
    pub async fn close(self) {
        // Nothing was written over this connection, so an error loses nothing.
        let _ = self.connection.close().await;
    }
}

impl Store {
    /// Starts watching for changes. Returns `None` for a database in memory, which has only one
    /// connection.
    pub async fn watch_changes(&self) -> Result<Option<ChangeWatcher>, StoreError> {
        // A pool with one connection is a database in memory.
        if self.pool.options().get_max_connections() == 1 {
            return Ok(None);
        }
        let options = self.pool.connect_options();
        // SQLite's `data_version` can only be compared with values read on the same connection.
        let connection = options.connect().await.map_err(|error| self.to_store_error(error))?;
        Ok(Some(ChangeWatcher { connection, engine: self.engine, place: self.place.clone() }))
    }

    /// Returns the number of grades made by each model, sorted by model name.
    pub async fn grades_by_model(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let query = "SELECT grader_model, COUNT(*) AS grades FROM session_quality_grades \
                     GROUP BY grader_model ORDER BY grader_model";
        let read = |row: &Columns<'_>| Ok((row.get("grader_model")?, row.get("grades")?));
        Ok(self.fetch(query, [], read).await?.items)
    }
}
