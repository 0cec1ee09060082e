//! Determines the author of a `user` record. Hermes adds skills, summaries, reviews and notices, so
//! a person typed only part of it, or nothing; input while a tool is running is at the end of that
//! tool's result.

use std::ops::Range;

use memchr::memmem;

use crate::Text;

/// Prefixes of background review prompts, which old builds store as user turns.
const REVIEWS: [&str; 4] = [
    "Review the conversation above and update the skill library",
    "Review the conversation above and consider saving to memory",
    "Review the conversation above and update two things",
    "Review the conversation above and consider two things",
];

/// Prefixes of a summary that replaces earlier messages.
const SUMMARIES: [&str; 4] =
    ["[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:", "[PRIOR CONTEXT", "CONTEXT COMPACTION —"];

/// Ends a summary in front of a message.
const END_OF_SUMMARY: &str = "--- END OF CONTEXT SUMMARY";

/// Prefixes of a skill in front of the user's text, which comes last.
const SKILLS: [&str; 2] =
    ["[SYSTEM: The user has invoked the \"", "[IMPORTANT: The user has invoked the \""];
const INSTRUCTION: &str =
    "The user has provided the following instruction alongside the skill invocation: ";
const AFTER_INSTRUCTION: [&str; 2] = ["\n\n[Runtime note:", "\n\n[This skill has supporting files"];

/// With several skills at once, the instruction comes first.
const BUNDLE: &str = " skill bundle,";
const BUNDLE_INSTRUCTION: &str = "\nUser instruction: ";
const AFTER_BUNDLE_INSTRUCTION: &str = "\n\n[Loaded as part of the ";

/// A skill that the gateway loads automatically, and its last sentence.
const AUTO_LOADED: &str = "\" skill is auto-loaded. Follow its instructions for this session.]";
const END_OF_SKILL: &str = "then run them with the terminal tool using the absolute path.";

/// Prefixes of bracketed notices, in front of a message or alone.
const NOTICES: [&str; 6] = [
    "[SYSTEM:",
    "[System note:",
    "[IMPORTANT:",
    "[Your active task list was preserved",
    "[Note: model was just switched",
    "[ASYNC DELEGATION",
];

/// Notice in front of the prompt of a scheduled job, which no person typed just now.
const SCHEDULED: &str = "scheduled cron job";

/// A user record, split by author. Either part may be empty.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SplitPrompt<'a> {
    pub(super) harness: Text<'a>,
    pub(super) human: Text<'a>,
    /// True if the harness part is a summary of earlier messages.
    pub(super) is_summary: bool,
}

/// Splits the text of a user record. `is_summary` is the record's own flag.
pub(super) fn split_prompt(text: Text<'_>, is_summary: bool) -> SplitPrompt<'_> {
    let looks_like_summary = self::is_summary(&text);
    // Without the known prefix, the end of the summary cannot be found.
    if is_summary && !looks_like_summary {
        return SplitPrompt { harness: text, is_summary, ..SplitPrompt::default() };
    }
    let is_summary = looks_like_summary;
    let Some(human) = human_part(&text) else {
        return SplitPrompt { human: text, ..SplitPrompt::default() };
    };
    if human.is_empty() {
        return SplitPrompt { harness: text, is_summary, ..SplitPrompt::default() };
    }
    // The user's text may be in the middle of the harness's.
    let harness = format!("{}\n{}", &text[..human.start], &text[human.end..]);
    let harness = harness.trim().to_owned().into();
    let human = text[human].trim().to_owned().into();
    SplitPrompt { harness, human, is_summary }
}

/// Returns true if a text is a summary of earlier messages, regardless of its role.
pub(super) fn is_summary(text: &str) -> bool {
    let text = text.trim_start();
    SUMMARIES.iter().any(|beginning| text.starts_with(beginning))
}

/// Returns the range that a person typed, possibly empty; `None` if it is everything.
fn human_part(text: &str) -> Option<Range<usize>> {
    let begin = text.len() - text.trim_start().len();
    let from = &text[begin..];
    if is_summary(from) {
        // The summary may quote an earlier one, so the last marker counts.
        let behind = from.rfind(END_OF_SUMMARY).and_then(|end| {
            // The rest of that line belongs to the summary.
            from[end..].find('\n').map(|line| begin + end + line)
        });
        return Some(behind.unwrap_or(text.len())..text.len());
    }
    if REVIEWS.iter().any(|beginning| from.starts_with(beginning)) {
        return Some(0..0);
    }
    // A message that consists only of a `/steer` frame.
    if let Some(("", said)) = split_steer(from) {
        let start = text.rfind(said)?;
        return Some(start..start + said.len());
    }
    if SKILLS.iter().any(|beginning| from.starts_with(beginning)) {
        // A skill without an instruction was invoked by a person, who typed no text of their own.
        return Some(instruction(text).unwrap_or(0..0));
    }
    if from.starts_with("[IMPORTANT: The \"") && from.contains(AUTO_LOADED) {
        let end = text.rfind(END_OF_SKILL).map_or(text.len(), |at| at + END_OF_SKILL.len());
        return Some(end..text.len());
    }
    after_notices(text, begin)
}

/// Returns the range typed after `/skill`.
fn instruction(text: &str) -> Option<Range<usize>> {
    let is_bundle = text.lines().next().is_some_and(|line| line.contains(BUNDLE));
    if is_bundle {
        let start = text.find(BUNDLE_INSTRUCTION)? + BUNDLE_INSTRUCTION.len();
        let length = text[start..].find(AFTER_BUNDLE_INSTRUCTION);
        return Some(start..length.map_or(text.len(), |length| start + length));
    }
    // The skill may quote this sentence, so the last occurrence counts.
    let start = text.rfind(INSTRUCTION)? + INSTRUCTION.len();
    // Either of these sections may follow; the first one ends the instruction.
    let ends = AFTER_INSTRUCTION.iter().filter_map(|end| text[start..].find(end)).min();
    Some(start..ends.map_or(text.len(), |length| start + length))
}

/// Returns the range after bracketed notices.
fn after_notices(text: &str, begin: usize) -> Option<Range<usize>> {
    let mut at = begin;
    while NOTICES.iter().any(|beginning| text[at..].starts_with(beginning)) {
        // Notices nest brackets, for example around a list.
        let length = closing_bracket(&text[at..]).unwrap_or(text.len() - at);
        if text[at..at + length].contains(SCHEDULED) {
            return Some(0..0);
        }
        at += length;
        at += text[at..].len() - text[at..].trim_start().len();
    }
    (at > begin).then_some(at..text.len())
}

/// Returns the length of the bracket at the start of a text, including nested brackets.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(at + 1),
            b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Newer frame. The rest of its opening line changes from version to version.
const STEER_OPEN: &str = "[OUT-OF-BAND USER MESSAGE";
const STEER_CLOSE: &str = "[/OUT-OF-BAND USER MESSAGE]";

/// Older frame, without an end marker.
const OLD_STEER: &str = "\nUser guidance: ";

/// Preamble inside the newer frame, up to an empty line.
const STEER_ORIGIN: &str = "Gateway message origin (JSON data";

/// Splits a text into its content and the user's message in a frame at its end. Only the end
/// counts, because a tool's output may contain the same phrases.
pub(super) fn split_steer(text: &str) -> Option<(&str, &str)> {
    let whole = text.trim_end();
    if let Some(framed) = whole.strip_suffix(STEER_CLOSE) {
        // The last one: the output before it may quote such a frame.
        let (before, frame) = framed.split_at(framed.rfind(STEER_OPEN)?);
        let (_, said) = frame.split_once("]\n")?;
        let said = match said.split_once("\n\n") {
            Some((origin, said)) if origin.starts_with(STEER_ORIGIN) => said,
            _ => said,
        };
        return Some((before.trim_end(), said.trim()));
    }
    // Search forwards first, which is faster and nearly always finds nothing.
    memmem::find(whole.as_bytes(), OLD_STEER.as_bytes())?;
    let at = memmem::rfind(whole.as_bytes(), OLD_STEER.as_bytes())?;
    Some((whole[..at].trim_end(), whole[at + OLD_STEER.len()..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(text: &str) -> (String, String) {
        let prompt = split_prompt(text.into(), false);
        (prompt.harness.as_str().to_owned(), prompt.human.as_str().to_owned())
    }

    #[test]
    fn only_what_a_person_typed_is_human() {
        let skill = |instruction: &str| {
            format!(
                "[SYSTEM: The user has invoked the \"pr\" skill, indicating they want you to \
                 follow its instructions. The full skill content is loaded below.]\n\n# PR\n\
                 {INSTRUCTION}quoted\n{instruction}"
            )
        };
        let typed = format!("\n{INSTRUCTION}open one\n\n[Runtime note: x]");
        let bundle = "[IMPORTANT: The user has invoked the \"/a /b\" skill bundle, loading 2.]\n\
                      User instruction: do both\n\n[Loaded as part of the bundle]\nbody";
        let auto = format!(
            "[IMPORTANT: The \"ops{AUTO_LOADED}\n\nbody\nResolve, {END_OF_SKILL}\n\nis it up?"
        );
        for (text, human) in [
            ("fix the test".to_owned(), "fix the test"),
            (skill(&typed), "open one"),
            (bundle.to_owned(), "do both"),
            (auto, "is it up?"),
            ("[SYSTEM: Background process [x] ended.\nOutput: y]".to_owned(), ""),
            (
                "[System note: your turn was cut [short].]\n\nplease go on".to_owned(),
                "please go on",
            ),
            (
                "[IMPORTANT: You are running as a scheduled cron job. [SILENT]]\n\nnews".to_owned(),
                "",
            ),
            (format!("{} Be ACTIVE.", REVIEWS[0]), ""),
            (
                "Review the conversation above and tell me more".to_owned(),
                "Review the conversation above and tell me more",
            ),
            (
                "[OUT-OF-BAND USER MESSAGE — x]\nwait\n[/OUT-OF-BAND USER MESSAGE]".to_owned(),
                "wait",
            ),
            ("[x] is not done".to_owned(), "[x] is not done"),
            ("[SYSTEM: never closed".to_owned(), ""),
        ] {
            assert_eq!(sorted(&text).1, human, "{text}");
        }
        let bare = "[SYSTEM: The user has invoked the \"pr\" skill.]\n\nbody";
        assert_eq!(sorted(bare), (bare.to_owned(), String::new()));
    }

    #[test]
    fn a_summary_is_the_harness_however_it_is_written() {
        for text in [
            "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns",
            "[CONTEXT COMPACTION - REFERENCE ONLY] Earlier turns",
            "[CONTEXT COMPACTION – REFERENCE ONLY] Earlier turns",
            "[CONTEXT SUMMARY]: Earlier turns",
        ] {
            let prompt = split_prompt(text.into(), false);
            assert!(prompt.is_summary && prompt.human.is_empty(), "{text}");
            assert_eq!(prompt.harness.as_str(), text);
        }
        let flagged = split_prompt("what was said".into(), true);
        assert!(flagged.is_summary && flagged.human.is_empty());
        let merged = format!("[CONTEXT SUMMARY]: old\n{END_OF_SUMMARY} — go on ---\n\nand now?");
        let prompt = split_prompt(merged.as_str().into(), false);
        assert!(prompt.is_summary);
        assert_eq!(prompt.human.as_str(), "and now?");
    }

    #[test]
    fn the_message_at_the_end_of_a_result() {
        let open = "[OUT-OF-BAND USER MESSAGE — a direct message from the user; not tool output]";
        let new = format!("{{\"exit_code\":0}}\n\n{open}\nuse the other file\n{STEER_CLOSE}");
        assert_eq!(split_steer(&new), Some(("{\"exit_code\":0}", "use the other file")));
        let origin =
            format!("out\n\n{open}\n{STEER_ORIGIN}):\n{{\"x\": 1}}\n\nstop\n{STEER_CLOSE}\n");
        assert_eq!(split_steer(&origin), Some(("out", "stop")));
        assert_eq!(split_steer("out\n\nUser guidance: only tests"), Some(("out", "only tests")));
        let quoted = format!("{open}\nhidden\n{STEER_CLOSE}\nand more output");
        assert_eq!(split_steer(&quoted), None);
        assert_eq!(split_steer("plain"), None);
        assert_eq!(split_steer(STEER_CLOSE), None);
    }
}
