//! The skills of a project, as far as `selftest init` needs them: how many, where, which of them have
//! no cases yet, and first cases for those: prompts at which the skill should be loaded, near misses,
//! and one task, made by rules from its SKILL.md and those of its siblings.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde_json::{Value, json};

use selftest_app::{SkillInventory, front_matter};
use selftest_checks::evals::folder;
use selftest_text::wording::plural;
use selftest_text::words::WordSet;

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
        let similar = SimilarTexts::new(&descriptions);
        let tested = with_cases(inventory.skills.iter().map(|skill| &*skill.folder));
        for (at, skill) in inventory.skills.iter().enumerate() {
            let place = match skill.shown.rsplit_once('/') {
                Some((place, _)) => place,
                None => ".",
            };
            *found.places.entry(place.to_owned()).or_default() += 1;
            if tested.contains(&*skill.folder) {
                found.with_cases += 1;
            } else if found.first.len() < MAX_FIRST {
                let name = |other: usize| &*inventory.skills[other].skill.name;
                let siblings: Vec<SkillText<'_>> =
                    similar.to(at, MAX_NEAR_MISSES, name).into_iter().map(text).collect();
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

/// Returns the folders below which there are cases.
fn with_cases<'p>(folders: impl Iterator<Item = &'p Path>) -> HashSet<&'p Path> {
    let mut places: BTreeMap<&Path, HashSet<&Path>> = BTreeMap::new();
    for folder in folders {
        places.entry(folder.parent().unwrap_or(folder)).or_default().insert(folder);
    }
    let mut found = HashSet::new();
    for (place, folders) in places {
        if folders.len() < MANY {
            // What else lies beside them may be the whole project.
            found.extend(folders.into_iter().filter(|folder| !folder::find(folder).is_empty()));
        } else {
            // One walk: the start of each looks for ignore files in every folder above.
            for file in folder::find(place) {
                found.extend(file.ancestors().find_map(|above| folders.get(above).copied()));
            }
        }
    }
    found
}

/// Number of skills in one folder from which on that folder is searched as a whole.
const MANY: usize = 16;

/// Most prompts of a kind.
const MAX_TRIGGERS: usize = 3;
const MAX_NEAR_MISSES: usize = 2;
/// Most skills with a word at which it still counts for similarity, unless there are no others.
const MAX_COMPARED: usize = 500;

/// Words before what a skill is for.
const LEADS: [&str; 8] = [
    "use this skill when ",
    "use this when ",
    "use when ",
    "use it when ",
    "use this skill for ",
    "use for ",
    "trigger when ",
    "invoke when ",
];

/// First words of questions.
const QUESTION_WORDS: [&str; 14] = [
    "are", "can", "could", "do", "does", "how", "is", "what", "when", "where", "which", "who",
    "why", "will",
];

/// A skill as far as its first cases need it.
pub(super) struct SkillText<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    /// The whole SKILL.md.
    pub(super) text: &'a str,
}

/// Texts by their words, so that the most similar ones are found without comparing each with each.
struct SimilarTexts {
    texts: Vec<WordSet>,
    with_word: HashMap<u64, Vec<usize>>,
}

impl SimilarTexts {
    fn new(texts: &[String]) -> Self {
        let texts: Vec<WordSet> = texts.iter().map(|text| WordSet::from_text(text)).collect();
        let mut with_word: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, words) in texts.iter().enumerate() {
            for word in words.hashes() {
                with_word.entry(*word).or_default().push(at);
            }
        }
        Self { texts, with_word }
    }

    /// Returns the positions of the texts that are most similar to that at a position, best first, of
    /// equal ones in order of their names.
    fn to<'n>(&self, at: usize, most: usize, name: impl Fn(usize) -> &'n str) -> Vec<usize> {
        let own = &self.texts[at];
        let mut similar: Vec<usize> = own
            .hashes()
            .iter()
            .filter_map(|word| self.with_word.get(word))
            // A word that most of them have says nothing, and would compare all with all.
            .filter(|found| found.len() <= MAX_COMPARED)
            .flatten()
            .copied()
            .collect();
        similar.sort_unstable();
        similar.dedup();
        let few = (0..self.texts.len()).take(MAX_COMPARED);
        if similar.len() <= most {
            similar.extend(few);
            similar.sort_unstable();
            similar.dedup();
        }
        let mut rated: Vec<(f64, usize)> = similar
            .into_iter()
            .filter(|other| *other != at)
            .map(|other| (own.jaccard(&self.texts[other]), other))
            .collect();
        rated.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| name(a.1).cmp(name(b.1))));
        rated.into_iter().take(most).map(|(_, other)| other).collect()
    }
}

/// The text of an `evals.json`. The siblings are the most similar ones, best first.
pub(super) fn first_cases(skill: &SkillText<'_>, siblings: &[SkillText<'_>]) -> String {
    let wanted = triggers(skill);
    let mut cases = vec![task(skill, &wanted[0])];
    let of = |kind: &str, number: usize, prompt: &str, wanted: bool| json!({ "id": format!("{kind}-{number}"), "prompt": prompt, "should_trigger": wanted });
    cases
        .extend(wanted.iter().zip(1..).map(|(prompt, number)| of("trigger", number, prompt, true)));
    let others = near_misses(skill, siblings);
    cases.extend(
        others.iter().zip(1..).map(|(prompt, number)| of("near-miss", number, prompt, false)),
    );
    format!("{:#}\n", json!({ "skill_name": skill.name, "evals": cases }))
}

/// Prompts at which the skill should be loaded; at least two.
fn triggers(skill: &SkillText<'_>) -> Vec<String> {
    let lower = skill.description.to_lowercase();
    let mut found: Vec<String> = quoted(skill.description).into_iter().map(sentence).collect();
    for lead in LEADS {
        // Lower case may have another length, and then the place is unknown.
        let Some(at) = lower.find(lead).filter(|_| lower.len() == skill.description.len()) else {
            continue;
        };
        let rest = skill.description.get(at + lead.len()..).unwrap_or_default();
        let clause = rest.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let clause = clause.replace(", or ", ", ").replace(" or ", ", ");
        found.extend(clause.split(", ").filter_map(request));
    }
    let words = skill.name.replace(['-', '_'], " ");
    let first = skill.description.split(". ").next().unwrap_or_default().trim_end_matches('.');
    found.push(if first.is_empty() {
        format!("I have a task about {words}. Please do it.")
    } else {
        format!("I need somebody for this: {first}.")
    });
    found.push(format!("Can you help me with {words}?"));
    found.dedup();
    found.truncate(MAX_TRIGGERS);
    found
}

/// A clause such as `the user asks to read a PDF` as a request.
fn request(clause: &str) -> Option<String> {
    let mut clause = clause.trim();
    for lead in ["the user ", "a user ", "users ", "user ", "you ", "asked ", "someone "] {
        clause = clause.strip_prefix(lead).unwrap_or(clause);
    }
    let asked =
        ["asks to ", "asks you to ", "wants to ", "needs to ", "want to ", "need to ", "to "];
    if let Some(action) = asked.iter().find_map(|lead| clause.strip_prefix(lead)) {
        return Some(format!("Please {action}."));
    }
    let about =
        ["asks about ", "asks for ", "mentions ", "wants ", "needs ", "working with ", "about "];
    if let Some(topic) = about.iter().find_map(|lead| clause.strip_prefix(lead)) {
        return Some(format!("I need help with {topic}."));
    }
    let first = clause.split(' ').next().unwrap_or_default();
    if first.len() > 4 && first.ends_with("ing") {
        return Some(format!("I am {clause}. Can you help?"));
    }
    None
}

/// Phrases in quotation marks: what users say, by the skill's own words.
fn quoted(text: &str) -> Vec<&str> {
    let parts: Vec<&str> = text.split(['"', '“', '”']).collect();
    let inside = parts.iter().skip(1).step_by(2).take(parts.len() / 2);
    inside.copied().filter(|phrase| phrase.split(' ').count() > 1 && phrase.len() < 200).collect()
}

/// A phrase with a capital letter and its mark at the end.
fn sentence(phrase: &str) -> String {
    let phrase = phrase.trim();
    let first = phrase.split(' ').next().unwrap_or_default().to_lowercase();
    let mark = match phrase.ends_with(['.', '?', '!']) {
        true => "",
        false if QUESTION_WORDS.contains(&&*first) => "?",
        false => ".",
    };
    let mut letters = phrase.chars();
    let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{capital}{}{mark}", letters.as_str())
}

/// Requests for the most similar siblings, or about the skill's words without its task.
fn near_misses(skill: &SkillText<'_>, siblings: &[SkillText<'_>]) -> Vec<String> {
    let others = siblings.iter().take(MAX_NEAR_MISSES);
    let mut found: Vec<String> = others.map(|other| triggers(other).remove(0)).collect();
    let words = skill.name.replace(['-', '_'], " ");
    found.push(format!("What do the words “{words}” mean in everyday English?"));
    found.push(format!("Write one line of a poem about {words}."));
    found.truncate(MAX_NEAR_MISSES);
    found
}

/// A task whose answer holds something that only the skill says.
fn task(skill: &SkillText<'_>, trigger: &str) -> Value {
    let prompt = format!(
        "{trigger} Say in short which steps you take, and name the files, commands and formats that \
         they need."
    );
    let expectation = match told_only_here(skill, &prompt) {
        Some(literal) => format!("The answer contains \"{literal}\""),
        None => format!("The answer follows the steps of the skill {}", skill.name),
    };
    json!({ "id": "task-1", "prompt": prompt, "expectations": [expectation] })
}

/// Returns a code span of the skill that a request does not give away, the most special first.
fn told_only_here<'a>(skill: &SkillText<'a>, prompt: &str) -> Option<&'a str> {
    // Blocks of code are too long to be repeated.
    let text = skill.text.split("```").step_by(2);
    let spans = text.flat_map(|part| part.split('`').skip(1).step_by(2));
    let is_known = |span: &str| skill.description.contains(span) || prompt.contains(span);
    let fits = |span: &&str| {
        (4..=60).contains(&span.len()) && !span.contains(['"', '\n', '<', '{']) && !is_known(span)
    };
    let rank = |span: &&str| {
        let is_special = span.contains(['/', '.', '-', '_']) && !span.contains(' ');
        u8::from(is_special) + u8::from(span.contains('/'))
    };
    // Of several, the first of the best: `max_by_key` would take the last.
    spans.filter(fits).fold(None, |best: Option<&str>, span| match best {
        Some(best) if rank(&best) >= rank(&span) => Some(best),
        _ => Some(span),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FERRY: SkillText<'static> = SkillText {
        name: "ferry-times",
        description: "Looks up departures of the ferry. Use when the user asks to find a departure, \
                      mentions timetables, or says \"when does the boat go\".",
        text: "---\nname: ferry-times\n---\nRun `scripts/fare.py`, then read `times`.\n```sh\n`x/y`\n```",
    };
    const TIDE: SkillText<'static> = SkillText {
        name: "tide",
        description: "Looks up departures of the tide. Use for planning a swim.",
        text: "",
    };

    #[test]
    fn first_cases_of_a_skill() {
        let cases: Value = serde_json::from_str(&first_cases(&FERRY, &[TIDE])).unwrap();
        let prompts = |wanted: bool| -> Vec<&str> {
            let cases = cases["evals"].as_array().unwrap().iter();
            let kept = cases.filter(|case| case["should_trigger"] == wanted);
            kept.map(|case| case["prompt"].as_str().unwrap()).collect()
        };
        assert_eq!(
            prompts(true),
            ["When does the boat go?", "Please find a departure.", "I need help with timetables."]
        );
        assert_eq!(
            prompts(false),
            [
                "I am planning a swim. Can you help?",
                "What do the words “ferry times” mean in everyday English?"
            ]
        );
        let task = &cases["evals"][0];
        assert_eq!(task["expectations"][0], "The answer contains \"scripts/fare.py\"");
        assert!(
            task["prompt"].as_str().unwrap().starts_with("When does the boat go? Say in short")
        );
    }

    #[test]
    fn a_skill_without_a_description_has_cases_too() {
        let bare = SkillText { name: "tide", description: "", text: "Go." };
        let cases = first_cases(&bare, &[]);
        let cases: Value = serde_json::from_str(&cases).unwrap();
        let cases = cases["evals"].as_array().unwrap();
        assert_eq!(cases.len(), 5);
        assert_eq!(cases[0]["expectations"][0], "The answer follows the steps of the skill tide");
    }
}
