//! Sentences about the data in a file: "caseplan.json.version === '27.0.0'", "id matches /^c-[0-9]+$/".
//!
//! A sentence that names no file is about the only data file that its case names, if the case asks for
//! it. If it names none or several, or only an input file, the judge decides the sentence.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::SentenceContext;
use super::skeleton::regex;
use crate::check::DataFormat;

/// A path of a data file. A key may follow after a dot.
static FILE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:[A-Za-z0-9_-][A-Za-z0-9_@.-]*/)*[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*?\.(?:json|ya?ml|toml|csv)\b",
    )
});

/// `FILE.key.other[0] === VALUE`, and the same without the file.
static COMPARISON: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?x)^(?:the\s)?[`"']?(?P<place>[A-Za-z0-9_/@.\-\[\]]+)[`"']?
        \s+(?:(?P<equal>===?|=|equals|is\sexactly|is\sset\sto|is)|(?P<match>matches(?:\sthe\s(?:regex|pattern))?|=~))\s+
        (?P<value>.+?)\.?$"#,
    )
});

/// A key that must be there, or must not.
static KEY: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?ix)^(?:the\s)?(?:(?:json|file|`?(?P<file>[^\s`]+\.(?:json|ya?ml|toml))`?)\s)?
        (?P<verb>no|has\sno|contains\sno|does\snot\s(?:have|contain)|has|contains|includes)\s
        (?:an?\s|the\s|any\s)?(?:top-level\s)?[`"'](?P<key>[A-Za-z0-9_.\-]+)[`"']\s
        (?:top-level\s|root\s|wrapper\s|outer\s)*(?:key|field|property)(?:\s(?:at\sthe\s(?:root|top\slevel)))?\.?$"#,
    )
});

/// A file that is well-formed.
static VALID: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?ix)^(?:the\s)?(?:file\s)?`?(?P<file>[^\s`]+\.(?:json|ya?ml|toml|csv))`?\s
        (?:(?:file\s)?(?:is|must\sbe|should\sbe)\s(?:a\s)?(?:syntactically\s)?(?:valid|well-formed)|parses\sas(?:\svalid)?|is\sparseable|can\sbe\sparsed\sas|contains\svalid)
        (?:\s(?P<format>json|yaml|toml|csv)(?:\s(?:file|document))?)?\.?$",
    )
});

/// Returns the paths of data files in a text.
pub(super) fn files(text: &str) -> impl Iterator<Item = &str> {
    FILE.find_iter(text).map(|found| found.as_str())
}

/// Returns the check of data that a sentence states.
pub(super) fn data_check(sentence: &str, context: &SentenceContext) -> Option<Value> {
    let sentence = sentence.trim();
    // Most sentences have none of these, which is cheap to see.
    if !sentence.contains(['.', '`', '"', '\'', '=', '/', '[']) {
        return None;
    }
    if let Some(found) = VALID.captures(sentence) {
        let file = path(&found["file"])?;
        // "config.yaml is valid JSON" is about something else than its ending says.
        if let Some(named) = found.name("format") {
            let format: &str = DataFormat::of_path(&file)?.into();
            if !named.as_str().eq_ignore_ascii_case(format) {
                return None;
            }
        }
        return Some(json!({"file_data": {"path": file}}));
    }
    if let Some(found) = KEY.captures(sentence) {
        let file = match found.name("file") {
            Some(file) => path(file.as_str())?,
            None => context.data_file.clone()?,
        };
        let pointer = pointer(&found["key"])?;
        let verb = found["verb"].to_lowercase();
        let is_wanted = matches!(verb.as_str(), "has" | "contains" | "includes");
        let mut data = json!({"path": file, "pointer": pointer});
        if !is_wanted {
            data["absent"] = json!(true);
        }
        return Some(json!({ "file_data": data }));
    }
    let found = COMPARISON.captures(sentence)?;
    let place = &found["place"];
    let (file, key) = match FILE.find(place).filter(|file| file.start() == 0) {
        Some(file) => (path(file.as_str())?, place[file.end()..].trim_start_matches('.')),
        // Code alone is about a file that it does not name. "port is 80" is about the answer.
        None if found.name("match").is_some()
            || found.name("equal").is_some_and(|equal| equal.as_str().starts_with('='))
            || place.contains(['.', '['])
            || sentence.contains('`') =>
        {
            (context.data_file.clone()?, place)
        }
        None => return None,
    };
    let pointer = pointer(key)?;
    let value = found["value"].trim();
    if found.name("match").is_some() {
        let pattern = value.trim_matches('`');
        let pattern = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'))?;
        let data = json!({"path": file, "pointer": pointer, "matches": pattern});
        return Some(json!({ "file_data": data }));
    }
    // "The version is current" is no comparison: what follows `is` must be a literal.
    Some(equal_data(&file, &pointer, &literal(value)?, value.starts_with('`')))
}

/// Returns the check of a value in a file. `8080` in backticks may be a number or a text.
pub(super) fn equal_data(file: &str, pointer: &str, value: &Value, is_code: bool) -> Value {
    let equal =
        |value: &Value| json!({"file_data": {"path": file, "pointer": pointer, "equals": value}});
    let other = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match other.filter(|other| is_code && !other.is_object() && !other.is_array()) {
        Some(other) => json!({"any": [equal(&other), equal(value)]}),
        None => equal(value),
    }
}

/// Returns the path of a data file inside of the folder of a case.
pub(super) fn path(text: &str) -> Option<String> {
    let is_data = DataFormat::of_path(text).is_some();
    (is_data && !text.split('/').any(|part| part == "..")).then(|| text.to_owned())
}

/// Returns the pointer of `a.b[0]`; `None` if there is no key.
pub(super) fn pointer(key: &str) -> Option<String> {
    let mut pointer = String::new();
    for part in key.replace('[', ".").replace(']', "").split('.') {
        if part.is_empty() {
            return None;
        }
        pointer = crate::yaml::join(&pointer, part);
    }
    (!pointer.is_empty()).then_some(pointer)
}

/// Returns a quoted text, a number, a boolean or null.
fn literal(text: &str) -> Option<Value> {
    for quote in ['\'', '"', '`'] {
        let inner = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return (!inner.contains(quote) && !inner.is_empty()).then(|| json!(inner));
        }
    }
    serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_object() && !value.is_array())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_with_literals_are_checks() {
        let context = SentenceContext::of("Write caseplan.json.", [], None);
        let none = SentenceContext::default();
        for (sentence, data) in [
            (
                "caseplan.json.version === '27.0.0'",
                json!({"pointer": "/version", "equals": "27.0.0"}),
            ),
            (
                "id matches /^case-[A-Za-z0-9]{10}$/",
                json!({"pointer": "/id", "matches": "^case-[A-Za-z0-9]{10}$"}),
            ),
            ("No 'root' wrapper key", json!({"pointer": "/root", "absent": true})),
            (
                "stages[0].name is \"Triage\"",
                json!({"pointer": "/stages/0/name", "equals": "Triage"}),
            ),
            ("`enabled` is true", json!({"pointer": "/enabled", "equals": true})),
            ("caseplan.json has a `version` field", json!({"pointer": "/version"})),
            ("caseplan.json is valid JSON", json!({})),
        ] {
            let mut wanted = data.clone();
            wanted["path"] = json!("caseplan.json");
            let found = data_check(sentence, &context).unwrap_or_else(|| panic!("{sentence}"));
            assert_eq!(found["file_data"], wanted, "{sentence}");
            assert!(crate::check::read(&found).is_ok(), "{found}");
        }
        for sentence in [
            "id matches the ticket",
            "The version is current",
            "caseplan.json is complete",
            "config.yaml is valid JSON",
            "No 'root' wrapper key unless asked for",
            "version is '1' or '2'",
        ] {
            assert_eq!(data_check(sentence, &context), None, "{sentence}");
        }
        for sentence in ["id matches /^a$/", "No 'root' wrapper key", "version === '1'"] {
            assert_eq!(data_check(sentence, &none), None, "{sentence}");
        }
    }
}
