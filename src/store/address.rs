//! Where the database is: reads an address, makes the folder and the file.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::StoreError;

/// A database that can be opened.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    /// SQLite in memory; gone when closed.
    Memory,
    /// SQLite in a file; an absolute path in UTF-8.
    File(PathBuf),
}

impl Place {
    /// A path, or `sqlite:<path>`, `sqlite://<path>` with `%20` and the like, or `:memory:`.
    pub(super) fn parse(address: &str) -> Result<Self, StoreError> {
        let refuse = |address: &str, why: &str| {
            Err(StoreError::Address { address: address.to_owned(), why: why.to_owned() })
        };
        let path = if let Some(rest) = address.strip_prefix("sqlite:") {
            let rest = rest.strip_prefix("//").unwrap_or(rest);
            let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
            if !matches!(parameters, "" | "mode=rwc") {
                return refuse(address, "of the parameters only `mode=rwc` is supported");
            }
            match percent_decoded(path) {
                Some(path) => path,
                None => return refuse(address, "its percent-encoding is not UTF-8"),
            }
        } else if let Some((scheme, _)) = scheme(address) {
            // What follows may be a password.
            return refuse(&format!("{scheme}:…"), "only SQLite is supported by this version");
        } else {
            address.to_owned()
        };
        if path == ":memory:" {
            return Ok(Place::Memory);
        }
        if path.is_empty() || path.contains('\0') {
            return refuse(address, "it names no file");
        }
        match std::path::absolute(&path) {
            Ok(absolute) if absolute.to_str().is_some() => Ok(Place::File(absolute)),
            Ok(_) => refuse(address, "the path of the current folder is not UTF-8"),
            Err(error) => refuse(address, &error.to_string()),
        }
    }

    /// For messages.
    pub(super) fn name(&self) -> String {
        match self {
            Place::Memory => "in memory".to_owned(),
            Place::File(path) => path.display().to_string(),
        }
    }

    /// For sqlx, which decodes what is encoded here.
    pub(super) fn url(&self) -> String {
        let Place::File(path) = self else {
            return "sqlite::memory:".to_owned();
        };
        let mut url = "sqlite:".to_owned();
        for byte in path.as_os_str().as_encoded_bytes() {
            if byte.is_ascii_alphanumeric() || b"/-_.".contains(byte) {
                url.push(char::from(*byte));
            } else {
                url.push_str(&format!("%{byte:02X}"));
            }
        }
        url
    }

    /// Makes the folders and an empty file that only its owner can read.
    pub(super) fn create(&self) -> Result<(), StoreError> {
        let Place::File(path) = self else {
            return Ok(());
        };
        let failed = |why: String| StoreError::Open { place: self.name(), why };
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

/// The scheme of a URL of some server. One letter is a Windows drive.
fn scheme(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = address.split_once(':')?;
    let is_scheme = scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_url = rest.starts_with("//") || scheme.starts_with("postgres") || scheme == "mysql";
    (is_scheme && is_url).then_some((scheme, rest))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| first == b'%');
        let code = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

fn create_private(path: &Path) -> std::io::Result<()> {
    // Closing any handle of a file ends this process's locks on it (POSIX), those of SQLite
    // included: no other thread of this process may have it open before the handle is closed.
    static CREATING: Mutex<()> = Mutex::new(());
    let _guard = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = OpenOptions::new();
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
            assert_eq!(Place::parse(address).unwrap(), Place::File(path.into()), "{address}");
        }
        let relative = Place::parse("sqlite://x/y.db").unwrap();
        assert_eq!(relative, Place::File(std::env::current_dir().unwrap().join("x/y.db")));
        for address in [":memory:", "sqlite::memory:", "sqlite://:memory:"] {
            assert_eq!(Place::parse(address).unwrap(), Place::Memory, "{address}");
        }
    }

    #[test]
    fn what_is_no_file_is_refused_without_its_password() {
        for address in
            ["", "sqlite:", "postgres://me:secret@host/db", "postgresql:///x", "mysql://secret/x"]
        {
            let error = Place::parse(address).unwrap_err();
            assert!(matches!(error, StoreError::Address { .. }), "{address}");
            assert!(!error.to_string().contains("secret"), "{error}");
            assert!(error.hint().unwrap().contains("SQLite"));
        }
        let error = Place::parse("postgres://me:secret@host/db").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot use `postgres:…` as a database: only SQLite is supported by this version"
        );
        assert!(Place::parse("sqlite:/x.db?mode=ro").is_err());
    }
}
