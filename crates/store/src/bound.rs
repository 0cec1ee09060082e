//! Limits of stored texts, whatever callers give.

use selftest_grading::grade::Details;
use selftest_text::clip;
use selftest_text::digest;

/// Names, ids, versions. Bytes.
pub(super) const NAME: usize = 512;
/// Names in a list.
pub(super) const NAMES: usize = 100;
/// Paths. They are keys, and an entry of an index of PostgreSQL has at most 2704 bytes.
pub(super) const PATH: usize = 2400;
/// Reasons, summaries.
pub(super) const TEXT: usize = 4096;
/// JSON of one row.
pub(super) const JSON: usize = 1 << 18;
/// JSON of one weekly report.
pub(super) const REPORT: usize = 1 << 24;

/// Shortened, and without NUL, which PostgreSQL cannot hold.
pub(super) fn text(text: &str, limit: usize) -> String {
    if text.len() <= limit && !text.contains('\0') {
        return text.to_owned();
    }
    clip(&text.replace('\0', ""), limit)
}

/// A path. What is left of a longer one is told apart by its digest.
pub(super) fn path(path: &str) -> String {
    if path.len() <= PATH {
        return text(path, PATH);
    }
    let end = path.floor_char_boundary(PATH);
    text(&format!("{}… [{}]", &path[..end], digest::of_bytes(path.as_bytes())), PATH + 100)
}

/// A JSON text, or nothing where it is too long: half of it would be no JSON.
pub(super) fn whole(json: Option<&str>) -> Option<&str> {
    json.filter(|json| json.len() <= JSON)
}

/// A value as JSON, or nothing where that is too long.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Option<String> {
    serde_json::to_string(value).ok().filter(|json| json.len() <= JSON)
}

/// The details as JSON: all of them, else the first of each list, shortened; of the tools those
/// with most calls.
pub(super) fn details(details: &Details) -> String {
    let written = |details: &Details| {
        // Maps have text keys and all else is plain data: writing cannot fail.
        serde_json::to_string(details).unwrap_or_default()
    };
    let whole = written(details);
    if whole.len() <= JSON {
        return whole;
    }
    let mut details = details.clone();
    details.agent = text(&details.agent, NAME);
    details.evidence.truncate(NAMES);
    for evidence in &mut details.evidence {
        evidence.words = text(&evidence.words, NAME);
    }
    details.errors.truncate(NAMES);
    for error in &mut details.errors {
        error.tool = text(&error.tool, NAME);
        error.example = text(&error.example, NAME);
    }
    let mut tools: Vec<_> = std::mem::take(&mut details.tools).into_iter().collect();
    tools.sort_by_key(|(_, tool)| std::cmp::Reverse(tool.calls));
    tools.truncate(NAMES);
    details.tools = tools.into_iter().map(|(name, tool)| (text(&name, NAME), tool)).collect();
    written(&details)
}
