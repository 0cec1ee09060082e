//! The folder of a skill, bounded. Knows nothing of what is done with it.

use std::io::Read as _;
use std::path::Path;

use anyhow::anyhow;

use crate::error::AppError;
pub use selftest_harness::sut::skill::SKILL_FILE;
use selftest_harness::sut::skill::Skill;
use selftest_harness::sut::{Fixture, FixtureSource};
use selftest_text::one_line;

/// Maximum number of bytes of a skill's text. The longest of 812 public ones has 292 kB.
const MAX_SKILL_BYTES: u64 = 1 << 20;
/// Folders beside a `SKILL.md` that are no part of the skill: its cases are an answer key.
const NOT_HANDED_OVER: [&str; 2] = ["evals", ".git"];

/// Reads a skill, under the name of its folder.
pub fn read_skill(file: &Path) -> Result<Skill, AppError> {
    read_skill_text(file).map_err(|why| AppError::usage(anyhow!(why)))
}

/// The same; the error names the file.
pub fn read_skill_text(file: &Path) -> Result<Skill, String> {
    let unreadable = |why: String| format!("cannot read {}: {why}", file.display());
    let mut text = String::new();
    let read = std::fs::File::open(file)
        .and_then(|open| open.take(MAX_SKILL_BYTES + 1).read_to_string(&mut text));
    read.map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > MAX_SKILL_BYTES {
        return Err(unreadable(format!("it is over {MAX_SKILL_BYTES} bytes")));
    }
    if text.trim().is_empty() {
        return Err(unreadable("it is empty".to_owned()));
    }
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
    let name = one_line(&folder.to_string_lossy(), 200);
    let skill = Skill::of_text(name, text);
    if file.file_name() != Some(SKILL_FILE.as_ref()) {
        return Ok(skill);
    }
    let files = file.parent().map(files_beside).unwrap_or_default();
    skill.with_files(files).map_err(|error| format!("the skill {}: {error}", file.display()))
}

/// Returns the files and folders beside a `SKILL.md`, by name. Links are left out, because they may
/// lead to what the system under test must not read.
fn files_beside(folder: &Path) -> Vec<Fixture> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_part = |name: &str| name != SKILL_FILE && !NOT_HANDED_OVER.contains(&name);
    let mut files: Vec<Fixture> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir()))
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .filter(|(name, _)| is_part(name))
        .map(|(path, from)| Fixture { path, source: FixtureSource::Disk(from) })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// The names under which an agent can load a skill: that of its folder, and the one that it gives
/// itself in its front matter.
pub(crate) fn skill_names(skill: &Skill) -> Vec<String> {
    let mut names = vec![skill.name.clone()];
    let mut lines = skill.text.trim_start_matches('\u{feff}').lines();
    if lines.next().is_some_and(|line| line.trim_end() == "---") {
        let own = lines.take_while(|line| line.trim_end() != "---").find_map(|line| {
            let name = line.strip_prefix("name:")?.trim().trim_matches(['"', '\'']);
            (!name.is_empty()).then(|| one_line(name, 200))
        });
        names.extend(own.filter(|own| *own != skill.name));
    }
    names
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
}
