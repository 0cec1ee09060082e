//! `selftest suite check --suggest`: checks proposed by rules for sentences that are left to the judge,
//! as a diff that a person accepts.

use std::fs;
use std::path::Path;

use selftest_checks::evals::{DemandDecider, EvalsFile};
use selftest_checks::suggest::suggestion;
use serde_json::json;
use similar::TextDiff;

/// The proposals for one file.
pub(super) struct ProposedChecks {
    /// The diff; empty if there is nothing to propose.
    pub diff: String,
    /// Number of demands that the diff would decide without a model.
    pub proposed: usize,
    /// The reason why there is no diff, though there are proposals.
    pub note: Option<String>,
}

/// Proposes a check for each sentence of a file that stands in it as a text of JSON. `file` is what was
/// read from it.
pub(super) fn propose(path: &Path, file: &EvalsFile) -> ProposedChecks {
    let text = fs::read_to_string(path).unwrap_or_default();
    let is_json = path.extension().is_some_and(|end| end == "json" || end == "jsonl");
    let (mut changed, mut proposed, mut elsewhere) = (text.clone(), 0, 0);
    for demand in file.cases.iter().flat_map(|case| &case.demands) {
        if demand.decider != DemandDecider::Judge {
            continue;
        }
        let Some(check) = suggestion(&demand.text) else { continue };
        let token = json!(demand.text).to_string();
        // A sentence that is wrapped in an object, or the reference itself, is no item of a list.
        match item_of_list(&changed, &token).filter(|_| is_json) {
            Some(at) => {
                changed.replace_range(at..at + token.len(), &json!(check).to_string());
                proposed += 1;
            }
            None => elsewhere += 1,
        }
    }
    let shown = path.display().to_string();
    let diff = if proposed == 0 {
        String::new()
    } else {
        let diff = TextDiff::from_lines(&text, &changed);
        diff.unified_diff().header(&shown, &format!("{shown} (suggested)")).to_string()
    };
    let note = (elsewhere > 0).then(|| {
        format!("{elsewhere} more would be proposed in a list of sentences of an evals.json: `selftest suite export --to evals.json {shown}` writes one")
    });
    ProposedChecks { diff, proposed, note }
}

/// Returns where a text of JSON stands as an item of a list: between `[`, `,` and `]`, not after a `:`.
fn item_of_list(text: &str, token: &str) -> Option<usize> {
    text.match_indices(token).map(|(at, _)| at).find(|&at| {
        let before = text[..at].trim_end();
        let after = text[at + token.len()..].trim_start();
        (before.ends_with('[') || before.ends_with(','))
            && (after.starts_with(',') || after.starts_with(']'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_items_of_lists_are_replaced() {
        assert_eq!(item_of_list(r#"{"a": "x", "b": ["y", "x"]}"#, r#""x""#), Some(22));
        assert_eq!(item_of_list(r#"{"a": "x"}"#, r#""x""#), None);
    }
}
