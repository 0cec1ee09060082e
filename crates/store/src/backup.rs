//! A copy of the database while it is in use.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use super::dialect::Engine;
use super::statement::params;
use super::{Store, StoreError};

/// How a database is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backup {
    /// It was copied: the bytes of the copy.
    Made(u64),
    /// Its own program does that.
    ByServer {
        /// The address, without a password.
        address: String,
        /// The schema that holds the tables.
        schema: String,
    },
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is a file of that name, which is not overwritten, or none can be made.
    #[error("cannot write {file}: {error}")]
    File {
        /// The file.
        file: String,
        /// The system's words.
        error: io::Error,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Copies the database into a new file, readable by its owner only: as it is at one moment,
    /// whoever writes meanwhile, and without the room of deleted rows.
    pub async fn backup(&self, file: &Path) -> Result<Backup, BackupError> {
        if self.engine == Engine::Postgres {
            let query = "SELECT CAST(current_schema() AS TEXT) AS name";
            let schema = self.fetch_one("the schema", query, [], |row| row.get("name")).await?;
            let (address, schema) = (self.place.clone(), schema.unwrap_or_default());
            return Ok(Backup::ByServer { address, schema });
        }
        let shown = || file.display().to_string();
        let of_file = |error| BackupError::File { file: shown(), error };
        // SQLite fills an empty file; that it is new keeps two backups from one another.
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        drop(options.open(file).map_err(of_file)?);
        let name = file.to_str().ok_or_else(|| {
            of_file(io::Error::new(io::ErrorKind::InvalidFilename, "expected a name in UTF-8"))
        });
        let copied = match name {
            Ok(name) => self.execute("VACUUM INTO $1", params![name]).await.map_err(Into::into),
            Err(error) => Err(error),
        };
        if let Err(error) = copied {
            // Half a copy is worth less than none.
            let _ = fs::remove_file(file);
            return Err(error);
        }
        Ok(Backup::Made(fs::metadata(file).map_err(of_file)?.len()))
    }
}
