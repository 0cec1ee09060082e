//! Database migrations, with separate SQL for each engine.
//!
//! A released migration is never changed. Both versions create the same tables with the same
//! columns, which a test compares.

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, Row as _, SqlSafeStr as _};

use super::statement::DatabaseEngine;
use super::transaction::WriteTransaction;
use super::{Store, StoreError};

/// A table name of our own, so that the database can also contain tables of other programs.
pub(super) const MIGRATIONS_TABLE: &str = "selftest_migrations";

/// One migration.
struct Change {
    /// Number and name.
    file: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

/// Each engine's folder has a file of this name.
macro_rules! changes {
    ($($file:literal),+ $(,)?) => {
        &[$(Change {
            file: $file,
            sqlite: include_str!(concat!("../migrations/sqlite/", $file, ".sql")),
            postgres: include_str!(concat!("../migrations/postgres/", $file, ".sql")),
        }),+]
    };
}

/// All migrations, in the order of their numbers.
const MIGRATIONS: &[Change] = changes![
    "0001_grades",
    "0002_files",
    "0003_overrides",
    "0004_quality",
    "0005_browsing",
    "0006_reflections",
    "0007_skills",
    "0008_gaps",
    "0009_jobs",
    "0010_rules",
    "0011_rubrics",
    "0012_lineage",
    "0013_outcomes",
    "0014_search",
    "0015_requests",
    "0016_scores",
    "0017_session_labels",
    "0018_pattern_days",
    "0019_dates",
    "0020_checks_passed",
];

impl Change {
    fn sql(&self, engine: DatabaseEngine) -> &'static str {
        match engine {
            DatabaseEngine::Sqlite => self.sqlite,
            DatabaseEngine::Postgres => self.postgres,
        }
    }

    /// Returns number and name. A test checks that every file has a number.
    fn label(&self) -> (i64, &'static str) {
        let (number, name) = self.file.split_once('_').unwrap_or(("", self.file));
        (number.parse().unwrap_or_default(), name)
    }
}

impl Store {
    /// Applies missing migrations in one transaction with the write lock. If several processes open
    /// a new database, one creates the tables and the others find them.
    pub(super) async fn migrate(&self) -> Result<(), StoreError> {
        let migrator = self.migrator();
        // The usual case. Taking the write lock here would make every command wait for a running
        // scan.
        if self.is_up_to_date(&migrator).await {
            return Ok(());
        }
        let mut writing = self.begin_write().await?;
        // Checked under the lock, as another process may be creating our tables.
        if self.is_foreign(&mut writing).await? {
            let served = self.engine == DatabaseEngine::Postgres;
            return Err(StoreError::Foreign { place: self.place.clone(), served });
        }
        let done = migrator.run_direct(None, writing.connection(), false).await;
        done.map_err(|error| StoreError::of_migration(self.engine, &self.place, error))?;
        writing.commit().await
    }

    fn migrator(&self) -> Migrator {
        let changes = MIGRATIONS.iter().map(|change| {
            let ((version, name), kind) = (change.label(), MigrationType::Simple);
            let text = change.sql(self.engine).into_sql_str();
            Migration::new(version, name.into(), kind, text, false)
        });
        let mut migrator = Migrator::with_migrations(changes.collect());
        migrator.dangerous_set_table_name(MIGRATIONS_TABLE);
        // The transaction already has the lock, and releases it however it ends.
        migrator.set_locking(false);
        migrator
    }

    /// Returns true if exactly these migrations were applied. This needs neither the write lock nor
    /// permission to create tables. Any error counts as false, and the migration itself then
    /// reports it.
    async fn is_up_to_date(&self, migrator: &Migrator) -> bool {
        let made = format!("SELECT version, checksum FROM {MIGRATIONS_TABLE} ORDER BY version");
        let made = sqlx::query(AssertSqlSafe(made)).fetch_all(&self.pool).await;
        made.is_ok_and(|made| {
            let known = migrator.iter().map(|change| (change.version, &*change.checksum));
            let made = made.iter().map(|row| {
                Some((row.try_get::<i64, _>(0).ok()?, row.try_get::<Vec<u8>, _>(1).ok()?))
            });
            made.eq(known.map(|(version, checksum)| Some((version, checksum.to_vec()))))
        })
    }

    /// Returns true if there are tables, but neither ours nor those of the original program, which
    /// suggests a mistyped address.
    async fn is_foreign(&self, writing: &mut WriteTransaction) -> Result<bool, StoreError> {
        let tables = writing.fetch(self.engine.tables_query(), []).await?;
        let is_ours = |name: &str| matches!(name, MIGRATIONS_TABLE | "session_grades");
        let names = tables.iter().map(|row| row.try_get::<String, _>(0).unwrap_or_default());
        let names: Vec<String> = names.collect();
        Ok(!names.is_empty() && !names.iter().any(|name| is_ours(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_both_folders_is_in_the_list() {
        let listed: Vec<&str> = MIGRATIONS.iter().map(|change| change.file).collect();
        let numbers: Vec<i64> = MIGRATIONS.iter().map(|change| change.label().0).collect();
        assert!(numbers[0] == 1 && numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        for folder in ["sqlite", "postgres"] {
            let folder = format!("{}/migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
            let files = std::fs::read_dir(&folder).unwrap();
            let mut found: Vec<String> = files
                .map(|file| file.unwrap().file_name().to_str().unwrap().to_owned())
                .map(|name| name.strip_suffix(".sql").unwrap().to_owned())
                .collect();
            found.sort();
            assert_eq!(found, listed, "{folder}");
        }
    }
}
