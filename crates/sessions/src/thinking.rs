//! Extracts the model's reasoning from its text, and counts it once even if a record repeats it.

use super::text::Text;

/// Tags around reasoning at the start of a text.
const TAGS: [(&str, &str); 3] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<REASONING_SCRATCHPAD>", "</REASONING_SCRATCHPAD>"),
];

/// Splits a text into its leading reasoning and the rest. Reasoning without a closing tag extends
/// to the end.
pub(super) fn split(text: Text<'_>) -> (Text<'_>, Text<'_>) {
    let mut thoughts = Text::default();
    let mut rest = text.trim_start();
    while let Some((inside, close)) =
        TAGS.iter().find_map(|(open, close)| Some((rest.strip_prefix(open)?, close)))
    {
        let (thought, after) = inside.split_once(close).unwrap_or((inside, ""));
        thoughts.append(&thought.trim().into());
        rest = after.trim_start();
    }
    // Without a tag, the text stays borrowed.
    if rest.len() == text.trim_start().len() {
        return (thoughts, text);
    }
    let rest = Text::from(rest.to_owned());
    (thoughts.into_owned(), rest)
}

/// Adds reasoning unless it is already present, because some formats store it in two fields.
pub(super) fn add<'a>(all: &mut Text<'a>, thought: Text<'a>) {
    if thought.trim().is_empty() || all.contains(thought.trim()) {
        return;
    }
    // Keep the longer text if it contains the other.
    if all.is_empty() || thought.contains(all.trim()) {
        *all = thought;
    } else {
        all.append(&thought);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_taken_out_of_the_beginning_only() {
        for (text, thoughts, rest) in [
            ("plain", "", "plain"),
            ("<think>\na\n</think>\n\nb", "a", "b"),
            (" <think>a</think><thinking>b</thinking> c", "a\nb", "c"),
            ("<think>never ends", "never ends", ""),
            ("write `<think>x</think>`", "", "write `<think>x</think>`"),
            ("<REASONING_SCRATCHPAD>r</REASONING_SCRATCHPAD>", "r", ""),
            ("<think></think>", "", ""),
        ] {
            let (found, left) = split(text.into());
            assert_eq!((found.as_str(), left.as_str()), (thoughts, rest), "{text}");
        }
    }

    #[test]
    fn a_repeated_thought_counts_once() {
        let mut all = Text::default();
        for thought in ["look first", "look first\n", "", "look first, then act", "other"] {
            add(&mut all, thought.into());
        }
        assert_eq!(all.as_str(), "look first, then act\nother");
    }
}
