//! Backs up the database while it is in use.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use super::dialect::DatabaseEngine;
use super::statement::params;
use super::{Store, StoreError};

/// Result of a backup request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupOutcome {
    /// The database was copied; the value is the size of the copy in bytes.
    Copied(u64),
    /// The server has its own backup program.
    ByServer {
        /// Address without a password.
        address: String,
        /// Schema that contains the tables.
        schema: String,
    },
}

/// Error while making a backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file exists, or cannot be created. Existing files are never overwritten.
    #[error("cannot write {file}: {error}")]
    File {
        /// Path of the backup file.
        file: String,
        /// Error of the OS.
        error: io::Error,
    },
    /// Error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Copies the database into a new file, readable only by its owner. The copy is a consistent
    /// snapshot even if other processes write meanwhile, without the space of deleted rows.
    pub async fn backup(&self, file: &Path) -> Result<BackupOutcome, BackupError> {
        if self.engine == DatabaseEngine::Postgres {
            let query = "SELECT CAST(current_schema() AS TEXT) AS name";
            let schema = self.fetch_one("the schema", query, [], |row| row.get("name")).await?;
            let (address, schema) = (self.place.clone(), schema.unwrap_or_default());
            return Ok(BackupOutcome::ByServer { address, schema });
        }
        let shown = || file.display().to_string();
        let of_file = |error| BackupError::File { file: shown(), error };
        // SQLite accepts an empty target file. `create_new` keeps two backups from writing to the
        // same file.
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        drop(options.open(file).map_err(of_file)?);
        let name = file.to_str().ok_or_else(|| {
            of_file(io::Error::new(io::ErrorKind::InvalidFilename, "expected a name in UTF-8"))
        });
        // `VACUUM INTO` reads one snapshot and writes a compact copy.
        let copied = match name {
            Ok(name) => self.execute("VACUUM INTO $1", params![name]).await.map_err(Into::into),
            Err(error) => Err(error),
        };
        if let Err(error) = copied {
            // An incomplete copy is worse than none.
            let _ = fs::remove_file(file);
            return Err(error);
        }
        Ok(BackupOutcome::Copied(fs::metadata(file).map_err(of_file)?.len()))
    }
}
