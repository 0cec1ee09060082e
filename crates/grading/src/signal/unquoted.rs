//! Strips quoted text from a message and splits the rest into sentences.

use std::borrow::Cow;

use selftest_text::words::is_fenced;

/// Removes fenced code, code in backticks and text in double quotes.
pub(super) fn without_quotes(text: &str) -> Cow<'_, str> {
    if !text.contains(['`', '"', '“', '„', '«']) {
        return Cow::Borrowed(text);
    }
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['`', '"', '“', '„', '«']) {
        bare.push_str(&rest[..at]);
        let from = &rest[at..];
        let (open, close) = match from.chars().next() {
            Some('`') if from.starts_with("```") => ("```", "```"),
            Some('`') => ("`", "`"),
            Some('“') => ("“", "”"),
            Some('„') => ("„", "“"),
            Some('«') => ("«", "»"),
            _ => ("\"", "\""),
        };
        let inside = &from[open.len()..];
        // A placeholder, so that the words on either side are not joined.
        bare.push_str(" x ");
        rest = match inside.find(close) {
            Some(end) => &inside[end + close.len()..],
            // An unclosed fence is code up to the end; any other unclosed mark is literal.
            None if is_fenced(open) => "",
            None => inside,
        };
    }
    bare.push_str(rest);
    Cow::Owned(bare)
}

/// Returns the sentences of a text, trimmed, each with its closing mark. Skips lines that look like
/// a log or code.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !looks_pasted(line))
        .flat_map(split)
        .map(|sentence| sentence.trim().trim_start_matches(['-', '*', '>', '(', ',']).trim_start())
        .filter(|sentence| !sentence.is_empty())
}

/// Splits a line into sentences. A dot or colon within a name does not end a sentence.
fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = |(at, c): &(usize, char)| match c {
            '!' | '?' | ';' | '…' | '。' | '！' | '？' => true,
            '.' | ':' => {
                !rest[at + c.len_utf8()..].starts_with(|next: char| next.is_alphanumeric())
            }
            _ => false,
        };
        let mut end =
            rest.char_indices().find(ends).map_or(rest.len(), |(at, c)| at + c.len_utf8());
        // Doubled marks belong together.
        end += rest[end..].find(|c| !matches!(c, '!' | '?' | '.')).unwrap_or(rest.len() - end);
        let (sentence, behind) = rest.split_at(end);
        rest = behind;
        Some(sentence)
    })
}

/// Returns true if a line starts like program output or code.
fn looks_pasted(line: &str) -> bool {
    const BEGINNINGS: [&str; 12] = [
        "error:",
        "error[",
        "warning:",
        "traceback",
        "at ",
        "  at ",
        "file \"",
        "fatal:",
        "e  ",
        "[error",
        "$ ",
        "npm err",
    ];
    let line = line.trim_start_matches('\t');
    BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)) || line.starts_with("    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_code_are_taken_out() {
        assert_eq!(without_quotes("say \"wtf\" and `x y`"), "say  x  and  x ");
        assert_eq!(without_quotes("a ```\nwtf\n``` b"), "a  x  b");
        assert_eq!(without_quotes("it is 5\" wide"), "it is 5 x  wide");
        assert_eq!(without_quotes("see ```\nwtf"), "see  x ");
        let found: Vec<&str> = sentences("no. it fails!\nerror: x\n- still").collect();
        assert_eq!(found, ["no.", "it fails!", "still"]);
        let found: Vec<&str> = sentences("see a.rs: it fails. ok").collect();
        assert_eq!(found, ["see a.rs:", "it fails.", "ok"]);
    }
}
