//! Digests of the files that make up a system under test and of the fixtures of cases, used to
//! detect changes. File contents are only hashed.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::sut_settings::SutIdentity;
use super::{Fixture, FixtureSource};
use selftest_text::digest;
use selftest_text::file::open_regular;

/// Maximum number of files and bytes to read. An agent is smaller than that; a data folder may not
/// be.
const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 1 << 30;

/// The digest cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A declared path is missing or cannot be read.
    #[error("`{}`: {cause}", path.display())]
    Unreadable {
        /// The declared path, or a path below it.
        path: PathBuf,
        /// The OS error.
        cause: io::Error,
    },
    /// There is too much to read before each run.
    #[error("`{}` and what stands before it are more than {MAX_FILES} files or {} MB", path.display(), MAX_BYTES >> 20)]
    TooLarge {
        /// The path at which the limit was exceeded.
        path: PathBuf,
    },
}

/// Returns the digest of a declaration, or `None` if nothing is declared. Paths are relative to the
/// project.
pub fn digest(identity: &SutIdentity, project: &Path) -> Result<Option<String>, IdentityError> {
    if identity.is_empty() {
        return Ok(None);
    }
    let mut reading = IdentityHasher::default();
    for path in &identity.files {
        reading.add(&project.join(path), path)?;
    }
    reading.part(b"version", identity.version.as_deref().unwrap_or_default().as_bytes());
    Ok(Some(reading.end()))
}

/// Returns the digest of a case's fixture files.
pub fn digest_of_fixtures(fixtures: &[Fixture]) -> Result<String, IdentityError> {
    let mut reading = IdentityHasher::default();
    for Fixture { path, source } in fixtures {
        match source {
            FixtureSource::Text(text) => reading.part(path.as_bytes(), text.as_bytes()),
            FixtureSource::Disk(source) => reading.add(source, Path::new(path))?,
        }
    }
    Ok(reading.end())
}

/// A digest in progress.
#[derive(Default)]
struct IdentityHasher {
    hash: Sha256,
    files: usize,
    bytes: u64,
}

impl IdentityHasher {
    /// Adds a file, or a folder with its contents, under its declared name. The location of the
    /// project does not affect the digest.
    fn add(&mut self, path: &Path, name: &Path) -> Result<(), IdentityError> {
        let unreadable = |cause| IdentityError::Unreadable { path: name.to_owned(), cause };
        let too_large = || IdentityError::TooLarge { path: name.to_owned() };
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(too_large());
        }
        // Follows links: what a program loads is the target.
        let found = fs::metadata(path).map_err(unreadable)?;
        if found.is_dir() {
            let entries = fs::read_dir(path).map_err(unreadable)?;
            let names: io::Result<Vec<_>> =
                entries.map(|entry| entry.map(|entry| entry.file_name())).collect();
            let mut names = names.map_err(unreadable)?;
            // `read_dir` returns entries in no particular order.
            names.sort();
            self.part(name.as_os_str().as_encoded_bytes(), b"/");
            for entry in names {
                let (path, name) = (path.join(&entry), name.join(&entry));
                let target = fs::read_link(&path).ok();
                match target {
                    // A linked folder may contain the link itself, so only its target is hashed.
                    Some(target) if path.is_dir() || !path.exists() => {
                        let name = name.as_os_str().as_encoded_bytes();
                        self.part(name, target.as_os_str().as_encoded_bytes());
                    }
                    _ => self.add(&path, &name)?,
                }
            }
            return Ok(());
        }
        if !found.is_file() {
            return Err(unreadable(io::Error::other("it is neither a file nor a folder")));
        }
        let mut content = Sha256::new();
        let mut file = open_regular(path).map_err(unreadable)?;
        let mut part = vec![0; 64 * 1024];
        while self.bytes <= MAX_BYTES {
            let count = file.read(&mut part).map_err(unreadable)?;
            if count == 0 {
                break;
            }
            self.bytes += count as u64;
            content.update(&part[..count]);
        }
        if self.bytes > MAX_BYTES {
            return Err(too_large());
        }
        self.part(name.as_os_str().as_encoded_bytes(), &content.finalize());
        Ok(())
    }

    /// Adds a name with its content, each prefixed with its length, so that different lists cannot
    /// hash the same bytes.
    fn part(&mut self, name: &[u8], content: &[u8]) {
        for part in [name, content] {
            self.hash.update((part.len() as u64).to_le_bytes());
            self.hash.update(part);
        }
    }

    fn end(self) -> String {
        digest::hex(&self.hash.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(files: &[&str], version: Option<&str>) -> SutIdentity {
        let files = files.iter().map(PathBuf::from).collect();
        SutIdentity { files, version: version.map(str::to_owned) }
    }

    #[test]
    fn whatever_is_declared_makes_the_digest_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("agent.py", "a");
        write("prompts/one.md", "1");
        write("prompts/deep/two.md", "2");
        write("notes.md", "n");
        let identity = declared(&["agent.py", "prompts"], None);
        let now = || digest(&identity, folder.path()).unwrap().unwrap();
        let mut seen = vec![now()];
        write("notes.md", "changed");
        assert_eq!(now(), seen[0]);
        write("prompts/deep/two.md", "3");
        seen.push(now());
        fs::rename(folder.path().join("prompts/one.md"), folder.path().join("prompts/1.md"))
            .unwrap();
        seen.push(now());
        write("prompts/new.md", "");
        seen.push(now());
        let version = declared(&["agent.py", "prompts"], Some("v2"));
        seen.push(digest(&version, folder.path()).unwrap().unwrap());
        let mut unlike = seen.clone();
        unlike.sort();
        unlike.dedup();
        assert_eq!(unlike.len(), seen.len(), "{seen:?}");
        assert_eq!(digest(&declared(&[], None), folder.path()).unwrap(), None);
    }

    #[cfg(unix)]
    #[test]
    fn links_neither_run_in_circles_nor_hide_a_change() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("agent")).unwrap();
        symlink("..", folder.path().join("agent/around")).unwrap();
        symlink("absent", folder.path().join("agent/broken")).unwrap();
        fs::write(folder.path().join("prompt.md"), "one").unwrap();
        symlink("../prompt.md", folder.path().join("agent/prompt.md")).unwrap();
        let now = || digest(&declared(&["agent"], None), folder.path()).unwrap();
        let before = now();
        fs::write(folder.path().join("prompt.md"), "two").unwrap();
        assert_ne!(now(), before, "the file behind the link");
    }

    #[test]
    fn what_is_not_there_is_a_fault_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = digest(&declared(&["gone.py"], None), folder.path()).unwrap_err();
        assert!(error.to_string().starts_with("`gone.py`: "), "{error}");
        let text = |text: &str| Fixture {
            path: "a.md".to_owned(),
            source: FixtureSource::Text(text.to_owned()),
        };
        let of = |text_of: &str| digest_of_fixtures(&[text(text_of)]).unwrap();
        assert_ne!(of("one"), of("two"));
    }
}
