//! The folder of a skill, bounded and inspected. Knows nothing of what is done with it.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use selftest_checks::evals::folder;

use crate::error::AppError;
use selftest_harness::sut::identity::IdentityError;
pub use selftest_harness::sut::skill::SKILL_FILE;
use selftest_harness::sut::skill::Skill;
use selftest_harness::sut::{Fixture, FixtureSource};
use selftest_text::escape::terminal;
use selftest_text::file::read_bounded_text;
use selftest_text::one_line;

/// Maximum number of bytes of a skill's text. The longest of 812 public ones has 292 kB.
const MAX_SKILL_BYTES: u64 = 1 << 20;
/// Maximum number of files of a skill, and of their bytes.
pub(crate) const MAX_FILES: usize = 5_000;
pub(crate) const MAX_BYTES: u64 = 64 << 20;
/// Maximum depth of its folders.
const MAX_DEPTH: usize = 16;
/// Folders beside a `SKILL.md` that are no part of the skill: its cases are an answer key.
const NOT_HANDED_OVER: [&str; 2] = ["evals", ".git"];
/// Folders filled by tools, at any depth.
const GENERATED: [&str; 3] = ["node_modules", "target", "__pycache__"];

/// Reads a skill, under the name of its folder.
pub fn read_skill(file: &Path) -> Result<Skill, AppError> {
    read_skill_text(file).map_err(|error| AppError::usage(anyhow!(error)))
}

/// A skill is not used. Messages name its `SKILL.md`.
#[derive(Debug, thiserror::Error)]
pub enum SkillFileError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", shown(file))]
    Io {
        /// The `SKILL.md`.
        file: PathBuf,
        /// Error from the OS.
        source: io::Error,
    },
    /// The file is not the text of a skill.
    #[error("cannot read {}: {source}", shown(file))]
    Text {
        /// The `SKILL.md`.
        file: PathBuf,
        /// The reason.
        source: SkillTextError,
    },
    /// The folder around it is not copied.
    #[error("the skill {} is refused: {source}", shown(file))]
    Folder {
        /// The `SKILL.md`.
        file: PathBuf,
        /// The reason.
        source: SkillFolderError,
    },
}

/// A file is not used as the text of a skill.
#[derive(Debug, thiserror::Error)]
pub enum SkillTextError {
    /// A folder, a pipe or a device.
    #[error("it is not a file")]
    NotFile,
    /// A link to a file elsewhere.
    #[error("it is a link out of the skill's folder")]
    LinkOut,
    /// Too many bytes.
    #[error("it is over {} bytes", MAX_SKILL_BYTES)]
    TooLarge,
    /// No text.
    #[error("it is empty")]
    Empty,
}

/// The folder of a skill has something that is not copied.
#[derive(Debug, thiserror::Error)]
pub enum SkillFolderError {
    /// Folders are nested too deeply.
    #[error("its folders are nested more than {} deep", MAX_DEPTH)]
    TooDeep,
    /// There are too many files.
    #[error("it has more than {} files", MAX_FILES)]
    TooManyFiles,
    /// The files are too large.
    #[error("it has more than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// A file or folder cannot be read.
    #[error("`{}`: {source}", shown(path))]
    Io {
        /// Path in the folder.
        path: PathBuf,
        /// Error from the OS.
        source: io::Error,
    },
    /// A name is not UTF-8.
    #[error("the name `{}` is not UTF-8", shown(.0))]
    NotUtf8(PathBuf),
    /// A name would break a line of a report.
    #[error("the name `{}` has a control character", shown(.0))]
    ControlCharacter(PathBuf),
    /// A link has no target.
    #[error("the link `{}` leads nowhere: {source}", shown(path))]
    DeadLink {
        /// Path in the folder.
        path: PathBuf,
        /// Error from the OS.
        source: io::Error,
    },
    /// A link leads out of the folder.
    #[error("the link `{}` leads out of its folder", shown(.0))]
    LinkOut(PathBuf),
    /// A file is setuid or setgid.
    #[error("`{}` runs with the rights of its owner", shown(.0))]
    Privileged(PathBuf),
    /// Something that is neither a file nor a folder.
    #[error("`{}` is a device, a pipe or a socket", shown(.0))]
    Special(PathBuf),
    /// A file changed or vanished while its digest was computed.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

fn shown(path: &Path) -> String {
    terminal(&path.display().to_string(), 300)
}

/// Reads a skill like [`read_skill`], with an error of its own.
pub fn read_skill_text(file: &Path) -> Result<Skill, SkillFileError> {
    let unreadable = |source| SkillFileError::Io { file: file.to_owned(), source };
    let unusable = |source| SkillFileError::Text { file: file.to_owned(), source };
    // A pipe would block, and a link could lead to any file of this machine.
    let found = file.metadata().map_err(unreadable)?;
    if !found.is_file() {
        return Err(unusable(SkillTextError::NotFile));
    }
    let is_skill_file = file.file_name() == Some(SKILL_FILE.as_ref());
    let folder =
        file.parent().map(|folder| if folder == Path::new("") { Path::new(".") } else { folder });
    let home = folder.and_then(|folder| folder.canonicalize().ok());
    if is_skill_file
        && let (Some(home), Ok(real)) = (&home, file.canonicalize())
        && !real.starts_with(home)
    {
        return Err(unusable(SkillTextError::LinkOut));
    }
    let text = read_bounded_text(file, MAX_SKILL_BYTES).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => unusable(SkillTextError::TooLarge),
        _ => unreadable(error),
    })?;
    if text.trim().is_empty() {
        return Err(unusable(SkillTextError::Empty));
    }
    let named = home.as_deref().or(folder).and_then(Path::file_name).unwrap_or_default();
    let name = one_line(&named.to_string_lossy(), 200);
    let skill = Skill::of_text(name, text);
    let (true, Some(home)) = (is_skill_file, home) else { return Ok(skill) };
    let refused = |source| SkillFileError::Folder { file: file.to_owned(), source };
    let files = SkillFiles::of(&home).map_err(refused)?;
    skill.with_files(files).map_err(|error| refused(error.into()))
}

/// The files of a skill beside its `SKILL.md`, in the making.
struct SkillFiles<'a> {
    /// The folder, without links.
    home: &'a Path,
    /// Answer keys, which are not handed over.
    keys: Vec<PathBuf>,
    files: Vec<Fixture>,
    count: usize,
    bytes: u64,
}

impl<'a> SkillFiles<'a> {
    /// Returns the files, by path.
    fn of(home: &'a Path) -> Result<Vec<Fixture>, SkillFolderError> {
        let mut found = Self { home, keys: Vec::new(), files: Vec::new(), count: 0, bytes: 0 };
        found.add_folder(home, Path::new(""), 0)?;
        // Most skills are one file, and each search looks for ignore files in all folders above.
        if found.files.is_empty() {
            return Ok(found.files);
        }
        // Only now is it known that the folder is small enough to be searched.
        found.keys = folder::find(home);
        let Self { keys, mut files, .. } = found;
        files.retain(|file| match &file.source {
            FixtureSource::Disk(path) => !keys.contains(path),
            FixtureSource::Text(_) => true,
        });
        // The order of a folder differs between machines, and the digest of the skill must not.
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    fn add_folder(
        &mut self,
        folder: &Path,
        below: &Path,
        depth: usize,
    ) -> Result<(), SkillFolderError> {
        if depth > MAX_DEPTH {
            return Err(SkillFolderError::TooDeep);
        }
        let unreadable = |source| SkillFolderError::Io { path: below.to_owned(), source };
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            self.count += 1;
            if self.count > MAX_FILES {
                return Err(SkillFolderError::TooManyFiles);
            }
            let path = below.join(entry.file_name());
            let Ok(name) = entry.file_name().into_string() else {
                return Err(SkillFolderError::NotUtf8(path));
            };
            if name.chars().any(char::is_control) {
                return Err(SkillFolderError::ControlCharacter(path));
            }
            // Only at the top: further below, such a name is one of the skill's own.
            let is_left_out =
                depth == 0 && (name == SKILL_FILE || NOT_HANDED_OVER.contains(&&*name));
            if is_left_out || GENERATED.contains(&&*name) {
                continue;
            }
            let mut from = entry.path();
            if entry.file_type().map_err(unreadable)?.is_symlink() {
                // What a link inside leads to is copied in its place.
                from = from
                    .canonicalize()
                    .map_err(|source| SkillFolderError::DeadLink { path: path.clone(), source })?;
                if !from.starts_with(self.home) {
                    return Err(SkillFolderError::LinkOut(path));
                }
            }
            let found = from.symlink_metadata().map_err(unreadable)?;
            if found.is_dir() {
                // A link to a folder around itself ends at the maximum depth.
                self.add_folder(&from, &path, depth + 1)?;
            } else if found.is_file() {
                // A copy of such a file would run with the rights of the user who tests.
                if has_owner_rights(&found) {
                    return Err(SkillFolderError::Privileged(path));
                }
                self.bytes += found.len();
                if self.bytes > MAX_BYTES {
                    return Err(SkillFolderError::TooLarge);
                }
                let path = path.to_string_lossy().replace('\\', "/");
                self.files.push(Fixture { path, source: FixtureSource::Disk(from) });
            } else {
                return Err(SkillFolderError::Special(path));
            }
        }
        Ok(())
    }
}

/// Returns true for a file that is setuid or setgid.
#[cfg(unix)]
fn has_owner_rights(file: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.permissions().mode() & 0o6000 != 0
}

#[cfg(not(unix))]
fn has_owner_rights(_: &std::fs::Metadata) -> bool {
    false
}

/// The names under which an agent can load a skill: that of its folder, and the one that it gives
/// itself in its front matter.
pub(crate) fn skill_names(skill: &Skill) -> Vec<String> {
    let mut names = vec![skill.name.clone()];
    names.extend(front_matter(&skill.text, "name").filter(|own| *own != skill.name));
    names
}

/// Returns the text of a key in the front matter of a skill, in one line.
pub fn front_matter(text: &str, key: &str) -> Option<String> {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    if lines.next().is_none_or(|line| line.trim_end() != "---") {
        return None;
    }
    let mut lines = lines
        .take_while(|line| line.trim_end() != "---")
        .skip_while(|line| line.strip_prefix(key).is_none_or(|rest| !rest.starts_with(':')));
    let first = lines.next()?.strip_prefix(key)?.strip_prefix(':')?.trim();
    // A block of text stands in the lines below.
    let first = if first.starts_with(['>', '|']) { "" } else { first };
    let more = lines.take_while(|line| line.starts_with([' ', '\t']) || line.is_empty());
    let words: Vec<&str> = std::iter::once(first).chain(more.map(str::trim)).collect();
    let value = one_line(words.join(" ").trim().trim_matches(['"', '\'']), 2_000);
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_has_the_name_of_its_folder_and_its_own() {
        let names = |text: &str| skill_names(&Skill::of_text("ferry", text));
        assert_eq!(names("---\nname: ferry\n---\nGo."), ["ferry"]);
        assert_eq!(names("---\ndescription: x\nname: \"harbour\"\n---\n"), ["ferry", "harbour"]);
        assert_eq!(names("Go.\nname: other\n"), ["ferry"]);
        assert_eq!(names("---\n---\nname: other\n"), ["ferry"]);
    }

    #[test]
    fn a_description_may_have_several_lines() {
        let text = "---\nname: ferry\ndescription: >-\n  Knows the\n  ferry.\nlicense: x\n---\nGo.";
        assert_eq!(front_matter(text, "description").unwrap(), "Knows the ferry.");
        assert_eq!(front_matter(text, "license").unwrap(), "x");
        assert_eq!(front_matter(text, "desc"), None);
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("ferry/SKILL.md", "Go.");
        write("ferry/references/times.md", "10:40");
        write("ferry/evals/evals.json", "{}");
        write("ferry/trigger-evals.json", "[]");
        write("outside.md", "secret");
        folder
    }

    fn laid(folder: &tempfile::TempDir) -> Result<Vec<String>, SkillFileError> {
        let skill = read_skill_text(&folder.path().join("ferry/SKILL.md"))?;
        let agent = ["claude".to_owned()];
        Ok(skill.laid_for(&agent).into_iter().map(|file| file.path).collect())
    }

    #[test]
    fn a_skill_is_handed_over_without_its_answers() {
        let home = ".claude/skills/ferry";
        let files = ["SKILL.md", "references/times.md"].map(|file| format!("{home}/{file}"));
        assert_eq!(laid(&folder()).unwrap(), files);
    }

    #[cfg(unix)]
    #[test]
    fn hostile_folders_are_refused_by_name() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        type Spoil = fn(&Path);
        let cases: [(&str, Spoil); 6] = [
            ("the link `out.md` leads out", |home| {
                symlink("../outside.md", home.join("out.md")).unwrap();
            }),
            ("the link `gone` leads nowhere", |home| {
                symlink("nowhere", home.join("gone")).unwrap();
            }),
            ("nested more than", |home| symlink("..", home.join("references/up")).unwrap()),
            ("has a control character", |home| std::fs::write(home.join("a\nb"), "").unwrap()),
            ("rights of its owner", |home| {
                let rights = std::fs::Permissions::from_mode(0o4755);
                std::fs::set_permissions(home.join("references/times.md"), rights).unwrap();
            }),
            ("a pipe or a socket", |home| {
                drop(std::os::unix::net::UnixListener::bind(home.join("socket")).unwrap());
            }),
        ];
        for (why, spoil) in cases {
            let folder = folder();
            spoil(&folder.path().join("ferry"));
            let error = laid(&folder).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("ferry"), "{why}: {error}");
        }
        let folder = folder();
        let file = folder.path().join("ferry/SKILL.md");
        std::fs::remove_file(&file).unwrap();
        symlink("../outside.md", &file).unwrap();
        let error = laid(&folder).unwrap_err().to_string();
        assert!(error.contains("a link out of the skill's folder"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_inside_is_followed() {
        let folder = folder();
        let home = folder.path().join("ferry");
        std::os::unix::fs::symlink("references/times.md", home.join("times.md")).unwrap();
        assert!(laid(&folder).unwrap().contains(&".claude/skills/ferry/times.md".to_owned()));
    }
}
