//! What stands between words.

/// How much what stands between two words parts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// At most white space or a mark inside of a clause.
    Word,
    /// A comma, a dash or a bracket.
    Clause,
    /// The end of a sentence or of a line.
    Sentence,
}

/// How much a text without words parts what stands before it from what stands after it.
pub fn gap(between: &str) -> Gap {
    between.chars().map(gap_of).max().unwrap_or(Gap::Word)
}

fn gap_of(c: char) -> Gap {
    match c {
        '.' | '!' | '?' | ';' | ':' | '\n' | '\r' | '…' | '。' | '！' | '？' | '；' | '：'
        | '\u{85}' | '\u{2028}' | '\u{2029}' => Gap::Sentence,
        ',' | '-' | '(' | ')' | '–' | '—' | '，' | '、' | '（' | '）' => Gap::Clause,
        _ => Gap::Word,
    }
}

/// Whether the end of a text stands in a block of code: between two fences of three or more
/// backticks.
pub fn is_fenced(before: &str) -> bool {
    let mut fenced = false;
    let mut rest = before;
    while let Some(at) = rest.find("```") {
        fenced = !fenced;
        rest = rest[at..].trim_start_matches('`');
    }
    fenced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps() {
        for (between, expected) in [
            ("", Gap::Word),
            (" \"", Gap::Word),
            (", ", Gap::Clause),
            (" — ", Gap::Clause),
            (", .", Gap::Sentence),
            ("…", Gap::Sentence),
            ("\n", Gap::Sentence),
        ] {
            assert_eq!(gap(between), expected, "{between:?}");
        }
    }

    #[test]
    fn fences() {
        for (before, expected) in
            [("a `b` ``c", false), ("```", true), ("````\na", true), ("```a``` b", false)]
        {
            assert_eq!(is_fenced(before), expected, "{before}");
        }
    }
}
