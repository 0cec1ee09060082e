//! Suite files: parsing, with the same checks and messages as the configuration, and formatting as
//! readable YAML. Writes no files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;

use super::diagnostics::{ConfigErrors, ConfigFault, Diagnostic, DiagnosticTarget};
use super::document::schema_of;
use super::shape::DocumentValidator;
use super::show::quoted;
use super::{YamlFileKind, YamlSchema, checks, diagnostics, shape};
use selftest_checks::check::Check;
use selftest_checks::evals::is_foreign;
use selftest_checks::scenario::{JudgeRole, ReplyStep, Scenario};
use selftest_checks::suite::{Suite, SuiteCase, id_of_prompt};
use selftest_text::one_line;

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
    // Lines of JSON are always a foreign format; ours is one document.
    if extension == "jsonl" {
        return false;
    }
    // An unreadable file is reported by the reader of its most likely kind.
    let Ok(text) = super::read(path, KIND) else { return extension != "json" };
    let Ok(document) = super::parse(&text, KIND) else { return extension != "json" };
    let has = |key: &str| document.value.get(key).is_some();
    if extension == "json" {
        // Suites of other programs that have both also say whose they are.
        return has("version") && has("cases") && !has("skill") && !has("skill_name");
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
    let document = read.as_ref().and_then(|text| Some((text, super::parse(text, KIND).ok()?)));
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
    let refuse = |text, diagnostics| {
        let errors = ConfigErrors::new(Some(path.to_owned()), text, diagnostics);
        super::without_foreign_text(path, errors)
    };
    let document = match super::parse(&text, KIND) {
        Ok(document) => document,
        Err(error) => return Err(refuse(text, vec![diagnostics::syntax_diagnostic(error)])),
    };
    let mut faults = STRUCTURE.check(&document.value);
    // A misspelt key has its own error. Without it the rest of the case still deserialises, so that
    // its other errors are found in the same run.
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

/// Returns the text of a suite file, which parses to the same suite.
pub fn suite_text(suite: &Suite) -> String {
    let mut text = String::from("# Frozen cases");
    if let Some(run) = &suite.run_id {
        let _ = write!(text, " of the run {}", one_line(run, 100));
    }
    text += ": `selftest --suite <this file>` runs exactly these.\n\
        #\n\
        # An answer key: it holds what the judge is told to look for. What is tested cannot read it\n\
        # in config/suites, nor where --suite names it; do not keep it elsewhere in the project.\n\
        # Reports name the digest of the cases: change, add or remove some, and it is another suite.\n\n";
    let _ = writeln!(text, "version: {}", suite.version);
    for (key, value) in [("run_id", &suite.run_id), ("rubric_digest", &suite.rubric_digest)] {
        if let Some(value) = value {
            let _ = writeln!(text, "{key}: {}", quoted(value));
        }
    }
    if !suite.prompt_digests.is_empty() {
        text += "prompt_digests:\n";
    }
    for (template, digest) in &suite.prompt_digests {
        let _ = writeln!(text, "  {}: {}", quoted(template), quoted(digest));
    }
    text += "\ncases:\n";
    for case in &suite.cases {
        write_case(&mut text, case);
    }
    text
}

fn write_case(text: &mut String, case: &SuiteCase) {
    let Scenario {
        id,
        description,
        expected_status,
        requires_reply,
        reply_flow,
        follow_ups,
        strictness,
        min_score_to_pass,
        allow_minor_format_deviation,
        max_questions_allowed,
        timeout_seconds,
        expectations,
        checks,
        reference,
        files,
    } = &case.scenario;
    text.push_str("  - scenario:\n");
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "      {key}: {value}");
    };
    // Written by hand and not by serde, so that defaults are left out and long texts stay blocks
    // that a person can edit.
    line("id", quoted(id));
    line("description", quoted(description));
    line("expected_status", expected_status.to_string());
    if *requires_reply {
        line("requires_reply", requires_reply.to_string());
    }
    let strictness = strictness.map(|strictness| strictness.get().to_string());
    let least = min_score_to_pass.map(|score| score.get().to_string());
    for (key, value) in [
        ("strictness", strictness),
        ("min_score_to_pass", least),
        ("allow_minor_format_deviation", allow_minor_format_deviation.map(|it| it.to_string())),
        ("max_questions_allowed", max_questions_allowed.map(|it| it.to_string())),
        ("timeout_seconds", timeout_seconds.map(|it| it.to_string())),
    ] {
        if let Some(value) = value {
            line(key, value);
        }
    }
    if !reply_flow.is_empty() {
        text.push_str("      reply_flow:\n");
    }
    for ReplyStep { reply, expected_status } in reply_flow {
        let _ = writeln!(text, "        - reply: {}", quoted(reply));
        let _ = writeln!(text, "          expected_status: {expected_status}");
    }
    write_list(text, "      ", "follow_ups", follow_ups);
    write_list(text, "      ", "expectations", expectations);
    write_checks(text, "      ", checks);
    if let Some(reference) = reference {
        let _ = writeln!(text, "      reference: {}", block_or_quoted(reference, "        "));
    }
    write_list(text, "      ", "files", files);
    let reference = case.reference.iter().map(|value| ("reference", value));
    for (key, value) in
        [("prompt", &case.prompt), ("hints", &case.hints)].into_iter().chain(reference)
    {
        if !value.is_empty() {
            let _ = writeln!(text, "    {key}: {}", block_or_quoted(value, "      "));
        }
    }
    if case.judge == JudgeRole::Advises {
        text.push_str("    judge: advises\n");
    }
    write_list(text, "    ", "expectations", &case.expectations);
    write_checks(text, "    ", &case.checks);
    write_list(text, "    ", "facts", &case.facts);
    write_list(text, "    ", "files", &case.files);
    if !case.excerpts.is_empty() {
        text.push_str("    excerpts:\n");
    }
    for excerpt in &case.excerpts {
        let _ = writeln!(text, "      - path: {}", quoted(&excerpt.path));
        let _ = writeln!(text, "        text: {}", block_or_quoted(&excerpt.text, "          "));
    }
}

fn write_list(text: &mut String, indent: &str, key: &str, values: &[String]) {
    if !values.is_empty() {
        let _ = writeln!(text, "{indent}{key}:");
    }
    for value in values {
        let _ = writeln!(text, "{indent}  - {}", quoted(value));
    }
}

/// Writes each check on its own line.
fn write_checks(text: &mut String, indent: &str, checks: &[Check]) {
    if !checks.is_empty() {
        let _ = writeln!(text, "{indent}checks:");
    }
    for check in checks {
        let value = serde_json::to_value(check).unwrap_or_default();
        let _ = writeln!(text, "{indent}  - {}", flow(&value));
    }
}

/// Formats a value on one line.
fn flow(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        // Always quoted: a bare `no` or `1.0` is another type to YAML.
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(flow).collect())),
        Value::Object(members) => {
            let member =
                |(key, value): (&String, &Value)| format!("{}: {}", quoted(key), flow(value));
            format!("{{{}}}", joined(members.iter().map(member).collect()))
        }
        other => other.to_string(),
    }
}

/// Formats a multi-line text as a block if that is unambiguous, else as a quoted string.
fn block_or_quoted(value: &str, indent: &str) -> String {
    // Leaves out control characters, line breaks of Unicode and directional marks, which YAML
    // forbids or an editor hides.
    let plain = |c: char| matches!(c, '\n' | ' '..='~' | '\u{a1}'..='\u{1fff}');
    let ends_well = |line: &str| !line.ends_with(' ');
    // A block scalar would not preserve leading spaces or a trailing line break.
    let is_block = value.contains('\n')
        && !value.starts_with([' ', '\n'])
        && !value.ends_with('\n')
        && value.chars().all(plain)
        && value.split('\n').all(ends_well);
    if !is_block {
        return quoted(value);
    }
    let indented =
        |line: &str| if line.is_empty() { "\n".into() } else { format!("\n{indent}{line}") };
    format!("|-{}", value.split('\n').map(indented).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use selftest_checks::check::Check;
    use selftest_checks::scenario::{
        CaseGrounds, FileExcerpt, GeneratedCase, JudgeRole, ReplyStep, Scenario, TaskStatus,
    };
    use selftest_checks::suite::{SUITE_VERSION, SuiteCase};
    use selftest_stats::score::{Score, Strictness};

    fn read(text: &str) -> Result<Suite, ConfigErrors> {
        parse(Path::new("config/suites/a.yaml"), text.to_owned())
    }

    fn case(id: &str, prompt: &str, hints: &str) -> SuiteCase {
        let scenario = Scenario {
            id: id.to_owned(),
            description: "Asks back".to_owned(),
            expected_status: TaskStatus::AwaitingResponse,
            requires_reply: true,
            reply_flow: vec![ReplyStep {
                reply: "Flat: yes, \"please\"".to_owned(),
                expected_status: TaskStatus::Complete,
            }],
            follow_ups: Vec::new(),
            strictness: Some(Strictness::new(0.7).unwrap()),
            min_score_to_pass: Some(Score::new(0.6).unwrap()),
            allow_minor_format_deviation: Some(true),
            max_questions_allowed: Some(5),
            timeout_seconds: Some(60.0),
            expectations: vec!["The answer is short: \"yes\".".to_owned()],
            checks: checks(),
            reference: Some("Yes.\n\n- flat".to_owned()),
            files: vec!["docs/usage.md".to_owned()],
        };
        let (prompt, hints) = (prompt.to_owned(), hints.to_owned());
        let grounds = CaseGrounds {
            expectations: vec!["The answer asks: flat or nested?".to_owned()],
            checks: checks(),
            facts: vec!["The page is `flat`.".to_owned()],
            excerpts: vec![FileExcerpt {
                path: "docs/usage.md".to_owned(),
                text: "# Usage\n\nThe page is `flat`.\n".to_owned(),
            }],
            reference: Some("Which: flat or nested?".to_owned()),
            judge: JudgeRole::Advises,
        };
        let case = SuiteCase::new(scenario, GeneratedCase { prompt, hints, grounds });
        SuiteCase { files: vec!["README.md".to_owned()], ..case }
    }

    fn checks() -> Vec<Check> {
        serde_json::from_value(json!([
            {"contains": "port: 80 # \"\u{85}\u{2028}\n"},
            {"name": "three", "weight": 2.5, "lines": {"max": 3}},
            {"not": {"any": [{"regex": "^a\\b"}, {"tool_called": {"name": "Bash", "arguments": {"a": null}}}]}},
            {"json": {"pointer": "/a", "equals": {"b": [1, 2.5, true, "yes"]}}},
        ]))
        .unwrap()
    }

    fn suite(cases: Vec<SuiteCase>) -> Suite {
        Suite {
            version: SUITE_VERSION,
            run_id: Some("selftest-20260206-1234-bcdfgh".to_owned()),
            rubric_digest: Some("d".repeat(64)),
            prompt_digests: BTreeMap::from([("judge/rubric.md".to_owned(), "e".repeat(64))]),
            cases,
        }
    }

    #[test]
    fn a_suite_for_people() {
        let mut plain = case("plain", "Explain the build.", "names cargo: \\ and #");
        plain.scenario = Scenario {
            requires_reply: false,
            reply_flow: Vec::new(),
            strictness: None,
            ..plain.scenario
        };
        let flow = case("flow", "Sort the docs.\n\n  - flat\n  - nested", "asks \u{1b}[31mfirst");
        let suite = suite(vec![plain, flow]);
        let text = suite_text(&suite);
        assert_eq!(read(&text).unwrap(), suite);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn every_mistake_has_its_line() {
        let broken = "\
version: 2
runid: selftest-20260206-1234-bcdfgh
cases:
  - scenario:
      id: clear
      description: d
      expected_status: DONE
    prompt:
    hints: h
  - scenario:
      id: clear
      description: d
      expected_status: COMPLETE
      requires_reply: true
    prompt: p
    prompt: q
    hnits: h
  - id: loose
    prompt: p
    hints: h
";
        insta::assert_snapshot!(read(broken).unwrap_err());
    }

    #[test]
    fn a_broken_check_has_its_line() {
        let broken = "\
version: 1
cases:
  - scenario:
      id: clear
      description: d
      expected_status: COMPLETE
      checks:
        - contians: port
    prompt: p
    hints: h
    checks:
      - lines: {min: 3, max: 1}
      - any:
          - regex: \"(a\"
          - { contains: x, regex: y }
      - json: { schema: { $ref: http://example.org/schema.json } }
";
        insta::assert_snapshot!(read(broken).unwrap_err());
    }

    #[test]
    fn what_is_no_suite_is_refused() {
        let absent = load(Path::new("absent/suite.yaml")).unwrap_err().to_string();
        let all: Vec<String> =
            ["", "cases: []\nversion: 1\n", "hello\n", "version: 1\ncases: [a\n"]
                .into_iter()
                .map(|text| read(text).unwrap_err().to_string())
                .chain([absent])
                .collect();
        insta::assert_snapshot!(all.join("\n\n"));
    }

    #[test]
    fn thousands_of_cases_are_read() {
        let long = "Explain what the module does, in three lines.\nName a file.";
        let cases = (0..5_000).map(|at| case(&format!("case-{at}"), long, long)).collect();
        let suite = suite(cases);
        assert_eq!(read(&suite_text(&suite)).unwrap().cases.len(), 5_000);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_as_the_same(
            prompt in "[ -~\n\té\u{85}\u{2028}\u{feff}|>#:'\"-]{1,60}",
            hints in "\\PC{1,40}",
            description in ".{1,30}",
            id in "[A-Za-z0-9][A-Za-z0-9_-]{0,20}(/[A-Za-z0-9][A-Za-z0-9_-]{0,20})?",
            converses in any::<bool>(),
        ) {
            let mut case = case(&id, &prompt, &hints);
            case.scenario.description = description;
            if converses {
                case.scenario.requires_reply = false;
                case.scenario.reply_flow.clear();
                case.scenario.follow_ups = vec![hints];
            }
            let suite = suite(vec![case]);
            prop_assert_eq!(read(&suite_text(&suite)).unwrap(), suite);
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = read(&text);
        }
    }
}
