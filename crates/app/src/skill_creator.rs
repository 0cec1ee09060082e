//! Writes results in the layout of skill-creator's viewer.

use std::path::Path;

use anyhow::anyhow;

use crate::error::AppError;
use crate::project::Project;
use selftest_reports::skill_creator::{self, ArmConfiguration};

/// The arm with the skill.
pub const WITH_SKILL: &str = "with_skill";
/// The arm without it.
pub const WITHOUT_SKILL: &str = "without_skill";

/// Writes the files of an iteration below a folder. Files of the same names are written over.
pub fn write_skill_creator(
    project: &Project,
    folder: &Path,
    skill: &str,
    configurations: &[ArmConfiguration<'_>],
) -> Result<(), AppError> {
    let folder = project.path(folder);
    for (path, text) in skill_creator::files(skill, configurations) {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(&folder);
        std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text)).map_err(
            |error| {
                AppError::setup(anyhow!("cannot write {}: {error}", path.display()))
                    .hint(Some("name another folder with --skill-creator"))
            },
        )?;
    }
    Ok(())
}
