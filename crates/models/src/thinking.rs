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
        r"(?i)<(?P<close>/)?(?:think|thinking|seed:think|antml:thinking|(?P<other>thoughts?|reasoning))>|(?P<open2>\[THINK\]|◁think▷)|(?P<close2>\[/THINK\]|◁/think▷)",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

/// Most blocks of thinking before an answer. Each is a pass over the text, which may be hostile.
const MAX_BLOCKS: usize = 16;

/// Who wrote a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplySource {
    /// A model: all tags of models are read.
    Model,
    /// An agent, whose prompt may ask for tags such as `<reasoning>`, or for a word about them: only
    /// what models write of themselves is read.
    Agent,
}

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
    /// True if it is quoted, or stands in code: the answer speaks of it.
    is_mentioned: bool,
}

/// Returns all tags of a text, in one pass.
fn tags(text: &str, source: ReplySource) -> Vec<Tag> {
    let mut fences = FenceCount::default();
    let found = TAG.captures_iter(text).filter_map(|found| {
        let whole = found.get(0)?;
        let closes = found.name("close").or(found.name("close2")).is_some();
        let is_of_models = source == ReplySource::Model || found.name("other").is_none();
        let is_in_code = fences.is_open_at(text, whole.start());
        let is_mentioned = is_in_code || is_quoted(text, whole.start(), whole.end());
        is_of_models.then_some(Tag { start: whole.start(), end: whole.end(), closes, is_mentioned })
    });
    found.collect()
}

/// Looks for thinking at the beginning of a reply. Tags within JSON, code or quotes are part of the
/// answer.
pub fn see_thinking(text: &str, source: ReplySource) -> SeenThinking<'_> {
    let mut rest = text.trim_start();
    let mut was_taken = false;
    for _ in 0..MAX_BLOCKS {
        // The tags of an answer in JSON are in its strings.
        if rest.starts_with(['{', '[']) && is_json(rest) {
            break;
        }
        let tags = tags(rest, source);
        let Some(first) = tags.iter().find(|tag| !tag.is_mentioned) else { break };
        // Chat templates of DeepSeek-R1 and QwQ end in `<think>`, so that the reply starts within
        // the thoughts and has only the closing tag. These models end its line.
        let end = if first.closes {
            let ends_line = rest[first.end..].starts_with(['\n', '\r']) || first.start == 0;
            if source == ReplySource::Agent && !ends_line {
                break;
            }
            first.end
        } else if first.start == 0 {
            match closing(&tags, first.end) {
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
fn closing(tags: &[Tag], from: usize) -> Option<usize> {
    let mut depth = 1_usize;
    let mut last = None;
    for tag in tags.iter().filter(|tag| tag.start >= from) {
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

fn is_quoted(text: &str, start: usize, end: usize) -> bool {
    text[..start].ends_with(['`', '"', '\'', '“', '”', '‘', '’', '«'])
        && text[end..].starts_with(['`', '"', '\'', '”', '’', '“', '»'])
}

/// Counts the fences of code blocks along a text.
#[derive(Default)]
struct FenceCount {
    /// Lines that start with a fence, that of `counted` included.
    fences: usize,
    /// End of the line that was counted last.
    counted: Option<usize>,
}

impl FenceCount {
    /// Returns true if a place is within a code block: after an odd number of fences. Places have to
    /// come in their order, so that a text is read once.
    fn is_open_at(&mut self, text: &str, place: usize) -> bool {
        while self.counted.is_none_or(|end| end < place) {
            let start = self.counted.map_or(0, |end| end + 1);
            let line = text[start..].split('\n').next().unwrap_or_default();
            self.fences += usize::from(line.trim_start().starts_with("```"));
            self.counted = Some(start + line.len());
        }
        self.fences % 2 == 1
    }
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
            assert_eq!(
                see_thinking(text, ReplySource::Model),
                SeenThinking::TakenOff { answer },
                "{text:?}"
            );
        }
    }

    #[test]
    fn unclosed_thinking_leaves_no_answer() {
        for text in ["<think>Maybe 8? Let me", "<thinking>", "  <reasoning>\nIt is {\"a\":1}"] {
            assert_eq!(
                see_thinking(text, ReplySource::Model),
                SeenThinking::Unfinished,
                "{text:?}"
            );
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
            assert_eq!(see_thinking(text, ReplySource::Model), SeenThinking::None, "{text:?}");
        }
    }

    #[test]
    fn of_an_agent_only_what_models_write_of_themselves_is_taken_off() {
        let see = |text| see_thinking(text, ReplySource::Agent);
        for (text, answer) in [
            ("<think>Maybe 8?</think>\nAt 9.", "At 9."),
            ("Maybe 8?\n</think>\n\nAt 9.", "At 9."),
            ("</think>At 9.", "At 9."),
            ("[THINK]x[/THINK]At 9.", "At 9."),
        ] {
            assert_eq!(see(text), SeenThinking::TakenOff { answer }, "{text:?}");
        }
        assert_eq!(see("<think>Maybe 8? Let me"), SeenThinking::Unfinished);
        for text in [
            "<reasoning>6 times 7</reasoning><answer>42</answer>",
            "<thoughts>6 times 7</thoughts>\n42",
            "<reasoning>6 times 7",
            "It writes </think> before the answer.",
        ] {
            assert_eq!(see(text), SeenThinking::None, "{text:?}");
        }
    }

    #[test]
    fn a_fence_counts_by_its_line() {
        for text in ["```\n```<think>a", " \t```<think>a</think>", "a\n```\n<think>a</think>\n```"]
        {
            assert_eq!(see_thinking(text, ReplySource::Model), SeenThinking::None, "{text:?}");
        }
        let answer = "At 9.";
        for text in ["```\na\n```\n</think>At 9.", "a ``` b</think>At 9."] {
            let seen = see_thinking(text, ReplySource::Model);
            assert_eq!(seen, SeenThinking::TakenOff { answer }, "{text:?}");
        }
    }

    /// With a megabyte, each of these takes minutes where the text before a tag is read for every tag.
    #[test]
    fn hostile_texts_are_read_in_few_passes() {
        let many = |part: &str| part.repeat((1 << 15) / part.len());
        for text in [
            many("<think><think></think>"),
            many("<think></think>"),
            many("`<think>`\n"),
            many("`<think>` "),
            "```\n".to_owned() + &many("<think>"),
        ] {
            for source in [ReplySource::Model, ReplySource::Agent] {
                if let SeenThinking::TakenOff { answer } = see_thinking(&text, source) {
                    assert!(text.ends_with(answer));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_seen(text in "(<think>|</think>|<|>|`|\"|\n|\\PC){0,20}") {
            if let SeenThinking::TakenOff { answer } = see_thinking(&text, ReplySource::Model) {
                prop_assert!(text.ends_with(answer));
            }
        }
    }
}
