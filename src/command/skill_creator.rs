//! Writes results where skill-creator's viewer looks for them.

use std::path::Path;

use anyhow::anyhow;

use super::context::Project;
use super::failure::Failure;
use selftest_reports::skill_creator::{self, ArmConfiguration};

/// The arm with the skill.
pub(super) const WITH_SKILL: &str = "with_skill";
/// The arm without it.
pub(super) const WITHOUT_SKILL: &str = "without_skill";

/// Writes the files of an iteration below a folder. Files of the same names are written over.
pub(super) fn write(
    project: &Project,
    folder: &Path,
    skill: &str,
    configurations: &[ArmConfiguration<'_>],
) -> Result<(), Failure> {
    let folder = project.path(folder);
    for (path, text) in skill_creator::files(skill, configurations) {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(&folder);
        std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text)).map_err(
            |error| {
                Failure::setup(anyhow!("cannot write {}: {error}", path.display()))
                    .hint(Some("name another folder with --skill-creator"))
            },
        )?;
    }
    Ok(())
}
