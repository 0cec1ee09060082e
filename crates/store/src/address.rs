//! Parses a database address and creates the folder and file for it. Passwords never appear in
//! anything that is displayed.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use sqlx::any::AnyConnectOptions;

use super::statement::DatabaseEngine;
use super::{AddressError, StoreError};

/// Bytes of a path that must be percent-encoded in a URL.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

/// A parsed database address.
#[derive(Clone, PartialEq)]
pub(super) enum DatabaseAddress {
    /// SQLite in memory; the data is lost when it is closed.
    Memory,
    /// SQLite in a file, given as an absolute UTF-8 path.
    File(PathBuf),
    /// PostgreSQL.
    Server {
        /// Complete address, which may contain a password.
        url: String,
        /// Address without anything that may be a secret.
        shown: String,
    },
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The derived form would print the password, and errors are logged with `{:?}`.
        formatter.debug_tuple("Place").field(&self.display_name()).finish()
    }
}

impl DatabaseAddress {
    /// Parses a path, `sqlite:<path>`, `sqlite://<path>` with percent-encoding, `:memory:` or
    /// `postgres://`.
    pub(super) fn parse(address: &str) -> Result<Self, StoreError> {
        let refuse = |address: &str, source: AddressError| {
            Err(StoreError::Address { address: address.to_owned(), source })
        };
        let path = if let Some(rest) = address.strip_prefix("sqlite:") {
            let rest = rest.strip_prefix("//").unwrap_or(rest);
            let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
            // `mode=rwc` is what sqlx writes for "create if missing", which is what happens anyway.
            // Other parameters would change how the file is opened, and dropping them silently
            // could hide a `mode=ro`.
            if !matches!(parameters, "" | "mode=rwc") {
                return refuse(address, AddressError::Parameter);
            }
            match percent_decode_str(path).decode_utf8() {
                Ok(path) => path.into_owned(),
                Err(_) => return refuse(address, AddressError::PercentEncoding),
            }
        } else if let Some(scheme) = scheme(address) {
            // The rest of the address may contain a password, so the error shows only the scheme.
            let refuse = |why| refuse(&format!("{scheme}:…"), why);
            return match scheme {
                "postgres" | "postgresql" if !cfg!(feature = "postgres") => {
                    refuse(AddressError::NoPostgres)
                }
                "postgres" | "postgresql" => match redact_address(address) {
                    Ok(shown) => Ok(DatabaseAddress::Server { url: address.to_owned(), shown }),
                    Err(why) => refuse(why),
                },
                _ => refuse(AddressError::Engine),
            };
        } else {
            address.to_owned()
        };
        if path == ":memory:" {
            return Ok(DatabaseAddress::Memory);
        }
        if path.is_empty() || path.contains('\0') {
            return refuse(address, AddressError::NoFile);
        }
        match std::path::absolute(&path) {
            Ok(absolute) if absolute.to_str().is_some() => Ok(DatabaseAddress::File(absolute)),
            Ok(_) => refuse(address, AddressError::CurrentFolder),
            Err(error) => refuse(address, error.into()),
        }
    }

    pub(super) fn engine(&self) -> DatabaseEngine {
        match self {
            DatabaseAddress::Memory | DatabaseAddress::File(_) => DatabaseEngine::Sqlite,
            DatabaseAddress::Server { .. } => DatabaseEngine::Postgres,
        }
    }

    /// Returns the same place with `ending` added to the file stem; other kinds are unchanged.
    pub(super) fn with_suffix(self, ending: &str) -> Self {
        match self {
            DatabaseAddress::File(path) => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let extension = path.extension().unwrap_or("db".as_ref()).to_string_lossy();
                DatabaseAddress::File(path.with_file_name(format!("{stem}{ending}.{extension}")))
            }
            other => other,
        }
    }

    /// Returns the name for messages.
    pub(super) fn display_name(&self) -> String {
        match self {
            DatabaseAddress::Memory => "in memory".to_owned(),
            DatabaseAddress::File(path) => path.display().to_string(),
            DatabaseAddress::Server { shown, .. } => shown.clone(),
        }
    }

    /// Returns the URL for sqlx, which decodes the percent-encoding.
    pub(super) fn url(&self) -> String {
        let path = match self {
            DatabaseAddress::Memory => return "sqlite::memory:".to_owned(),
            DatabaseAddress::Server { url, .. } => return url.clone(),
            DatabaseAddress::File(path) => path,
        };
        format!("sqlite:{}", percent_encode(path.as_os_str().as_encoded_bytes(), ENCODED))
    }

    /// Creates the folders and an empty file that only its owner can read.
    pub(super) fn create(&self) -> Result<(), StoreError> {
        let DatabaseAddress::File(path) = self else {
            return Ok(());
        };
        let failed = |why: String| StoreError::Open { place: self.display_name(), why };
        if path.is_dir() {
            return Err(failed("it is a folder".to_owned()));
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| {
                failed(format!("cannot make the folder {}: {error}", folder.display()))
            })?;
        }
        create_private(path).map_err(|error| failed(error.to_string()))
    }
}

/// Returns a server address that is safe to display: without the password, and with only the
/// parameters that identify the database.
fn redact_address(address: &str) -> Result<String, AddressError> {
    let options: AnyConnectOptions = address.parse().map_err(AddressError::Options)?;
    let mut url = options.database_url;
    // An unescaped character such as `/` or `#` ends the password early for the URL parser, and the
    // rest of it would be displayed as part of the path, query or fragment.
    let rest = [url.path(), url.query().unwrap_or_default(), url.fragment().unwrap_or_default()];
    if rest.iter().any(|part| part.contains('@')) || url.fragment().is_some() {
        return Err(AddressError::Unescaped);
    }
    if url.cannot_be_a_base() {
        return Err(AddressError::NoSlashes);
    }
    let pairs = url.query_pairs().into_owned();
    let places = ["host", "hostaddr", "port", "dbname", "user"];
    let pairs: Vec<_> = pairs.filter(|(name, _)| places.contains(&&**name)).collect();
    url.set_query(None);
    for (name, value) in pairs {
        url.query_pairs_mut().append_pair(&name, &value);
    }
    // An address without a host has no password, and setting one fails.
    let _ = url.set_password(None);
    Ok(url.to_string())
}

/// Returns the scheme of a server URL. A single letter is a Windows drive.
fn scheme(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once(':')?;
    let is_scheme = scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_url = rest.starts_with("//") || scheme.starts_with("postgres") || scheme == "mysql";
    (is_scheme && is_url).then_some(scheme)
}

fn create_private(path: &Path) -> std::io::Result<()> {
    // Closing any handle of a file releases all of this process's POSIX locks on it, including
    // those of SQLite. The mutex makes sure that no other thread opens the file before the handle
    // is closed.
    static CREATING: Mutex<()> = Mutex::new(());
    let _guard = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = OpenOptions::new();
    // `create_new` never touches an existing file, and sets the mode when the file is created.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_naming_a_file() {
        for (address, path) in [
            ("/tmp/a b.db", "/tmp/a b.db"),
            ("/tmp/100%20.db", "/tmp/100%20.db"),
            ("sqlite:/tmp/a%20b.db", "/tmp/a b.db"),
            ("sqlite:///tmp/a.db?mode=rwc", "/tmp/a.db"),
            ("sqlite:/tmp/100%.db", "/tmp/100%.db"),
        ] {
            assert_eq!(
                DatabaseAddress::parse(address).unwrap(),
                DatabaseAddress::File(path.into()),
                "{address}"
            );
        }
        let relative = DatabaseAddress::parse("sqlite://x/y.db").unwrap();
        assert_eq!(
            relative,
            DatabaseAddress::File(std::env::current_dir().unwrap().join("x/y.db"))
        );
        for address in [":memory:", "sqlite::memory:", "sqlite://:memory:"] {
            assert_eq!(
                DatabaseAddress::parse(address).unwrap(),
                DatabaseAddress::Memory,
                "{address}"
            );
        }
    }

    fn refused(address: &str) -> StoreError {
        let error = DatabaseAddress::parse(address).unwrap_err();
        assert!(matches!(error, StoreError::Address { .. }), "{address}");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(error.hint().unwrap().contains("SQLite"));
        error
    }

    #[test]
    fn what_is_no_database_is_refused_without_its_password() {
        for address in ["", "sqlite:", "mysql://secret/x", "sqlite:/x.db?mode=ro"] {
            refused(address);
        }
        assert_eq!(
            refused("mysql://me:secret@host/db").to_string(),
            "cannot use `mysql:…` as a database: only SQLite and PostgreSQL are supported"
        );
    }

    #[cfg(not(feature = "postgres"))]
    #[test]
    fn a_build_without_postgres_says_so() {
        let error = refused("postgres://me:secret@host/db");
        assert_eq!(
            error.to_string(),
            "cannot use `postgres:…` as a database: this build has no PostgreSQL"
        );
        assert!(error.hint().unwrap().contains("feature `postgres`"));
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_servers_address_is_shown_without_its_secrets() {
        for (address, shown) in [
            ("postgres://me:secret@host:5433/db", "postgres://me@host:5433/db"),
            ("postgresql://me:se%40cret@h/db?sslmode=require", "postgresql://me@h/db"),
            ("postgres:///db?host=/run/pg&password=secret", "postgres:///db?host=%2Frun%2Fpg"),
            ("postgres://%2Frun%2Fpg/db?user=me", "postgres://%2Frun%2Fpg/db?user=me"),
            ("postgres://host", "postgres://host"),
        ] {
            let place = DatabaseAddress::parse(address).unwrap();
            assert_eq!(
                (place.display_name(), place.engine()),
                (shown.to_owned(), DatabaseEngine::Postgres)
            );
            assert_eq!(place.url(), address);
            let debug = format!("{place:?}");
            assert!(debug.contains(shown) && !debug.contains("secret"), "{debug}");
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn an_address_whose_password_would_be_torn_is_refused() {
        for address in [
            "postgres://me:my/secret@host/db",
            "postgres://me:1/secret@host/db",
            "postgres://me:1?secret@host/db",
            "postgres://me:1#secret@host/db",
            "postgres://me:1#secret",
            "postgres:secret",
            "postgres://me:secret@ho st/db",
        ] {
            refused(address);
        }
        let error = refused("postgres://me:1/secret@host/db").to_string();
        assert!(error.contains("`%40`, `%2F`"), "{error}");
    }
}
