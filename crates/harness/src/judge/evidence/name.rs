//! Names in a text: code, options, paths, and proper names. Pure.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

/// Matches code in backticks or quotes, options, identifiers, paths and file names.
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"`([^`\n]{1,80})`|"([\w.\-/]{2,60})"|(?:^|[\s(])(--?[a-zA-Z][\w-]*)|\b([A-Za-z]\w*(?:_\w+|::\w+|/[\w.]+)+)|\b([a-z]+[A-Z]\w+)|\b([A-Z][a-z]+(?:[A-Z][a-z]*)+)|\b([\w-]+\.(?:json|ya?ml|toml|py|rs|js|ts|md|txt|csv|sql|sh|log|xml|html|ini|cfg|conf|lock))\b|\b([A-Z][A-Z0-9_]{2,})\b"#,
    )
});

/// Matches a capitalised word inside of a sentence.
static PROPER: LazyLock<Regex> =
    LazyLock::new(|| regex(r"[\p{L}\d,;)]\s+(\p{Lu}[\p{Ll}]{2,}(?:\s\p{Lu}\p{Ll}{2,})*)"));

/// Returns the names of code in a text, in lower case, without the marks around them.
pub(super) fn code_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for found in CODE.captures_iter(text) {
        let Some(name) = found.iter().skip(1).flatten().next() else { continue };
        // A call or a command in backticks is several names.
        for part in
            name.as_str().split(|c: char| c.is_whitespace() || "(),:={}[]<>;\"'".contains(c))
        {
            let part = part.trim_matches(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
            let has_letter = part.chars().any(char::is_alphabetic);
            if part.chars().count() > 1 && has_letter {
                names.insert(part.to_lowercase());
            }
        }
    }
    names
}

/// Returns the proper names of a text in a language that does not capitalise nouns.
pub(super) fn proper_names(text: &str) -> BTreeSet<String> {
    let found = PROPER.captures_iter(text).filter_map(|found| found.get(1));
    found.map(|name| name.as_str().to_lowercase()).collect()
}

/// Returns true if a text in lower case holds a name as a whole.
pub(super) fn holds(folded: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    folded.match_indices(name).any(|(at, _)| {
        let before = folded[..at].chars().next_back();
        let after = folded[at + name.len()..].chars().next();
        !is_part(before) && !is_part(after)
    })
}
