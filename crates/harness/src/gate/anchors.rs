//! The file of anchors beside a baseline: recorded answers that later runs judge again, to tell a
//! change of the judge from a change of the agent. Pure: text in, text out.
//!
//! It contains prompts, answers and expectations, so that systems under test may not read it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::outcome::CaseResult;
use selftest_text::digest::sha256_hex;

/// Version of the format. Incremented when a key changes its meaning or is removed.
const ANCHORS_VERSION: u32 = 1;

/// Maximum number of anchors: enough to see a judge that moved, and cheap to judge.
pub const MAX_ANCHORS: usize = 10;

/// Recorded answers of the run that a baseline was accepted from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnchorSet {
    schema_version: u32,
    /// Id of the run. It has to be that of the baseline.
    pub run_id: String,
    /// The cases with their answers and scores.
    pub cases: Vec<CaseResult>,
}

/// The text is not a usable file of anchors.
#[derive(Debug, thiserror::Error)]
pub enum AnchorError {
    /// The schema version is not supported by this program.
    #[error("it has the schema version {0}, and this selftest knows {ANCHORS_VERSION} only")]
    Version(u32),
    /// The text cannot be parsed.
    #[error("it holds no anchors: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl AnchorSet {
    /// Chooses up to [`MAX_ANCHORS`] judged cases of a run. The choice depends on the ids of the
    /// run and of the cases alone, and not on the results.
    pub fn choose(run_id: &str, cases: impl IntoIterator<Item = CaseResult>) -> Self {
        let judged = cases.into_iter().filter(CaseResult::is_by_judge);
        let mut found: Vec<CaseResult> =
            // Retries are not judged again.
            judged.map(|case| CaseResult { reruns: Vec::new(), ..case }).collect();
        found
            .sort_by_cached_key(|case| sha256_hex(format!("{run_id}\0{}", case.name()).as_bytes()));
        // Repeats of one case depend on each other.
        let mut seen = BTreeSet::new();
        found.retain(|case| seen.insert(case.scenario.id.clone()));
        found.truncate(MAX_ANCHORS);
        Self { schema_version: ANCHORS_VERSION, run_id: run_id.to_owned(), cases: found }
    }

    /// Parses a file of anchors.
    pub fn read(text: &str) -> Result<Self, AnchorError> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: u32,
        }
        let Version { schema_version } = serde_json::from_str(text)?;
        if schema_version != ANCHORS_VERSION {
            return Err(AnchorError::Version(schema_version));
        }
        let mut set: Self = serde_json::from_str(text)?;
        set.cases.truncate(MAX_ANCHORS);
        Ok(set)
    }

    /// Returns the text of the file, with one line per case.
    pub fn text(&self) -> String {
        let cases: Vec<String> =
            self.cases.iter().map(|case| format!("    {}", serde_json::json!(case))).collect();
        let (version, run) = (self.schema_version, serde_json::json!(self.run_id));
        format!(
            "{{\n  \"schema_version\": {version},\n  \"run_id\": {run},\n  \"cases\": [\n{}\n  ]\n}}\n",
            cases.join(",\n")
        )
    }
}

/// Returns the file of the anchors of a baseline: `selftest-anchors.json` for
/// `selftest-baseline.json`, `X.anchors.json` for `X.json`.
pub fn anchors_file(baseline: &Path) -> PathBuf {
    let name = baseline.file_stem().unwrap_or_default().to_string_lossy();
    let name = match name.strip_suffix("-baseline") {
        Some(name) => format!("{name}-anchors.json"),
        None => format!("{name}.anchors.json"),
    };
    baseline.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beside_the_baseline() {
        let of = |path: &str| anchors_file(Path::new(path)).display().to_string();
        assert_eq!(of("config/selftest-baseline.json"), "config/selftest-anchors.json");
        assert_eq!(of("a/main.json"), "a/main.anchors.json");
    }

    #[test]
    fn an_odd_file_is_refused() {
        let read = |text: &str| AnchorSet::read(text).unwrap_err().to_string();
        assert!(read(r#"{"schema_version": 2, "new": 1}"#).contains("version 2"));
        assert!(read("[]").contains("no anchors"));
        assert!(read(r#"{"schema_version": 1, "run_id": "a"}"#).contains("cases"));
        let none = AnchorSet::choose("a", []);
        assert_eq!(AnchorSet::read(&none.text()).unwrap(), none);
    }
}
