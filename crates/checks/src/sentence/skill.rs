//! Sentences about loading a skill: "The ferry skill was triggered", "Does not select ferry-times".

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::SentenceContext;
use super::skeleton::regex;

/// The skill is what the sentence is about.
static PASSIVE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?ix)^(?:the\s)?(?:(?P<quote>[`"'])?(?P<name>[a-z0-9][a-z0-9_:-]*)[`"']?\s)?skill\s
        (?:(?:is|was|gets|got|has\sbeen|should|must|does|did|will)(?P<not>\snot|n't)?\s(?:be\s|been\s|get\s)?)?(?P<not2>not\s)?
        (?:triggered|loaded|activated|invoked|used|selected|consulted|trigger|load|activate|triggers|activates|loads)\.?$"#,
    )
});

/// The agent is, or is left out.
static ACTIVE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?ix)^(?:(?:the\s)?(?:agent|assistant|model|claude)\s)?
        (?P<not>(?:does|did|should|must)\snot\s|(?:does|did|should|must)n't\s|never\s|(?:answers|answered|responds|responded)\swithout\s)?
        (?:should\s|must\s)?(?:correctly\s)?
        (?:loads?|loaded|loading|triggers?|triggered|triggering|activates?|activated|activating|invokes?|invoked|invoking|selects?|selected|selecting|uses?|used|using|consults?|consulted)\s
        (?:the\s)?(?:(?P<quote>[`"'])?(?P<name>[a-z0-9][a-z0-9_:-]*)[`"']?)?(?P<word>\s?skill)?\.?$"#,
    )
});

/// The file of a skill is read.
static FILE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?ix)^(?:(?:the\s)?(?:agent|assistant|model|claude)\s)?(?P<not>(?:does|did|should|must)\snot\s|never\s)?(?:should\s|must\s)?
        (?:reads?|opens?|opened|loads?|loaded)\s(?:the\s)?(?:file\s)?`?(?:(?:[a-z0-9_.@-]+/)*(?P<name>[a-z0-9][a-z0-9_-]*)/)?(?P<skill_file>skill\.md)`?\.?$",
    )
});

/// Words before "skill" that are no name.
const NOT_NAMES: [&str; 16] = [
    "the",
    "a",
    "this",
    "that",
    "right",
    "correct",
    "wrong",
    "other",
    "same",
    "any",
    "new",
    "no",
    "appropriate",
    "its",
    "another",
    "relevant",
];

/// Returns the check of a skill that a sentence states.
pub(super) fn skill_check(sentence: &str, context: &SentenceContext) -> Option<Value> {
    // Most sentences name no skill, which is cheap to see.
    let has = |name: &str| sentence.to_lowercase().contains(&name.to_lowercase());
    if !has("skill") && !context.skill.iter().chain(&context.others).any(|name| has(name)) {
        return None;
    }
    let plain = PASSIVE.captures(sentence).or_else(|| FILE.captures(sentence));
    let is_active = plain.is_none();
    let is_file = plain.as_ref().is_some_and(|found| found.name("skill_file").is_some());
    let found = plain.or_else(|| ACTIVE.captures(sentence))?;
    let group = |name: &str| found.name(name).map(|text| text.as_str());
    // "Loads the skill" has no name but the word.
    let name = group("name").filter(|name| !name.eq_ignore_ascii_case("skill"));
    let has_word = group("word").is_some() || name != group("name");
    let is_certain = |name: &str| {
        name.contains(['-', '_', ':'])
            || group("quote").is_some()
            || is_file
            || context.is_skill(name)
    };
    // "Uses memory" may mean many things.
    let is_told = |name: &str| {
        let is_marked = name.contains(['-', '_', ':']) || group("quote").is_some();
        has_word || is_marked && context.is_skill(name)
    };
    let name = match name {
        Some(name) if NOT_NAMES.contains(&name.to_lowercase().as_str()) => return None,
        // "The expected skill" names none.
        Some(name) if !is_certain(name) || is_active && !is_told(name) => return None,
        Some(name) => name.to_owned(),
        None if is_active && !has_word => return None,
        None => context.skill.clone()?,
    };
    let loaded = json!({ "skill_loaded": name });
    let is_negative = found.name("not").or(found.name("not2")).is_some();
    Some(if is_negative { json!({ "not": loaded }) } else { loaded })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_known_by_the_word_or_by_its_name() {
        let mut context = SentenceContext::of("", [], Some("ferry-times"));
        context.others.push("tide".to_owned());
        for (sentence, wanted) in [
            ("The skill was triggered", json!({"skill_loaded": "ferry-times"})),
            ("Selected ferry-times", json!({"skill_loaded": "ferry-times"})),
            ("Does not select ferry-times.", json!({"not": {"skill_loaded": "ferry-times"}})),
            (
                "Answered without invoking ferry-times",
                json!({"not": {"skill_loaded": "ferry-times"}}),
            ),
            ("Invokes the `bus` skill", json!({"skill_loaded": "bus"})),
            ("Reads SKILL.md", json!({"skill_loaded": "ferry-times"})),
            ("Reads skills/tide/SKILL.md", json!({"skill_loaded": "tide"})),
            ("The skill should not trigger", json!({"not": {"skill_loaded": "ferry-times"}})),
            ("Uses `tide`", json!({"skill_loaded": "tide"})),
        ] {
            assert_eq!(skill_check(sentence, &context), Some(wanted), "{sentence}");
        }
        for sentence in [
            "Uses tide",
            "Invokes the bus skill",
            "The expected skill was triggered",
            "Every skill was loaded",
            "The matching skill was not triggered",
            "Selects bus-times",
            "Uses the appropriate skill",
            "Loads the skill only when needed",
            "Selects ferry-times rather than a generic skill",
            "Uses skills",
        ] {
            assert_eq!(skill_check(sentence, &context), None, "{sentence}");
        }
    }
}
