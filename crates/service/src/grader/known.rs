//! Compares the files of a scan with what the database knows of them, row by row, so that memory
//! holds only what differs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use selftest_sessions::SessionFile;
use selftest_store::KnownFile;

/// What the database knows of the files that were found.
#[derive(Debug, Default)]
pub(super) struct KnownFiles {
    /// For each found file: true if size and date are those of its last grading by these rules, so
    /// that it need not be opened.
    pub(super) unchanged: Vec<bool>,
    /// Found files that differ from their last grading.
    pub(super) changed: HashMap<String, KnownFile>,
    /// Files of the sources that are gone.
    pub(super) gone: Vec<String>,
}

/// Collects [`KnownFiles`] from the rows of the database, in any order.
pub(super) struct KnownFilesCollector<'a> {
    found: &'a [SessionFile],
    /// Places of the files, by the name that the database has: a path that is not UTF-8 is changed.
    places: HashMap<Cow<'a, str>, usize>,
    sources: &'a [PathBuf],
    known: KnownFiles,
}

impl<'a> KnownFilesCollector<'a> {
    pub(super) fn new(found: &'a [SessionFile], sources: &'a [PathBuf]) -> Self {
        let name = |file: &'a SessionFile| file.source.path().to_string_lossy();
        // Paths are not compared as such: that takes them apart each time.
        let places = found.iter().map(name).zip(0..).collect();
        let known = KnownFiles { unchanged: vec![false; found.len()], ..KnownFiles::default() };
        Self { found, places, sources, known }
    }

    /// Adds a file that the database knows.
    pub(super) fn add(&mut self, path: String, row: KnownFile) {
        let Some(at) = self.places.get(path.as_str()).copied() else {
            // Files outside the sources were not searched, so they do not count as gone.
            let is_searched =
                self.sources.iter().any(|source| Path::new(&path).starts_with(source));
            if is_searched && !Path::new(&path).exists() {
                self.known.gone.push(path);
            }
            return;
        };
        let file = &self.found[at];
        if row.by_these_rules && row.size == file.size && row.modified_ns == file.modified_ns {
            self.known.unchanged[at] = true;
        } else {
            self.known.changed.insert(path, row);
        }
    }

    pub(super) fn finish(self) -> KnownFiles {
        self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::SessionSource;

    #[test]
    fn files_are_unchanged_changed_or_gone() {
        let file = |path: &str, size| SessionFile {
            source: SessionSource::File(PathBuf::from(path)),
            size,
            modified_ns: 7,
        };
        let found = [file("/s/a.json", 1), file("/s/b.json", 2), file("/s/c.json", 3)];
        let sources = [PathBuf::from("/s")];
        let row = |size, by_these_rules| KnownFile {
            size,
            modified_ns: 7,
            digest: String::new(),
            by_these_rules,
        };
        let mut collector = KnownFilesCollector::new(&found, &sources);
        for (path, row) in [
            ("/s/c.json", row(3, false)),
            ("/s/a.json", row(1, true)),
            ("/s/b.json", row(9, true)),
            ("/s/gone.json", row(1, true)),
            ("/elsewhere/d.json", row(1, true)),
        ] {
            collector.add(path.to_owned(), row);
        }
        let known = collector.finish();
        assert_eq!(known.unchanged, [true, false, false]);
        let mut changed: Vec<&str> = known.changed.keys().map(String::as_str).collect();
        changed.sort_unstable();
        assert_eq!(changed, ["/s/b.json", "/s/c.json"]);
        assert_eq!(known.gone, ["/s/gone.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_no_text_are_found_again() {
        use std::os::unix::ffi::OsStrExt as _;
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/s/\xff.json"));
        let shown = path.to_string_lossy().into_owned();
        let source = SessionSource::File(path);
        let found = [SessionFile { source, size: 1, modified_ns: 7 }];
        let row =
            KnownFile { size: 1, modified_ns: 7, digest: String::new(), by_these_rules: true };
        let sources = [PathBuf::from("/s")];
        let mut collector = KnownFilesCollector::new(&found, &sources);
        collector.add(shown, row);
        let known = collector.finish();
        assert_eq!((known.unchanged, known.gone), (vec![true], Vec::new()));
    }
}
