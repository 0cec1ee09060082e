//! The file of a skill, bounded. Knows nothing of what is done with it.

use std::io::Read as _;
use std::path::Path;

use anyhow::anyhow;

use super::failure::Failure;
use selftest_harness::sut::skill::Skill;
use selftest_text::one_line;

/// Name of a skill's file.
pub(super) const FILE: &str = "SKILL.md";
/// Most bytes of a skill's text.
const MAX_SKILL_BYTES: u64 = 1 << 18;

/// Reads a skill, under the name of its folder.
pub(super) fn read_skill(file: &Path) -> Result<Skill, Failure> {
    let unreadable = |why: String| Failure::usage(anyhow!("cannot read {}: {why}", file.display()));
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
    Ok(Skill { name, text })
}
