//! Case files on disk: locating them below a folder, and finding the files that cases name. The
//! only module here that accesses the disk; it reads and never writes.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::{DIALECTS, EvalsFile, EvalsReadError, FileLocation, FileLookup, MAX_BYTES, read};
use selftest_text::file::{open_regular, read_bounded, read_bounded_text};
use selftest_text::tree::{self, DirEntry};

/// File name of a skill.
const SKILL: &str = "SKILL.md";
/// Maximum size of a file beside a suite that is read with it, in bytes.
const MAX_BESIDE: u64 = 4 << 20;

/// Maximum depth of a tree of skills.
const MAX_DEPTH: usize = 12;

/// Maximum size of a YAML file that is looked into for a suite of another name, in bytes.
const MAX_LOOKED_INTO: u64 = 256 << 10;
/// Maximum number of names that a folder is asked for.
const MAX_NAMES: usize = 2_000;

/// Finds all suites of other programs in a tree, sorted: by their names at any depth, and YAML files
/// by what is in them. Files ignored by git are skipped, and links are not followed.
pub fn find(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // Skills are often in hidden folders such as `.claude`.
    let enters = |entry: &DirEntry| {
        !matches!(entry.file_name().to_str(), Some(".git" | "node_modules" | "target"))
    };
    let walk = tree::walk(folder, enters).hidden(false).max_depth(Some(MAX_DEPTH)).build();
    for entry in walk.flatten() {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && entry.file_name().to_str().is_some_and(|name| is_suite(name, entry.path())) {
            found.push(entry.into_path());
        }
    }
    // Directory entries have no defined order.
    found.sort();
    found
}

/// Returns true for a file that is probably a suite, by its name or by its marks.
fn is_suite(name: &str, path: &Path) -> bool {
    if DIALECTS.iter().any(|entry| (entry.is_file_name)(name)) {
        return match name {
            // Common names: what stands beside them decides.
            "prompt.md" => beside(path, "graders").is_dir() && !beside(path, "case.yaml").exists(),
            "criteria.json" => beside(path, "task.md").is_file(),
            "task.toml" => beside(path, "instruction.md").is_file(),
            "routing.json" | "triggers.json" => {
                let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
                matches!(folder, Some("evals" | "eval" | "tests"))
            }
            _ => true,
        };
    }
    if !name.ends_with(".yaml") && !name.ends_with(".yml") {
        return false;
    }
    // A case of skill-up is read with its suite.
    let marked: Vec<_> = DIALECTS.iter().filter(|entry| !entry.marks.is_empty()).collect();
    // Any YAML file may come by here, also a large one of data.
    let Ok(bytes) = read_bounded(path, MAX_LOOKED_INTO) else { return false };
    let has = |mark: &&str| bytes.windows(mark.len()).any(|part| part == mark.as_bytes());
    marked.iter().any(|entry| entry.marks.iter().all(has))
}

fn beside(path: &Path, name: &str) -> PathBuf {
    path.parent().unwrap_or(Path::new(".")).join(name)
}

/// Returns the files and folders around a suite that tell what is demanded, including itself: each is
/// an answer key.
pub fn answer_keys(file: &Path) -> Vec<PathBuf> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut found: Vec<PathBuf> = match name {
        "case.yaml" | "case.yml" | "prompt.md" => {
            ["case.yaml", "prompt.md", "graders"].map(|name| folder.join(name)).into()
        }
        // What these programs keep beside the suite and do not show to their agents either.
        "task.toml" => ["tests", "solution"].map(|name| folder.join(name)).into(),
        "criteria.json" => ["scenario.json", "capability.txt"].map(|name| folder.join(name)).into(),
        "eval.yaml" | "eval.yml" => ["cases"].map(|name| folder.join(name)).into(),
        _ => Vec::new(),
    };
    found.retain(|path| path.exists());
    let names = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_NAMES);
    let suites = names.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        path.is_file()
            && name.is_some_and(|name| DIALECTS.iter().any(|entry| (entry.is_file_name)(name)))
    });
    found.extend(suites);
    found.push(file.to_owned());
    found.sort();
    found.dedup();
    found
}

/// Reads a case file, looking up files that its cases name in the surrounding folders.
pub fn read_file(path: &Path) -> Result<EvalsFile, EvalsReadError> {
    let refuse = |error: std::io::Error| EvalsReadError(error.to_string());
    let mut bytes = Vec::new();
    // One byte more than allowed, so that the parser notices a file that is too large.
    let limit = MAX_BYTES as u64 + 1;
    open_regular(path).map_err(refuse)?.take(limit).read_to_end(&mut bytes).map_err(refuse)?;
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
        let skill = upwards().take(4).find(|folder| folder.join(SKILL).is_file());
        let named = evals.file_name().is_some_and(|name| name == "evals");
        let around = if named { evals.parent() } else { None };
        let repository = upwards().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
        let named = || skill_by_name(&evals, repository.as_deref());
        let skill = skill.map(Path::to_owned).or_else(named);
        let skill = skill.or(around.map(Path::to_owned)).unwrap_or_else(|| evals.clone());
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

/// Folders in which every program of a machine looks for others, in the sandbox too.
const PROGRAMS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

fn has_program(name: &str) -> bool {
    !name.contains('/') && PROGRAMS.iter().any(|folder| Path::new(folder).join(name).is_file())
}

/// Finds the skill of a suite that lies apart from it: the only one of the plugin around it, or the
/// one of the name of its folder, such as `plugins/harbour/skills/ferry` for `tests/harbour/ferry`.
fn skill_by_name(evals: &Path, repository: Option<&Path>) -> Option<PathBuf> {
    let is_skill = |folder: &PathBuf| folder.join(SKILL).is_file();
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_NAMES);
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
        folders.sort();
        folders
    };
    let plugin = evals.ancestors().take(5).find(|folder| {
        folder.join(".claude-plugin").is_dir() || folder.join("plugin.json").is_file()
    });
    if let Some(plugin) = plugin {
        let mut skills = folders(&plugin.join("skills")).into_iter().filter(is_skill);
        // Of several skills it is open which one is meant.
        if let (Some(only), None) = (skills.next(), skills.next()) {
            return Some(only);
        }
    }
    let root = repository?;
    let name = evals.ancestors().find_map(|folder| {
        let name = folder.file_name()?;
        (!matches!(name.to_str(), Some("evals" | "tests"))).then_some(name)
    })?;
    let mut places = vec![root.join("skills")];
    for folder in ["plugins", "src"] {
        places.extend(folders(&root.join(folder)).into_iter().map(|plugin| plugin.join("skills")));
    }
    let mut found = places.into_iter().map(|place| place.join(name)).filter(is_skill);
    // Two of one name: none is meant for certain.
    found.next().filter(|_| found.next().is_none())
}

impl FileLookup for SkillFolder {
    fn find(&self, path: &str) -> Option<FileLocation> {
        let places = [FileLocation::Skill, FileLocation::Evals, FileLocation::Repository];
        // Cases may name folders as well as files.
        places.into_iter().find(|place| self.path(path, *place).is_some())
    }

    fn text(&self, path: &str, place: FileLocation) -> Option<std::io::Result<String>> {
        let path = self.path(path, place).filter(|path| path.is_file())?;
        Some(read_bounded_text(&path, MAX_BESIDE))
    }

    fn list(&self, path: &str, place: FileLocation) -> Vec<String> {
        let path = if path.is_empty() { "." } else { path };
        let Some(folder) = self.path(path, place) else { return Vec::new() };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_NAMES);
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                let (kind, name) = (entry.file_type().ok()?, entry.file_name().into_string().ok()?);
                (kind.is_file() || kind.is_dir())
                    .then(|| if kind.is_dir() { name + "/" } else { name })
            })
            .collect();
        names.sort();
        names
    }

    fn find_in_repository(&self, path: &str) -> Option<String> {
        let root = self.repository.as_ref()?;
        let mut parts: Vec<&str> =
            self.evals.strip_prefix(root).ok()?.iter().filter_map(|part| part.to_str()).collect();
        if path.starts_with('/') {
            return None;
        }
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    // Nothing above the root belongs to the repository.
                    parts.pop()?;
                }
                part => parts.push(part),
            }
        }
        (!parts.is_empty()).then(|| parts.join("/"))
    }

    fn has_program(&self, name: &str) -> bool {
        has_program(name)
    }

    fn has_python_package(&self, python: Option<&str>, name: &str, version: Option<&str>) -> bool {
        let usual = || {
            let target = fs::read_link("/usr/bin/python3").ok()?;
            let name = target.file_name()?.to_str()?.strip_prefix("python")?.to_owned();
            Some(name)
        };
        let Some(python) = python.map(ToOwned::to_owned).or_else(usual) else { return false };
        let mut folders = Vec::new();
        for root in ["/usr/local/lib", "/usr/lib"] {
            for kind in ["dist-packages", "site-packages"] {
                folders.push(format!("{root}/python{python}/{kind}"));
            }
        }
        // Debian's own packages are of its own Python.
        if Some(&python) == usual().as_ref() {
            folders.push("/usr/lib/python3/dist-packages".to_owned());
        }
        let plain = |name: &str| name.to_lowercase().replace(['-', '.'], "_");
        let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
        entries.flat_map(std::iter::Iterator::flatten).any(|entry| {
            let file = entry.file_name().to_string_lossy().into_owned();
            let Some((found, there)) =
                file.strip_suffix(".dist-info").and_then(|stem| stem.rsplit_once('-'))
            else {
                return false;
            };
            plain(found) == plain(name) && version.is_none_or(|wanted| wanted == there)
        })
    }

    fn folder_name(&self) -> Option<String> {
        Some(self.evals.file_name()?.to_string_lossy().into_owned())
    }
}
