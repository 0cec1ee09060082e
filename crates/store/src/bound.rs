//! Limits the size of stored texts, whatever callers pass.

use selftest_grading::grade::GradeDetails;
use selftest_text::clip;
use selftest_text::digest;

/// Maximum bytes of names, ids and versions.
pub(super) const NAME: usize = 512;
/// Maximum number of names in a list.
pub(super) const NAMES: usize = 100;
/// Maximum bytes of paths. Paths are keys, and an index entry in PostgreSQL has at most 2704 bytes.
pub(super) const PATH: usize = 2400;
/// Maximum bytes of a stored path: [`path`] may add a digest.
pub(super) const MAX_PATH: usize = 2 * PATH;
/// Maximum bytes of reasons and summaries.
pub(super) const TEXT: usize = 4096;
/// Maximum bytes of JSON in a row.
pub(super) const JSON: usize = 1 << 18;
/// Maximum bytes of JSON of a weekly report.
pub(super) const REPORT: usize = 1 << 24;

/// Truncates a text and removes NUL, which PostgreSQL cannot store.
pub(super) fn text(text: &str, limit: usize) -> String {
    if text.len() <= limit && !text.contains('\0') {
        return text.to_owned();
    }
    clip(&text.replace('\0', ""), limit)
}

/// Truncates a path. A digest keeps truncated paths distinct.
pub(super) fn path(path: &str) -> String {
    if path.len() <= PATH {
        return text(path, PATH);
    }
    let end = path.floor_char_boundary(PATH);
    text(&format!("{}… [{}]", &path[..end], digest::sha256_hex(path.as_bytes())), PATH + 100)
}

/// Returns a JSON text, or `None` if it is too long, because truncated JSON is invalid.
pub(super) fn whole(json: Option<&str>) -> Option<&str> {
    json.filter(|json| json.len() <= JSON)
}

/// Serializes a value to JSON; returns `None` if it is too long.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Option<String> {
    serde_json::to_string(value).ok().filter(|json| json.len() <= JSON)
}

/// Serializes details to JSON. If they are too long, lists are cut to their first elements with
/// shortened texts, and tools to those with the most calls.
pub(super) fn details(details: &GradeDetails) -> String {
    let written = |details: &GradeDetails| {
        // Maps have text keys and everything else is plain data, so serializing cannot fail.
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
