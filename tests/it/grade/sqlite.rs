//! The database as another program sees it.

use std::path::Path;

use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};
use tokio::runtime::{Builder, Runtime};

use crate::workspace::Workspace;

/// Where the database is by default.
pub(crate) const DATABASE: &str = ".selftest/selftest.db";

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A connection that leaves new rows in the write-ahead log of a database. SQLite moves them when the
/// last connection is closed.
pub(crate) struct LogWriter {
    connection: SqliteConnection,
    runtime: Runtime,
}

impl LogWriter {
    #[track_caller]
    pub(crate) fn open(database: &Path) -> Self {
        let runtime = runtime();
        let address = format!("sqlite:{}", database.display());
        let connection = runtime.block_on(SqliteConnection::connect(&address)).unwrap();
        let mut writer = Self { connection, runtime };
        writer.run("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0");
        writer
    }

    #[track_caller]
    pub(crate) fn run(&mut self, statements: &str) {
        let statements = sqlx::raw_sql(AssertSqlSafe(statements.to_owned()));
        self.runtime.block_on(statements.execute(&mut self.connection)).unwrap();
    }
}

impl Workspace {
    /// Runs a statement on a database of the project. Its rows, each value as text; nothing
    /// stands for NULL.
    #[track_caller]
    pub(crate) fn sql_in(&self, database: &str, statement: &str) -> Vec<Vec<String>> {
        let address = format!("sqlite:{}", self.path(database).display());
        runtime().block_on(async {
            let mut connection = SqliteConnection::connect(&address).await.unwrap();
            let statement = sqlx::query(AssertSqlSafe(statement.to_owned()));
            let rows = statement.fetch_all(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            let text = |row: &sqlx::sqlite::SqliteRow, column: usize| {
                row.try_get_unchecked::<Option<String>, _>(column).unwrap().unwrap_or_default()
            };
            rows.iter()
                .map(|row| (0..row.len()).map(|column| text(row, column)).collect())
                .collect()
        })
    }

    /// Runs a statement on the database of the project, wherever it is.
    #[track_caller]
    pub(crate) fn sql(&self, statement: &str) -> Vec<Vec<String>> {
        match self.schema() {
            Some(schema) => schema.sql(statement),
            None => self.sql_in(DATABASE, statement),
        }
    }
}
