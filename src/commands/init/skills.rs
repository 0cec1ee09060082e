//! The skills of a project, as far as `selftest init` needs them: how many, where, and which of them
//! have no cases yet.

use std::collections::BTreeMap;
use std::path::Path;

use selftest_app::{SkillInventory, front_matter};
use selftest_checks::evals::folder;
use selftest_text::wording::plural;

use crate::commands::init::first_cases::{SkillText, first_cases};

/// Most skills that get first cases.
const MAX_FIRST: usize = 200;
/// Where the cases of a skill go, from its folder.
const CASES: &str = "evals/evals.json";

/// The findings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FoundSkills {
    /// Number of skills that can be used.
    pub(super) count: usize,
    /// Number of those with cases.
    with_cases: usize,
    /// The folders that hold them, with their numbers.
    places: BTreeMap<String, usize>,
    /// Skills that cannot be used, and why.
    pub(super) refused: Vec<String>,
    /// True if they lie in no folder where skills are kept: in tests, for example.
    is_by_search: bool,
    /// Paths and texts of first cases, for skills that have none.
    pub(super) first: Vec<(String, String)>,
}

impl FoundSkills {
    /// Looks for skills where agents, plugins and marketplaces keep them.
    pub(super) fn look(project: &Path) -> Self {
        let inventory = SkillInventory::find(project, &[]);
        let mut found = Self {
            count: inventory.skills.len(),
            is_by_search: inventory.is_by_search,
            refused: inventory
                .refused
                .iter()
                .map(|skill| format!("{}: {}", skill.shown, skill.why))
                .collect(),
            ..Self::default()
        };
        let description = |text: &str| front_matter(text, "description").unwrap_or_default();
        let descriptions: Vec<String> =
            inventory.skills.iter().map(|skill| description(&skill.skill.text)).collect();
        let text = |at: usize| SkillText {
            name: &inventory.skills[at].skill.name,
            description: &descriptions[at],
            text: &inventory.skills[at].skill.text,
        };
        for (at, skill) in inventory.skills.iter().enumerate() {
            let place = match skill.shown.rsplit_once('/') {
                Some((place, _)) => place,
                None => ".",
            };
            *found.places.entry(place.to_owned()).or_default() += 1;
            if !folder::find(&skill.folder).is_empty() {
                found.with_cases += 1;
            } else if found.first.len() < MAX_FIRST {
                let siblings: Vec<SkillText<'_>> =
                    (0..inventory.skills.len()).filter(|other| *other != at).map(text).collect();
                let home =
                    if skill.shown == "." { String::new() } else { format!("{}/", skill.shown) };
                found.first.push((format!("{home}{CASES}"), first_cases(&text(at), &siblings)));
            }
        }
        found
    }

    /// Returns true if the project is about skills, and does not only use some.
    pub(super) fn is_repository(&self) -> bool {
        // The folder of an agent holds skills that help with the project.
        !self.is_by_search
            && self.places.keys().any(|place| !place.starts_with('.') || place == ".")
    }

    /// The findings in lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let place = |(place, count): (&String, &usize)| {
            format!("{place}: {}", plural(*count as u64, "skill"))
        };
        let mut lines: Vec<String> = self.places.iter().map(place).collect();
        if self.count > 0 {
            let without = self.count - self.with_cases;
            lines.push(format!(
                "cases for {} of {} skills, {without} without",
                self.with_cases, self.count
            ));
        }
        lines
    }
}
