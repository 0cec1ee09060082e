//! What the words of an assertion and of its key tell about its direction.

/// Returns true if the key denotes something that must not hold.
pub fn is_negative(key: &str) -> bool {
    let parts: Vec<&str> = key.split(['_', '-', ' ']).collect();
    parts.iter().any(|part| {
        matches!(
            *part,
            "not"
                | "anti"
                | "never"
                | "fail"
                | "fails"
                | "failure"
                | "banned"
                | "forbidden"
                | "avoid"
                | "without"
                | "no"
                | "mustnt"
                | "dont"
                | "prohibited"
                | "disallowed"
        )
    })
}

/// Returns true for a sentence that begins with its own negation.
pub(super) fn negates_itself(text: &str) -> bool {
    let lower = text.to_lowercase().replace('\u{2019}', "'");
    let subjects =
        ["the agent ", "the skill ", "the answer ", "the response ", "the output ", "it "];
    let rest = subjects.iter().find_map(|subject| lower.strip_prefix(subject)).unwrap_or(&lower);
    // Not "no tests" or "did not answer", which tell what went wrong.
    let negations = [
        "does not ",
        "do not ",
        "must not ",
        "should not ",
        "may not ",
        "will not ",
        "doesn't ",
        "don't ",
        "mustn't ",
        "shouldn't ",
        "won't ",
        "never ",
        "avoids ",
        "refrains from ",
        "不要",
        "不得",
        "不应",
        "不能",
        "禁止",
        "避免",
    ];
    negations.iter().any(|negation| rest.starts_with(negation))
}

/// Returns true for one word of code or a pattern, of which it is open what is demanded.
pub(super) fn is_fragment(text: &str) -> bool {
    let mut letters = text.chars().skip(1);
    text.is_ascii()
        && !text.contains(char::is_whitespace)
        && (text.trim_end_matches(['.', '!', ':']).contains(['.', '_', '\\', '|', '*', '=', '('])
            || letters.any(|c| c.is_ascii_uppercase()))
}
