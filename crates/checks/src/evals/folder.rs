//! Case files on disk: locating them below a folder, and finding the files that cases name. The
//! only module here that accesses the disk; it reads and never writes.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use super::{EvalsFile, EvalsReadError, FileLocation, FileLookup, MAX_BYTES, read};

/// Names of files that hold a skill's cases.
const NAMES: [&str; 5] = [
    "evals.json",
    "trigger-evals.json",
    "trigger-eval.json",
    "trigger_evals.json",
    "trigger_eval.json",
];
/// Maximum depth of a tree of skills.
const MAX_DEPTH: usize = 12;

/// Finds all case files in a tree, sorted: `evals.json` and trigger sets at any depth, skipping
/// files ignored by git.
pub fn find(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // Skills are often in hidden folders such as `.claude`.
    let walk = WalkBuilder::new(folder)
        .hidden(false)
        .follow_links(false)
        .max_depth(Some(MAX_DEPTH))
        .filter_entry(|entry| {
            !matches!(entry.file_name().to_str(), Some(".git" | "node_modules" | "target"))
        })
        .build();
    for entry in walk.flatten() {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && entry.file_name().to_str().is_some_and(|name| NAMES.contains(&name)) {
            found.push(entry.into_path());
        }
    }
    // Directory entries have no defined order.
    found.sort();
    found
}

/// Returns the case files in this file's folder, including itself: each is an answer key.
pub fn sibling_case_files(file: &Path) -> Vec<PathBuf> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let named = NAMES.iter().map(|name| folder.join(name)).filter(|other| other.is_file());
    let mut found: Vec<PathBuf> = named.collect();
    if !found.iter().any(|other| other == file) {
        found.push(file.to_owned());
    }
    found
}

/// Reads a case file, looking up files that its cases name in the surrounding folders.
pub fn read_file(path: &Path) -> Result<EvalsFile, EvalsReadError> {
    let refuse = |error: std::io::Error| EvalsReadError(error.to_string());
    let mut bytes = Vec::new();
    // One byte more than allowed, so that the parser notices a file that is too large.
    let limit = MAX_BYTES as u64 + 1;
    fs::File::open(path).map_err(refuse)?.take(limit).read_to_end(&mut bytes).map_err(refuse)?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    read(name, &bytes, &SkillFolder::locate(path))
}

/// The folders around a case file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    /// Folder of the file.
    pub evals: PathBuf,
    /// Folder of the skill.
    pub skill: PathBuf,
    /// Root of the repository, if there is one.
    pub repository: Option<PathBuf>,
}

impl SkillFolder {
    /// Locates the folders. The skill is the nearest ancestor with a `SKILL.md`, or else the folder
    /// that contains `evals`.
    pub fn locate(file: &Path) -> Self {
        let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let evals = absolute.parent().unwrap_or(Path::new("/")).to_owned();
        let upwards = || evals.ancestors().take(MAX_DEPTH);
        let skill = upwards().take(4).find(|folder| folder.join("SKILL.md").is_file());
        let named = evals.file_name().is_some_and(|name| name == "evals");
        let around = if named { evals.parent() } else { None };
        let skill = skill.or(around).unwrap_or(&evals).to_owned();
        let repository = upwards().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
        Self { evals, skill, repository }
    }

    /// Returns the file that a case's path names.
    pub fn path(&self, path: &str, place: FileLocation) -> Option<PathBuf> {
        let folder = match place {
            FileLocation::Skill => &self.skill,
            FileLocation::Evals => &self.evals,
            FileLocation::Repository => self.repository.as_ref()?,
            FileLocation::Inline => return None,
        };
        // Resolve symlinks first: one may lead out of the folder.
        let (folder, file) = (folder.canonicalize().ok()?, folder.join(path).canonicalize().ok()?);
        file.starts_with(folder).then_some(file)
    }
}

impl FileLookup for SkillFolder {
    fn find(&self, path: &str) -> Option<FileLocation> {
        let places = [FileLocation::Skill, FileLocation::Evals, FileLocation::Repository];
        // Cases may name folders as well as files.
        places.into_iter().find(|place| self.path(path, *place).is_some())
    }
}
