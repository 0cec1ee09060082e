//! Suite files: parsing, with the same checks and messages as the configuration, and formatting.
//! Writes no files.

#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;

use super::checks;
use super::diagnostics::{self, ConfigErrors, ConfigFault, Diagnostic, DiagnosticTarget};
use super::document::schema_of;
use super::shape::{self, DocumentValidator};
use super::yaml::{self, YamlFileKind, YamlSchema};
use selftest_checks::evals::is_foreign;
use selftest_checks::suite::{Suite, id_of_prompt};

pub use text::suite_text;

/// The limit does not allow ten thousand cases of maximum length, but ten thousand typical ones.
const KIND: YamlFileKind = YamlFileKind {
    max_bytes: 16 << 20,
    hint: "`selftest suite freeze latest` writes the cases of the newest run",
    schema: YamlSchema::V1_2,
};

static STRUCTURE: LazyLock<DocumentValidator> =
    LazyLock::new(|| DocumentValidator::new(schema(), "the suite"));

/// Returns the JSON Schema of a suite, draft 2020-12, without references.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| schema_of::<Suite>(&["version", "cases"]));
    &SCHEMA
}

/// Returns true if a file is a selftest suite, even an invalid one, and not a file of cases in
/// another program's format. A folder never is a suite.
pub fn is_selftest_suite(path: &Path) -> bool {
    if path.is_dir() {
        return false;
    }
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if extension == "jsonl" {
        return false;
    }
    let Ok(text) = super::read(path, KIND) else { return extension != "json" };
    let Ok(document) = yaml::parse(&text, KIND) else { return extension != "json" };
    let has = |key: &str| document.value.get(key).is_some();
    if extension == "json" {
        // An evals.json has no `version` with `cases`.
        return has("version") && has("cases");
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    !is_foreign(name, &text)
}

/// Reads a suite file; reports all errors, not only the first.
pub fn load(path: &Path) -> Result<Suite, ConfigErrors> {
    let text = super::read(path, KIND).map_err(|why| {
        let (message, hint) = match why {
            None => ("there is no such file".to_owned(), Some(KIND.hint)),
            Some(message) => (message, None),
        };
        ConfigErrors::of_file(path.to_owned(), message, hint)
    })?;
    parse(path, text)
}

/// Returns the lines of the cases by scenario id, counted from 1; empty if the file is not a suite.
pub fn case_lines(path: &Path) -> BTreeMap<String, u32> {
    let read = super::read(path, KIND).ok();
    let document = read.as_ref().and_then(|text| Some((text, yaml::parse(text, KIND).ok()?)));
    let Some((text, document)) = document else { return BTreeMap::new() };
    let cases = document.value["cases"].as_array().into_iter().flatten().enumerate();
    let line = |(at, case): (usize, &Value)| {
        let (pointer, id) = case_id(at, case)?;
        let place = document.places.get(&pointer)?;
        let line = text.get(..place.value.start)?.matches('\n').count() + 1;
        Some((id, u32::try_from(line).ok()?))
    };
    cases.filter_map(line).collect()
}

/// Returns the id of a case and where it is from: the case's own, the scenario's, or the prompt.
fn case_id(at: usize, case: &Value) -> Option<(String, String)> {
    let of = |pointer: &str| {
        Some((format!("/cases/{at}{pointer}"), case.pointer(pointer)?.as_str()?.to_owned()))
    };
    if case.get("scenario").is_some() {
        return of("/scenario/id");
    }
    of("/id").or_else(|| of("/prompt").map(|(pointer, prompt)| (pointer, id_of_prompt(&prompt))))
}

/// Returns an error for a case with an id besides that of its scenario.
fn second_id(at: usize, case: &Value) -> Option<ConfigFault> {
    let has_both = case.get("id").is_some() && case.get("scenario").is_some();
    has_both.then(|| ConfigFault {
        pointer: format!("/cases/{at}/id"),
        is_at_key: true,
        message: format!("`cases[{at}]` has `id` beside `scenario`"),
        label: "a second id".to_owned(),
        hint: Some("keep `scenario.id`, or remove `scenario`".to_owned()),
        first: None,
    })
}

/// Parses the text of a suite; `path` is used in errors.
pub fn parse(path: &Path, text: String) -> Result<Suite, ConfigErrors> {
    let refuse = |text, diagnostics| ConfigErrors::new(Some(path.to_owned()), text, diagnostics);
    let document = match yaml::parse(&text, KIND) {
        Ok(document) => document,
        Err(error) => return Err(refuse(text, vec![diagnostics::syntax_diagnostic(error)])),
    };
    let mut faults = STRUCTURE.check(&document.value);
    let known = shape::without_unknown_keys(&document.value, &faults);
    let cases = || known["cases"].as_array().into_iter().flatten().enumerate();
    let scenarios = cases().map(|(at, case)| (format!("/cases/{at}/scenario"), &case["scenario"]));
    faults.extend(checks::scenario_faults(scenarios));
    faults.extend(checks::duplicate_ids(cases().filter_map(|(at, case)| case_id(at, case))));
    for (at, case) in known["cases"].as_array().into_iter().flatten().enumerate() {
        faults.extend(checks::file_paths(&format!("/cases/{at}/files"), &case["files"]));
        faults.extend(checks::case_checks(&format!("/cases/{at}/checks"), &case["checks"]));
        faults.extend(checks::expectations(&format!("/cases/{at}/expect"), &case["expect"]));
        faults.extend(second_id(at, case));
        faults.extend(checks::missing_requirements(&format!("/cases/{at}"), case));
    }
    let mut diagnostics = diagnostics::duplicate_keys(&document);
    diagnostics.extend(faults.into_iter().map(|fault| diagnostics::locate(Some(&document), fault)));
    if !diagnostics.is_empty() {
        return Err(refuse(text, diagnostics));
    }
    serde_json::from_value(document.value).map_err(|error| {
        // An error that has passed the schema has no location.
        refuse(text, vec![Diagnostic::at(DiagnosticTarget::File(None), error.to_string())])
    })
}
