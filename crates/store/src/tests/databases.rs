//! Temporary test databases on either engine, removed after the test.

use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once};

use sqlx::any::AnyConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};
use tempfile::TempDir;

use crate::Store;
use crate::statement::DatabaseEngine;

/// The variable with the address of a server; its user may create schemas.
const SERVER: &str = "SELFTEST_TEST_POSTGRES";

/// Defines each test twice: for SQLite, and for PostgreSQL if a server is configured.
macro_rules! on_every_engine {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(&crate::tests::databases::Databases::sqlite()).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                if let Some(on) = crate::tests::databases::Databases::postgres() {
                    super::$test(&on).await;
                }
            })+
        }
    };
}
pub(super) use on_every_engine;

/// Location of the databases of a test.
pub(super) enum Databases {
    Sqlite(TempDir),
    Postgres {
        server: String,
        /// Databases with these names, each with its own tables.
        schemas: Mutex<Vec<String>>,
    },
}

impl Databases {
    pub(super) fn sqlite() -> Self {
        Databases::Sqlite(tempfile::tempdir().unwrap())
    }

    /// Returns `None` if no server is configured, and reports that once.
    pub(super) fn postgres() -> Option<Self> {
        static SAID: Once = Once::new();
        let skip = |why: &str| {
            let required = std::env::var("SELFTEST_REQUIRE").unwrap_or_default();
            let is_required = required.split(',').any(|name| name.trim() == "postgres");
            assert!(!is_required, "SELFTEST_REQUIRE names postgres, which is missing: {why}");
            // Not with a macro such as `eprintln!`, whose output is hidden while tests pass.
            SAID.call_once(|| {
                let _ = writeln!(std::io::stderr(), "SKIPPED: tests on PostgreSQL: {why}");
            });
            None
        };
        if !cfg!(feature = "postgres") {
            return skip("this build has none");
        }
        match std::env::var(SERVER) {
            Ok(server) if !server.is_empty() => {
                Some(Databases::Postgres { server, schemas: Mutex::default() })
            }
            _ => skip(&format!("{SERVER} is not set; scripts/test starts a server")),
        }
    }

    pub(super) fn engine(&self) -> DatabaseEngine {
        match self {
            Databases::Sqlite(_) => DatabaseEngine::Sqlite,
            Databases::Postgres { .. } => DatabaseEngine::Postgres,
        }
    }

    /// Returns the address of an empty database that several processes could use.
    pub(super) async fn address(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        match self {
            Databases::Sqlite(folder) => {
                folder.path().join(format!("{number}.db")).to_str().unwrap().to_owned()
            }
            Databases::Postgres { server, schemas } => {
                let schema = format!("test_{}_{number}", std::process::id());
                run(server, &format!("CREATE SCHEMA {schema}")).await.unwrap();
                let sign = if server.contains('?') { '&' } else { '?' };
                let address = format!("{server}{sign}options=-csearch_path%3D{schema}");
                schemas.lock().unwrap().push(schema);
                address
            }
        }
    }

    /// Creates a new database; in memory for SQLite.
    pub(super) async fn store(&self) -> Store {
        match self {
            Databases::Sqlite(_) => Store::open(":memory:").await.unwrap(),
            Databases::Postgres { .. } => Store::open(&self.address().await).await.unwrap(),
        }
    }
}

/// Runs a statement on a separate connection.
async fn run(server: &str, sql: &str) -> Result<(), sqlx::Error> {
    sqlx::any::install_default_drivers();
    let options: AnyConnectOptions = server.parse()?;
    let mut connection = options.connect().await?;
    connection.execute(AssertSqlSafe(sql.to_owned())).await?;
    connection.close().await
}

impl Drop for Databases {
    fn drop(&mut self) {
        let Databases::Postgres { server, schemas } = self else { return };
        let drops = schemas
            .get_mut()
            .unwrap()
            .iter()
            .fold("SET lock_timeout = '10s';".to_owned(), |sql, schema| {
                format!("{sql}DROP SCHEMA {schema} CASCADE;")
            });
        let server = server.clone();
        // The test's runtime cannot be awaited here. A connection that it still holds may lock a
        // table; then the schemas are removed with the server.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(run(&server, &drops))
        });
        if let Ok(Err(error)) = dropped.join() {
            let _ = writeln!(std::io::stderr(), "left behind on PostgreSQL: {error}");
        }
    }
}
