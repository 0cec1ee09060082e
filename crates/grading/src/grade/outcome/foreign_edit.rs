//! Recognises in results of tools that a person changed what the agent had written. Agents that say
//! it in records of their own have a mark for it.

/// What a result says about other hands on the agent's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForeignEdit {
    /// The person changed the agent's proposal before it was written.
    OfProposal,
    /// The file was changed since the agent last touched it, by a person or a program such as a
    /// formatter.
    SinceTouched,
}

/// Bytes of a result that are examined; agents say it at the beginning, after the name of the file.
const MAX_EXAMINED: usize = 1000;

/// Sentences of agents about a changed proposal: Cline, Roo and Kilo; Gemini CLI and Qwen Code;
/// Claude Code.
const OF_PROPOSAL: [&str; 4] = [
    "the user made the following updates to your content",
    "user modified the `new_string` content to be",
    "user modified the `content` to be",
    "the user modified your proposed changes",
];

/// Sentences about a file: Claude Code, `OpenCode` and others.
const SINCE_TOUCHED: [&str; 3] = [
    "has been modified since read",
    "has been modified since it was last read",
    "has been unexpectedly modified",
];

/// Returns what a result of an editing tool says, if anything.
pub(super) fn foreign_edit(text: &str, error: &str) -> Option<ForeignEdit> {
    let start = |text: &str| text[..text.floor_char_boundary(MAX_EXAMINED)].to_lowercase();
    let says = |sentences: &[&str]| {
        [text, error].iter().any(|text| {
            let text = start(text);
            sentences.iter().any(|sentence| text.contains(sentence))
        })
    };
    if says(&OF_PROPOSAL) {
        Some(ForeignEdit::OfProposal)
    } else {
        says(&SINCE_TOUCHED).then_some(ForeignEdit::SinceTouched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_its_words() {
        for (text, expected) in [
            (
                "The user made the following updates to your content:\n\n-a\n+b\n\nThe updated content …",
                Some(ForeignEdit::OfProposal),
            ),
            (
                "Successfully modified file: /w/a.ts (1 replacements). User modified the `new_string` content to be: x",
                Some(ForeignEdit::OfProposal),
            ),
            (
                "The file /w/a.py has been updated.  The user modified your proposed changes before accepting them.",
                Some(ForeignEdit::OfProposal),
            ),
            (
                "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it.",
                Some(ForeignEdit::SinceTouched),
            ),
            (
                "File /w/a.ts has been modified since it was last read.\nLast modification: …",
                Some(ForeignEdit::SinceTouched),
            ),
            ("The file /w/a.py has been updated.", None),
            ("", None),
        ] {
            assert_eq!(foreign_edit(text, ""), expected, "{text}");
            assert_eq!(foreign_edit("", text), expected, "{text}");
        }
    }
}
