//! Finds the skills of a repository where agents, plugins and marketplaces keep them. Reads, and
//! writes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::skill_file::{SKILL_FILE, read_skill_text};
use selftest_harness::sut::skill::{Skill, project_folders};
use selftest_text::escape::terminal;
use selftest_text::file::read_bounded_text;
use selftest_text::one_line;

/// Where marketplaces of plugins are described.
const MARKETPLACES: [&str; 4] = [
    ".claude-plugin/marketplace.json",
    ".agents/plugins/marketplace.json",
    ".github/plugin/marketplace.json",
    ".cursor-plugin/marketplace.json",
];
/// Maximum size of such a description.
const MAX_DESCRIPTION: u64 = 4 << 20;
/// Maximum depth at which a skill lies below a folder of skills: `skills/group/name`.
const MAX_DEPTH: usize = 4;
/// Maximum depth if no folder of skills is known.
const MAX_SEARCH_DEPTH: usize = 6;
/// Maximum number of entries of folders that are looked at.
const MAX_ENTRIES: usize = 50_000;
/// Folders that hold no skills of the repository.
const SKIPPED: [&str; 4] = [".git", "node_modules", "target", "__pycache__"];

/// A skill of a repository.
#[derive(Debug, Clone)]
pub struct FoundSkill {
    /// Its name, unique in the repository.
    pub name: String,
    /// Its folder, without links.
    pub folder: PathBuf,
    /// Its folder from the root of the project, for people.
    pub shown: String,
    /// The skill.
    pub skill: Arc<Skill>,
}

/// A skill that is not used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSkill {
    /// Its folder, for people.
    pub shown: String,
    /// The reason.
    pub why: String,
}

/// The skills of a repository.
#[derive(Debug, Clone, Default)]
pub struct SkillInventory {
    /// The skills that can be used, by folder.
    pub skills: Vec<FoundSkill>,
    /// The others.
    pub refused: Vec<RefusedSkill>,
    /// What a maintainer should know, one line each.
    pub remarks: Vec<String>,
    /// True if no folder of skills is known, and the skills were found somewhere else in the project.
    pub is_by_search: bool,
}

impl SkillInventory {
    /// Finds the skills below a project, and those below these paths.
    pub fn find(project: &Path, paths: &[PathBuf]) -> Self {
        let mut search = SkillSearch::default();
        for root in roots(project) {
            search.add(&root, MAX_DEPTH);
        }
        for path in paths {
            search.add(path, MAX_SEARCH_DEPTH);
        }
        // A repository may be one skill.
        search.add(project, 0);
        // Only then: a search of a whole repository also finds fixtures and copies.
        let is_by_search = search.folders.is_empty();
        if is_by_search {
            search.add(project, MAX_SEARCH_DEPTH);
        }
        let mut inventory = Self { is_by_search, ..Self::default() };
        if search.left == 0 {
            inventory.remarks.push(format!(
                "more than {MAX_ENTRIES} files and folders: not all were searched for skills"
            ));
        }
        for folder in search.folders {
            inventory.add(project, &folder);
        }
        inventory.name_apart();
        inventory
    }

    fn add(&mut self, project: &Path, folder: &Path) {
        let relative = folder.strip_prefix(project).unwrap_or(folder);
        let shown = if relative.as_os_str().is_empty() {
            ".".to_owned()
        } else {
            one_line(&relative.display().to_string(), 300)
        };
        // `folder` is resolved, so a link out of the repository is found here.
        if !folder.starts_with(project) {
            let why = "it lies outside of the repository, or is a link out of it".to_owned();
            self.refused.push(RefusedSkill { shown, why });
            return;
        }
        match read_skill_text(&folder.join(SKILL_FILE)) {
            Ok(skill) => self.skills.push(FoundSkill {
                name: skill.name.clone(),
                folder: folder.to_owned(),
                shown,
                skill: Arc::new(skill),
            }),
            Err(why) => self.refused.push(RefusedSkill { shown, why: why.to_string() }),
        }
    }

    /// Gives skills of one name different ones, and says so.
    fn name_apart(&mut self) {
        let mut of_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (position, skill) in self.skills.iter().enumerate() {
            // Folders that differ only in case are one on macOS and Windows.
            of_name.entry(skill.name.to_lowercase()).or_default().push(position);
        }
        for positions in of_name.into_values().filter(|positions| positions.len() > 1) {
            let places: Vec<&str> =
                positions.iter().map(|&position| &*self.skills[position].shown).collect();
            let digests = || positions.iter().map(|&position| self.skills[position].skill.digest());
            let first = self.skills[positions[0]].skill.digest();
            let sameness = if digests().all(|digest| digest == first) {
                "with the same content"
            } else {
                "with different content; an agent loads one of them"
            };
            let name = &self.skills[positions[0]].name;
            self.remarks.push(format!(
                "{} skills are named `{}`, {sameness}: {}",
                positions.len(),
                terminal(name, 100),
                terminal(&places.join(", "), 500)
            ));
            for &position in &positions {
                let skill = &mut self.skills[position];
                // Reports and the state file name skills, so each needs a name of its own.
                skill.name.clone_from(&skill.shown);
            }
        }
    }

    /// Returns the positions of the skills at or below these paths; all without any path.
    pub fn selected(&self, paths: &[PathBuf]) -> Vec<usize> {
        let is_selected = |skill: &FoundSkill| {
            paths.is_empty() || paths.iter().any(|path| skill.folder.starts_with(path))
        };
        let all = self.skills.iter().enumerate();
        all.filter(|(_, skill)| is_selected(skill)).map(|(position, _)| position).collect()
    }

    /// Returns the skills that lie beside this one, one of each name.
    pub fn siblings(&self, position: usize) -> Vec<&FoundSkill> {
        let own = self.skills[position].skill.name.to_lowercase();
        // Two siblings of one name would be laid in one folder.
        let mut names = std::collections::BTreeSet::from([own]);
        let all = self.skills.iter();
        all.filter(|skill| names.insert(skill.skill.name.to_lowercase())).collect()
    }

    /// Returns all folders of skills with the name of this one.
    pub fn namesakes(&self, position: usize) -> Vec<PathBuf> {
        let own = self.skills[position].skill.name.to_lowercase();
        let is_same = |skill: &&FoundSkill| skill.skill.name.to_lowercase() == own;
        self.skills.iter().filter(is_same).map(|skill| skill.folder.clone()).collect()
    }
}

/// The folders of a project that hold skills.
fn roots(project: &Path) -> Vec<PathBuf> {
    let mut roots = vec![project.join("skills")];
    roots.extend(project_folders().into_iter().map(|folder| project.join(folder)));
    let plugins = std::fs::read_dir(project.join("plugins")).into_iter().flatten().flatten();
    roots.extend(plugins.take(MAX_ENTRIES).map(|plugin| plugin.path().join("skills")));
    for description in MARKETPLACES {
        roots.extend(marketplace(project, &project.join(description)));
    }
    roots.sort();
    roots.dedup();
    roots
}

/// The folders that the plugins of a marketplace name. One that leads out of the project is ignored.
fn marketplace(project: &Path, description: &Path) -> Vec<PathBuf> {
    let text = read_bounded_text(description, MAX_DESCRIPTION).unwrap_or_default();
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    let base = document.pointer("/metadata/pluginRoot").and_then(Value::as_str).unwrap_or("");
    let plugins = document["plugins"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut folders = Vec::new();
    for plugin in plugins {
        // A plugin of another repository has an object here.
        let Some(source) = plugin["source"].as_str() else { continue };
        let home = project.join(base).join(source);
        folders.push(home.join("skills"));
        let own = read_bounded_text(&home.join(".claude-plugin/plugin.json"), MAX_DESCRIPTION);
        let own: Value = serde_json::from_str(&own.unwrap_or_default()).unwrap_or_default();
        for named in [&plugin["skills"], &own["skills"]] {
            let one = named.as_str().into_iter();
            let many = named.as_array().into_iter().flatten().filter_map(Value::as_str);
            folders.extend(one.chain(many).map(|path| home.join(path)));
        }
    }
    folders
        .into_iter()
        .filter_map(|folder| folder.canonicalize().ok())
        // A description can name any path, also one out of the project.
        .filter(|folder| folder.starts_with(project))
        .collect()
}

/// A search for folders with a `SKILL.md`.
struct SkillSearch {
    /// Without links, sorted.
    folders: std::collections::BTreeSet<PathBuf>,
    /// Number of entries that may still be looked at.
    left: usize,
}

impl Default for SkillSearch {
    fn default() -> Self {
        Self { folders: std::collections::BTreeSet::new(), left: MAX_ENTRIES }
    }
}

impl SkillSearch {
    /// Adds the skills at or below a path. Links to folders are followed once: an agent's folder often
    /// holds links to the skills of the repository.
    fn add(&mut self, path: &Path, depth: usize) {
        let Ok(mut folder) = path.canonicalize() else { return };
        if folder.is_file() && !folder.pop() {
            return;
        }
        // A `SKILL.md` that is no file is refused later, by name.
        if folder.join(SKILL_FILE).symlink_metadata().is_ok() {
            // Not searched further: folders inside belong to this skill.
            self.folders.insert(folder);
            return;
        }
        if depth == 0 {
            return;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else { return };
        for entry in entries.flatten() {
            let Some(left) = self.left.checked_sub(1) else { return };
            self.left = left;
            let is_skipped = entry.file_name().to_str().is_some_and(|name| SKIPPED.contains(&name));
            let path = entry.path();
            if !is_skipped && path.is_dir() {
                self.add(&path, depth - 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = folder.path().canonicalize().unwrap();
        (folder, root)
    }

    fn shown(inventory: &SkillInventory) -> Vec<&str> {
        inventory.skills.iter().map(|skill| &*skill.shown).collect()
    }

    #[test]
    fn skills_are_found_where_they_are_kept() {
        let market = r#"{"plugins": [
            {"name": "a", "source": "./tools/a", "skills": ["./extra/gull"]},
            {"name": "b", "source": {"source": "github", "repo": "x/y"}},
            {"name": "c", "source": "../../etc"}
        ]}"#;
        let (_folder, root) = repository(&[
            ("skills/ferry/SKILL.md", "a"),
            ("skills/group/tide/SKILL.md", "b"),
            (".claude/skills/house/SKILL.md", "c"),
            (".agents/skills/pier/SKILL.md", "d"),
            (".codex/skills/mole/SKILL.md", "e"),
            ("plugins/boat/skills/sail/SKILL.md", "f"),
            (".claude-plugin/marketplace.json", market),
            ("tools/a/skills/rope/SKILL.md", "g"),
            ("tools/a/extra/gull/SKILL.md", "h"),
            ("tests/fixtures/no/SKILL.md", "i"),
        ]);
        let found = SkillInventory::find(&root, &[]);
        assert_eq!(
            shown(&found),
            [
                ".agents/skills/pier",
                ".claude/skills/house",
                ".codex/skills/mole",
                "plugins/boat/skills/sail",
                "skills/ferry",
                "skills/group/tide",
                "tools/a/extra/gull",
                "tools/a/skills/rope",
            ]
        );
        let ferry = found.selected(&[root.join("skills/ferry")]);
        assert_eq!(ferry.len(), 1);
        assert_eq!(found.siblings(ferry[0]).len(), 7);
        assert_eq!(found.selected(&[]).len(), 8);
    }

    #[test]
    fn a_repository_without_known_folders_is_searched() {
        let (_folder, root) = repository(&[("ferry/SKILL.md", "a"), ("docs/x.md", "b")]);
        let found = SkillInventory::find(&root, &[]);
        assert_eq!((shown(&found), found.is_by_search), (vec!["ferry"], true));
        let (_folder, root) = repository(&[("SKILL.md", "a")]);
        let found = SkillInventory::find(&root, &[]);
        assert_eq!((shown(&found), found.is_by_search), (vec!["."], false));
    }

    #[test]
    fn two_skills_of_one_name_are_said() {
        let (_folder, root) = repository(&[
            ("plugins/a/skills/ferry/SKILL.md", "a"),
            ("plugins/b/skills/ferry/SKILL.md", "b"),
            ("skills/empty/SKILL.md", " \n"),
        ]);
        let found = SkillInventory::find(&root, &[]);
        let names: Vec<&str> = found.skills.iter().map(|skill| &*skill.name).collect();
        assert_eq!(names, ["plugins/a/skills/ferry", "plugins/b/skills/ferry"]);
        assert!(found.remarks[0].starts_with("2 skills are named `ferry`, with different"));
        assert_eq!(found.siblings(0).len(), 0, "they would lie in one folder");
        assert_eq!(found.namesakes(0).len(), 2);
        assert_eq!(found.refused[0].shown, "skills/empty");
        assert!(found.refused[0].why.contains("it is empty"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_skill_is_the_same_skill() {
        let (_folder, root) = repository(&[("skills/ferry/SKILL.md", "a")]);
        std::fs::create_dir_all(root.join(".claude/skills")).unwrap();
        std::os::unix::fs::symlink("../../skills/ferry", root.join(".claude/skills/ferry"))
            .unwrap();
        let found = SkillInventory::find(&root, &[]);
        assert_eq!((shown(&found), found.remarks.len()), (vec!["skills/ferry"], 0));
    }
}
