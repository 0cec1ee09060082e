//! Line diffs of two texts, or of a patch passed to a tool. Patches are only parsed, never applied.

use similar::{ChangeTag, TextDiff};

/// Maximum number of lines in either text for a comparison. Longer texts are shown as fully removed
/// and fully added.
const MAX_LINES: usize = 400;

/// Kind of a line in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffLineKind {
    /// The line is in both texts.
    Unchanged,
    /// The line was added.
    Added,
    /// The line was removed.
    Removed,
    /// A header that gives the position of the following lines.
    Header,
}

impl DiffLineKind {
    /// Returns the CSS class of the line.
    pub fn class(self) -> &'static str {
        match self {
            DiffLineKind::Unchanged => "kept",
            DiffLineKind::Added => "added",
            DiffLineKind::Removed => "removed",
            DiffLineKind::Header => "place",
        }
    }

    /// Returns the prefix of the line.
    pub fn sign(self) -> &'static str {
        match self {
            DiffLineKind::Unchanged => "  ",
            DiffLineKind::Added => "+ ",
            DiffLineKind::Removed => "- ",
            DiffLineKind::Header => "",
        }
    }
}

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// Kind of the line.
    pub change: DiffLineKind,
    /// Text without its prefix.
    pub text: String,
}

fn line(change: DiffLineKind, text: &str) -> DiffLine {
    DiffLine { change, text: text.trim_end_matches(['\n', '\r']).to_owned() }
}

/// Returns the line diff between two texts.
pub fn diff_texts(old: &str, new: &str) -> Vec<DiffLine> {
    if old.lines().count().max(new.lines().count()) > MAX_LINES {
        let removed = old.lines().map(|text| line(DiffLineKind::Removed, text));
        return removed.chain(new.lines().map(|text| line(DiffLineKind::Added, text))).collect();
    }
    let diff = TextDiff::from_lines(old, new);
    let changes = diff.iter_all_changes().map(|change| {
        let kind = match change.tag() {
            ChangeTag::Equal => DiffLineKind::Unchanged,
            ChangeTag::Insert => DiffLineKind::Added,
            ChangeTag::Delete => DiffLineKind::Removed,
        };
        line(kind, change.value())
    });
    changes.collect()
}

/// Parses a patch, either a unified diff or input for `apply_patch`. Returns `None` if the text is
/// not a patch.
pub fn parse_patch(text: &str) -> Option<Vec<DiffLine>> {
    let begins_line = |start: &str| text.starts_with(start) || text.contains(&format!("\n{start}"));
    let is_unified = begins_line("--- ") && begins_line("+++ ") && begins_line("@@ ");
    if !is_unified && !begins_line("*** Begin Patch") {
        return None;
    }
    let lines = text.lines().map(|text| match text.as_bytes().first() {
        _ if ["+++ ", "--- ", "@@", "*** ", "diff ", "index "]
            .iter()
            .any(|start| text.starts_with(start)) =>
        {
            line(DiffLineKind::Header, text)
        }
        Some(b'+') => line(DiffLineKind::Added, &text[1..]),
        Some(b'-') => line(DiffLineKind::Removed, &text[1..]),
        Some(b' ') => line(DiffLineKind::Unchanged, &text[1..]),
        _ => line(DiffLineKind::Unchanged, text),
    });
    Some(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[DiffLine]) -> Vec<String> {
        lines.iter().map(|line| format!("{}{}", line.change.sign(), line.text)).collect()
    }

    #[test]
    fn two_texts_are_compared_line_by_line() {
        let lines = diff_texts("a\nb\nc\n", "a\nB\nc\nd");
        assert_eq!(shown(&lines), ["  a", "- b", "+ B", "  c", "+ d"]);
        let long = "x\n".repeat(MAX_LINES + 1);
        let lines = diff_texts(&long, "y");
        assert_eq!(lines.len(), MAX_LINES + 2);
        assert_eq!(lines.last().unwrap().change, DiffLineKind::Added);
    }

    #[test]
    fn patches_are_known_and_other_text_is_none() {
        let unified = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same";
        let lines = parse_patch(unified).unwrap();
        assert_eq!(shown(&lines[3..]), ["- old", "+ new", "  same"]);
        assert!(lines[..3].iter().all(|line| line.change == DiffLineKind::Header));
        let codex = "*** Begin Patch\n*** Update File: x\n@@\n-old\n+new\n*** End Patch";
        assert_eq!(shown(&parse_patch(codex).unwrap())[3..5], ["- old", "+ new"]);
        for text in ["", "- a list\n- of points", "--- a rule\n+++ alone"] {
            assert_eq!(parse_patch(text), None, "{text}");
        }
    }
}
