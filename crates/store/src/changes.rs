//! Noticing that the database has changed, whoever changed it; and small counts over it.

use sqlx::{AnyConnection, ConnectOptions as _, Connection as _, Row as _};

use super::dialect::Engine;
use super::row::Columns;
use super::{Store, StoreError};

/// Watches a database over a connection of its own.
pub struct Changes {
    connection: AnyConnection,
    engine: Engine,
    place: String,
}

impl Changes {
    /// A number that is another one after every change, of this process or another. Says nothing
    /// by itself.
    pub async fn version(&mut self) -> Result<i64, StoreError> {
        let row = sqlx::query(self.engine.version()).fetch_one(&mut self.connection).await;
        let version = row.and_then(|row| row.try_get(0));
        version.map_err(|error| StoreError::of(self.engine, &self.place, error))
    }

    /// Ends the connection.
    pub async fn close(self) {
        // Nothing was written over it, so that nothing can be lost.
        let _ = self.connection.close().await;
    }
}

impl Store {
    /// Watches for changes; `None` for a database in memory, which has one connection only.
    pub async fn changes(&self) -> Result<Option<Changes>, StoreError> {
        if self.pool.options().get_max_connections() == 1 {
            return Ok(None);
        }
        let options = self.pool.connect_options();
        let connection = options.connect().await.map_err(|error| self.failed(error))?;
        Ok(Some(Changes { connection, engine: self.engine, place: self.place.clone() }))
    }

    /// How many grades each model has made, by the name of the model.
    pub async fn grades_by_model(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let query = "SELECT grader_model, COUNT(*) AS grades FROM session_quality_grades \
                     GROUP BY grader_model ORDER BY grader_model";
        let read = |row: &Columns<'_>| Ok((row.get("grader_model")?, row.get("grades")?));
        Ok(self.fetch(query, [], read).await?.items)
    }
}
