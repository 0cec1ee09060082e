//! Separates the thinking that some servers leave in the content of a reply. Pure.
//!
//! A model thinks between tags. A server that knows them moves the thoughts to a field of their
//! own; others leave them in the content, sometimes without the opening tag, because the chat
//! template ends in it. A reply that ends within its thoughts has no answer.

use std::sync::LazyLock;

use regex::Regex;

/// Opening and closing tags of known models, with the token-like forms of Kimi and Magistral.
static TAG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)<(?P<close>/)?(?:think|thinking|thought|thoughts|reasoning|seed:think|antml:thinking)>|(?P<open2>\[THINK\]|◁think▷)|(?P<close2>\[/THINK\]|◁/think▷)",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

/// The content of a reply, seen for thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenThinking<'t> {
    /// There is none.
    None,
    /// The answer follows the thinking.
    TakenOff {
        /// The answer.
        answer: &'t str,
    },
    /// The reply ended within the thinking: there is no answer.
    Unfinished,
}

/// A tag in a text.
struct Tag {
    start: usize,
    end: usize,
    closes: bool,
}

fn tags(text: &str) -> impl Iterator<Item = Tag> {
    TAG.captures_iter(text).filter_map(|found| {
        let whole = found.get(0)?;
        let closes = found.name("close").or(found.name("close2")).is_some();
        Some(Tag { start: whole.start(), end: whole.end(), closes })
    })
}

/// Looks for thinking at the beginning of a reply. Tags within JSON, code or quotes are part of the
/// answer.
pub fn see_thinking(text: &str) -> SeenThinking<'_> {
    let mut rest = text.trim_start();
    let mut was_taken = false;
    loop {
        // The tags of an answer in JSON are in its strings.
        if rest.starts_with(['{', '[']) && is_json(rest) {
            break;
        }
        let Some(first) = tags(rest).find(|tag| !is_mentioned(rest, tag)) else { break };
        // Chat templates of DeepSeek-R1 and QwQ end in `<think>`, so that the reply starts within
        // the thoughts and has only the closing tag.
        let end = if first.closes {
            // The opening tag is in the template.
            first.end
        } else if first.start == 0 {
            match closing(rest, first.end) {
                Some(end) => end,
                None => return SeenThinking::Unfinished,
            }
        } else {
            break;
        };
        rest = rest[end..].trim_start();
        was_taken = true;
    }
    if was_taken { SeenThinking::TakenOff { answer: rest } } else { SeenThinking::None }
}

/// Returns the end of the tag that closes the thinking opened before `from`, counting nested ones.
fn closing(text: &str, from: usize) -> Option<usize> {
    let mut depth = 1_usize;
    let mut last = None;
    for tag in tags(text).filter(|tag| tag.start >= from) {
        if !tag.closes {
            depth += 1;
            continue;
        }
        last.get_or_insert(tag.end);
        depth -= 1;
        if depth == 0 {
            return Some(tag.end);
        }
    }
    // An opening tag within thoughts may only be mentioned there.
    last
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text.trim()).is_ok()
}

/// Returns true if a tag is quoted, or stands in code: the answer speaks of it.
fn is_mentioned(text: &str, tag: &Tag) -> bool {
    const QUOTES: [char; 8] = ['`', '"', '\'', '“', '”', '‘', '’', '«'];
    let before = &text[..tag.start];
    let is_quoted = before.ends_with(QUOTES)
        && text[tag.end..].starts_with(['`', '"', '\'', '”', '’', '“', '»']);
    // An odd number of fences before the tag means that it stands inside of a code block.
    let fences = before.lines().filter(|line| line.trim_start().starts_with("```")).count();
    is_quoted || fences % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn thinking_is_taken_off() {
        for (text, answer) in [
            ("<think>Maybe 8?</think>\n{\"a\":1}", "{\"a\":1}"),
            ("<think>\n\n</think>\n\nAt 9.", "At 9."),
            ("\n<thinking>x</thinking>At 9.", "At 9."),
            ("<reasoning>x</reasoning> At 9.", "At 9."),
            ("<THINK>x</THINK>At 9.", "At 9."),
            ("[THINK]x[/THINK]At 9.", "At 9."),
            ("◁think▷x◁/think▷At 9.", "At 9."),
            // The opening tag is in the template.
            ("Maybe 8?</think>\nAt 9.", "At 9."),
            ("</think>At 9.", "At 9."),
            ("Say {\"a\"}?\n</think>\n\n{\"a\":1}", "{\"a\":1}"),
            ("<think>a</think><think>b</think>At 9.", "At 9."),
            ("<think>a <think>b</think> c</think>At 9.", "At 9."),
            ("<think>no </thinking> At 9.", "At 9."),
            ("<think>all thoughts</think>", ""),
            ("<think>```\ncode\n```</think>At 9.", "At 9."),
        ] {
            assert_eq!(see_thinking(text), SeenThinking::TakenOff { answer }, "{text:?}");
        }
    }

    #[test]
    fn unclosed_thinking_leaves_no_answer() {
        for text in ["<think>Maybe 8? Let me", "<thinking>", "  <reasoning>\nIt is {\"a\":1}"] {
            assert_eq!(see_thinking(text), SeenThinking::Unfinished, "{text:?}");
        }
    }

    #[test]
    fn an_answer_may_speak_of_tags() {
        for text in [
            "",
            "At 9.",
            r#"{"output": "use <think>a</think> here"}"#,
            r#"{"output": "it ends in </think>"}"#,
            "The tag `</think>` closes it.",
            "Write \"<think>\" first.",
            "Like so:\n```xml\n<think>a</think>\n```\nDone.",
            "I think so. <think>Do I?",
            "a < b and c > d",
        ] {
            assert_eq!(see_thinking(text), SeenThinking::None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_seen(text in "(<think>|</think>|<|>|`|\"|\n|\\PC){0,20}") {
            if let SeenThinking::TakenOff { answer } = see_thinking(&text) {
                prop_assert!(text.ends_with(answer));
            }
        }
    }
}
