//! Projects whose database is on a real PostgreSQL.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::require::{self, Part};
use crate::workspace::Workspace;

/// The variable with the address of a server; its user may create schemas.
const SERVER: &str = "SELFTEST_TEST_POSTGRES";

/// A schema that is gone with the test, and so are its tables.
pub(crate) struct Schema {
    server: String,
    name: String,
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// The rows of a statement, each value as text; nothing stands for NULL.
fn rows(address: &str, statement: &str) -> Vec<Vec<String>> {
    runtime().block_on(async {
        let mut connection = PgConnection::connect(address).await.unwrap();
        let statement = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
        let rows = statement.fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let text = |row: &sqlx::postgres::PgRow, column: usize| {
            row.try_get_unchecked::<Option<String>, _>(column).unwrap().unwrap_or_default()
        };
        rows.iter().map(|row| (0..row.len()).map(|column| text(row, column)).collect()).collect()
    })
}

impl Schema {
    fn make(server: String) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("it_{}_{number}", std::process::id());
        rows(&server, &format!("CREATE SCHEMA {name}"));
        Self { server, name }
    }

    fn address(&self) -> String {
        let sign = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{sign}options=-csearch_path%3D{}", self.server, self.name)
    }

    #[track_caller]
    pub(crate) fn sql(&self, statement: &str) -> Vec<Vec<String>> {
        rows(&self.address(), statement)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("SET lock_timeout = '10s'; DROP SCHEMA {} CASCADE", self.name);
        if !std::thread::panicking() {
            rows(&self.server, &drop);
        }
    }
}

/// The address of the server, where there is one.
fn server() -> Option<String> {
    let server = std::env::var(SERVER).ok().filter(|server| !server.is_empty());
    let why = format!("{SERVER} is not set; scripts/test starts a server");
    require::part(Part::Postgres, server.ok_or(why))
}

impl Workspace {
    /// A project whose environment names a database on the server, where there is one.
    pub(crate) fn on_postgres() -> Option<Self> {
        let schema = Schema::make(server()?);
        let workspace = Self::new().env("DATABASE_URL", schema.address());
        Some(workspace.with_schema(Arc::new(schema)))
    }
}

/// A server that a test may stop.
pub(crate) struct Server {
    folder: TempDir,
    pub(crate) address: String,
}

impl Server {
    /// Where there is a server for the other tests, there can be one more.
    pub(crate) fn new() -> Option<Self> {
        server()?;
        let folder = tempfile::Builder::new().prefix("selftest-it-postgres-").tempdir().unwrap();
        let mut server = Self { folder, address: String::new() };
        server.address = server.script("start").unwrap();
        Some(server)
    }

    pub(crate) fn stop(&self) {
        self.script("stop").unwrap();
    }

    /// At the same address.
    pub(crate) fn start_again(&self) {
        assert_eq!(self.script("start").unwrap(), self.address);
    }

    /// Returns the output of the script; the error is what it printed to stderr.
    fn script(&self, action: &str) -> anyhow::Result<String> {
        let done = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/postgres"))
            .args([action.as_ref(), self.folder.path()])
            .arg(std::process::id().to_string())
            .output()
            .unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        anyhow::ensure!(done.status.success(), said(&done.stderr));
        Ok(said(&done.stdout))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where the test fails, that is what is to be seen; the server ends with its process too.
        let _ = self.script("stop");
    }
}
