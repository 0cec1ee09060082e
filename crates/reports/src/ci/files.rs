//! The report files for CI: verified to be writable before a run, and written after it. A failure
//! to write one does not affect the others.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use selftest_text::disk::SystemDisk;
use selftest_text::file;

use super::{CaseSources, RenderContext, ReportFileKind, ReportRequest, render};
use crate::document::ReportDocument;
use crate::files::relative;

/// An error that prevents writing a CI report.
#[derive(Debug, thiserror::Error)]
pub enum CiFileError {
    /// Two reports would write to the same file.
    #[error("reports {first} and {second} would write to the same file: {}", path.display())]
    Shared {
        /// The kind that was named first.
        first: ReportFileKind,
        /// The other kind.
        second: ReportFileKind,
        /// The file.
        path: PathBuf,
    },
    /// Something at the path cannot be replaced by a report.
    #[error("cannot write the {kind} report to {}: {found}", path.display())]
    Taken {
        /// The kind.
        kind: ReportFileKind,
        /// The path.
        path: PathBuf,
        /// Description of the obstacle.
        found: &'static str,
    },
    /// The OS denied the write.
    #[error("cannot write the {kind} report to {}: {cause}", path.display())]
    NotWritable {
        /// The kind.
        kind: ReportFileKind,
        /// The path.
        path: PathBuf,
        /// Error from the OS.
        cause: io::Error,
    },
}

impl CiFileError {
    /// Returns one thing that the user can do.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Shared { .. } => "give each report its own file",
            Self::Taken { .. } | Self::NotWritable { .. } => {
                "set a writable file with --report or in `reports`; missing folders are created"
            }
        }
    }
}

/// The CI report files of one run.
#[derive(Debug, Default)]
pub struct CiFiles {
    files: Vec<(ReportFileKind, PathBuf)>,
}

impl CiFiles {
    /// Creates the files' folders and verifies that they are writable, without touching existing
    /// reports. Kinds without a file are skipped.
    pub fn open(requests: &[ReportRequest]) -> Result<Self, CiFileError> {
        let mut files: Vec<(ReportFileKind, PathBuf)> = Vec::new();
        for request in requests {
            let ReportRequest::File(kind, path) = request else { continue };
            let real = probe(*kind, path)?;
            if let Some((first, _)) = files.iter().find(|(_, other)| *other == real) {
                return Err(CiFileError::Shared {
                    first: *first,
                    second: *kind,
                    path: path.clone(),
                });
            }
            files.push((*kind, real));
        }
        Ok(Self { files })
    }

    /// Returns true if no report was requested.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Renders and writes all reports; `json` is the run's JSON report, to which the Markdown
    /// report links. Returns the errors, one line each.
    pub fn write(
        &self,
        document: &ReportDocument,
        sources: &CaseSources,
        json: Option<&Path>,
    ) -> Vec<String> {
        let json = json.and_then(|json| json.canonicalize().ok());
        let write = |(kind, path): &(ReportFileKind, PathBuf)| {
            let link = match (&json, path.parent()) {
                (Some(json), Some(folder)) => relative(folder, json),
                _ => format!("{}.json", document.run_id),
            };
            let context = RenderContext { sources, json_link: &link };
            let text = render(*kind, document, context)
                .map_err(|cause| format!("cannot render the {kind} report: {cause}"))?;
            file::replace(path, document.run_id.as_str(), &text).map_err(|cause| {
                format!("cannot write the {kind} report to {}: {cause}", path.display())
            })
        };
        self.files.iter().filter_map(|file| write(file).err()).collect()
    }
}

/// Verifies that a report can be written, and returns its path with symlinks resolved.
fn probe(kind: ReportFileKind, path: &Path) -> Result<PathBuf, CiFileError> {
    let refuse = |cause| CiFileError::NotWritable { kind, path: path.to_owned(), cause };
    let taken = |found| CiFileError::Taken { kind, path: path.to_owned(), found };
    let name = path.file_name().ok_or_else(|| taken("it names a folder"))?;
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(taken("it is a folder")),
        // Replacing the file would remove a named pipe or a device.
        Ok(found) if !found.is_file() => return Err(taken("it is not a regular file")),
        Ok(found) if found.permissions().readonly() => {
            return Err(taken("the file is read-only"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(refuse(error)),
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder).map_err(refuse)?;
    // Follow a symlink, so that its target is replaced rather than the link.
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(_) => folder.canonicalize().map_err(refuse)?.join(name),
    };
    let mut probe_name = std::ffi::OsString::from(".");
    probe_name.push(real.file_name().unwrap_or(name));
    // With the process id, since another run may probe the same folder at the same time.
    probe_name.push(format!(".{}.probe", std::process::id()));
    let probe = real.with_file_name(probe_name);
    file::create_new(&SystemDisk, &probe).and_then(|_| fs::remove_file(&probe)).map_err(refuse)?;
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn open(requests: &[(ReportFileKind, PathBuf)]) -> Result<CiFiles, CiFileError> {
        let requests: Vec<ReportRequest> = requests
            .iter()
            .map(|(kind, path)| ReportRequest::File(*kind, path.clone()))
            .chain([ReportRequest::Github])
            .collect();
        CiFiles::open(&requests)
    }

    #[test]
    fn folders_are_made_and_nothing_is_left() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/out.json");
        let files = open(&[(ReportFileKind::Json, path.clone())]).unwrap();
        assert_eq!(fs::read_dir(root.path().join("a/b")).unwrap().count(), 0);
        let document = fixture::document();
        assert_eq!(files.write(&document, &CaseSources::default(), None), [""; 0]);
        let read: ReportDocument = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, document);
    }

    #[test]
    fn what_cannot_be_written_is_said_before_the_run() {
        let root = tempfile::tempdir().unwrap();
        let locked = root.path().join("locked.md");
        fs::write(&locked, "mine").unwrap();
        let mut permissions = fs::metadata(&locked).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&locked, permissions).unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        let cases = [
            (locked.clone(), "the file is read-only"),
            (root.path().join("folder"), "it is a folder"),
            (root.path().join("locked.md/x/out.md"), "cannot write the md report to "),
            (root.path().join(".."), "it names a folder"),
            #[cfg(unix)]
            (PathBuf::from("/dev/null"), "it is not a regular file"),
        ];
        for (path, words) in cases {
            let error = open(&[(ReportFileKind::Markdown, path)]).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
        assert_eq!(fs::read_to_string(&locked).unwrap(), "mine");
    }

    #[test]
    fn two_reports_cannot_have_one_file() {
        let root = tempfile::tempdir().unwrap();
        let (plain, odd) = (root.path().join("a/out"), root.path().join("a/../a/./out"));
        let error =
            open(&[(ReportFileKind::Json, plain), (ReportFileKind::Markdown, odd)]).unwrap_err();
        assert!(error.to_string().contains("json and md would write to the same file"), "{error}");
    }

    #[test]
    fn one_that_cannot_be_written_costs_no_other() {
        let root = tempfile::tempdir().unwrap();
        let (lost, kept) = (root.path().join("lost/out.json"), root.path().join("kept.md"));
        let files =
            open(&[(ReportFileKind::Json, lost.clone()), (ReportFileKind::Markdown, kept.clone())])
                .unwrap();
        fs::remove_dir(lost.parent().unwrap()).unwrap();
        let faults = files.write(&fixture::document(), &CaseSources::default(), None);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("cannot write the json report to "), "{faults:?}");
        assert!(fs::read_to_string(kept).unwrap().starts_with("# Selftest Report: "));
    }
}
