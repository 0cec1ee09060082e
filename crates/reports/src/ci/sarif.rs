//! Isolation breaches in a run as SARIF 2.1.0, for dashboards of security findings. Failed cases
//! are not security findings and are left out.

use serde::Serialize;
use serde_json::{Value, json};

use super::CiRunView;
use crate::case_view::CaseView;
use selftest_harness::outcome::{IsolationBreach, breaches};
use selftest_text::digest;
use selftest_text::escape::terminal;

/// URL of the published schema of the format.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Maximum length of a message and of a name, in bytes.
const MAX_MESSAGE: usize = 1_000;
const MAX_NAME: usize = 200;
/// Location for findings about cases without a file: readers reject findings that have none.
const NO_FILE: &str = "config/selftest.yaml";

/// The rules, in report order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
enum SarifRule {
    /// Project files changed while a case ran.
    ProjectChanged,
    /// Files changed that the system under test should have no way to reach.
    BreakOut,
    /// A tool call names a file with answers, or the sandbox denied reading one.
    AnswerKeyRead,
    /// The sandbox denied reading a file with keys or passwords.
    SecretRead,
    /// The sandbox denied something else.
    Refused,
}

impl SarifRule {
    const fn id(self) -> &'static str {
        match self {
            Self::ProjectChanged => "selftest/project-changed",
            Self::BreakOut => "selftest/break-out",
            Self::AnswerKeyRead => "selftest/answer-key-read",
            Self::SecretRead => "selftest/secret-read",
            Self::Refused => "selftest/refused",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::ProjectChanged => "ProjectChanged",
            Self::BreakOut => "BreakOut",
            Self::AnswerKeyRead => "AnswerKeyRead",
            Self::SecretRead => "SecretRead",
            Self::Refused => "Refused",
        }
    }

    const fn summary(self) -> &'static str {
        match self {
            Self::ProjectChanged => "The system under test changed project files",
            Self::BreakOut => "Project files changed outside of any case",
            Self::AnswerKeyRead => "The system under test tried to read the expected answers",
            Self::SecretRead => "The system under test tried to read a secret",
            Self::Refused => "The sandbox denied an access of the system under test",
        }
    }

    const fn help(self) -> &'static str {
        match self {
            Self::ProjectChanged => {
                "A system under test may read the project, but write only to its scratch folder. \
                 Review what it did in this case, and restore the files."
            }
            Self::BreakOut => {
                "Project files changed during the run, but not during a case. Either another process \
                 wrote to the folder, or the system under test escaped its sandbox."
            }
            Self::AnswerKeyRead => {
                "A tool call names a file with prompts, hints or verdicts, or the sandbox denied \
                 access to one. The harness hides these files if it can; the isolation of the run \
                 shows whether it could."
            }
            Self::SecretRead => {
                "The sandbox denied access to a file with keys or passwords. Review what the system \
                 under test did in this case."
            }
            Self::Refused => {
                "The system under test tried an access that its sandbox does not grant. If it needs \
                 the access, grant it in sut.command: readable, tcp_ports, work_folder."
            }
        }
    }

    const fn level(self) -> SarifLevel {
        match self {
            Self::ProjectChanged | Self::AnswerKeyRead | Self::SecretRead => SarifLevel::Error,
            Self::BreakOut | Self::Refused => SarifLevel::Warning,
        }
    }

    fn index(self) -> usize {
        <Self as strum::VariantArray>::VARIANTS.iter().position(|rule| *rule == self).unwrap_or(0)
    }

    fn describe(self) -> Value {
        json!({
            "id": self.id(),
            "name": self.name(),
            "shortDescription": { "text": self.summary() },
            "fullDescription": { "text": self.help() },
            "help": { "text": self.help() },
            "defaultConfiguration": { "level": self.level() },
        })
    }
}

/// The severity of a finding, by the format's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum SarifLevel {
    Error,
    Warning,
}

/// Renders the findings of a run.
pub(super) fn render(run: &CiRunView<'_>) -> serde_json::Result<String> {
    let document = run.document;
    let suite = document.suite.as_ref().map(|suite| suite.path.as_str());
    let keys: Vec<&str> = suite.into_iter().collect();
    let cases = run.cases();
    let mut results: Vec<Value> = Vec::new();
    let mut seen: Vec<&String> = Vec::new();
    let found: Vec<(&CaseView<'_>, Vec<IsolationBreach>)> =
        cases.iter().map(|case| (case, breaches(case.result, &keys))).collect();
    for (case, breaches) in &found {
        for breach in breaches {
            if let IsolationBreach::ProjectChanged(files) = breach {
                seen.extend(files);
            }
            results.push(case_result(run, case, breach));
        }
    }
    // Changes during a case are already reported for that case.
    let unexplained: Vec<&String> =
        document.changed_files.iter().filter(|file| !seen.contains(file)).collect();
    results.extend((!unexplained.is_empty()).then(|| run_result(run, &unexplained)));
    let rules: Vec<Value> =
        <SarifRule as strum::VariantArray>::VARIANTS.iter().map(|rule| rule.describe()).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "selftest",
                    "version": document.selftest_version,
                    "informationUri": env!("CARGO_PKG_REPOSITORY"),
                    "rules": rules,
                },
            },
            "automationDetails": { "id": format!("selftest/{}", document.run_id) },
            "invocations": [invocation(run)],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    Ok(serde_json::to_string_pretty(&log)? + "\n")
}

/// Returns the SARIF invocation, with what the isolation could not enforce.
fn invocation(run: &CiRunView<'_>) -> Value {
    let document = run.document;
    let missing = document.isolation.not_enforced.iter();
    let notes: Vec<Value> = missing
        .map(|words| {
            let text = format!("not enforced: {}", terminal(words, MAX_MESSAGE));
            json!({ "level": SarifLevel::Warning, "message": { "text": text } })
        })
        .collect();
    let mut invocation = json!({
        "executionSuccessful": document.complete,
        "startTimeUtc": document.timestamp,
        "toolExecutionNotifications": notes,
    });
    if let Some(end) = document.ended_at {
        invocation["endTimeUtc"] = json!(end);
    }
    invocation
}

fn case_result(run: &CiRunView<'_>, case: &CaseView<'_>, breach: &IsolationBreach) -> Value {
    let (rule, words) = match breach {
        IsolationBreach::ProjectChanged(files) => {
            (SarifRule::ProjectChanged, format!("project files changed: {}", files.join(", ")))
        }
        IsolationBreach::AnswerKeyNamed { tool, path } => (
            SarifRule::AnswerKeyRead,
            format!("called {tool} with {path}, which holds expected answers"),
        ),
        IsolationBreach::AnswerKeyRefused(path) => (
            SarifRule::AnswerKeyRead,
            format!("denied reading {path}, which holds expected answers"),
        ),
        IsolationBreach::SecretRefused(path) => {
            (SarifRule::SecretRead, format!("denied reading {path}, which holds secrets"))
        }
        IsolationBreach::Refused(attempts) => {
            (SarifRule::Refused, format!("denied: {}", attempts.join("; ")))
        }
    };
    let name = terminal(case.name(), MAX_NAME);
    let source = run.source(case);
    let file = source.map_or_else(|| run_file(run), |source| source.file);
    let mut place = json!({ "artifactLocation": { "uri": uri_reference(file) } });
    if let Some(line) = source.and_then(|source| source.line) {
        place["region"] = json!({ "startLine": line });
    }
    // The same breach of the same case should be the same finding in every run. Denied actions
    // contain process IDs and ports, which differ each time.
    let same = (rule != SarifRule::Refused).then_some(&words);
    let fingerprint = json!([rule.id(), case.result.scenario.id, same]);
    let mut found = result(rule, &format!("case {name}: {words}"), &place, fingerprint);
    found["locations"][0]["logicalLocations"] =
        json!([{ "name": name, "fullyQualifiedName": name, "kind": "test case" }]);
    found["properties"] = json!({
        "case": name,
        "session": case.result.session_id,
        "status": <&str>::from(case.status),
    });
    found
}

/// Returns the finding for changes that no case explains.
fn run_result(run: &CiRunView<'_>, files: &[&String]) -> Value {
    let names: Vec<&str> = files.iter().map(|file| file.as_str()).collect();
    let words = format!("project files changed during the run: {}", names.join(", "));
    let place = json!({ "artifactLocation": { "uri": uri_reference(run_file(run)) } });
    result(SarifRule::BreakOut, &words, &place, json!([SarifRule::BreakOut.id(), names]))
}

fn result(rule: SarifRule, words: &str, place: &Value, fingerprint: Value) -> Value {
    json!({
        "ruleId": rule.id(),
        "ruleIndex": rule.index(),
        "level": rule.level(),
        "message": { "text": terminal(words, MAX_MESSAGE) },
        "locations": [{ "physicalLocation": place }],
        "partialFingerprints": { "selftestIsolation/v1": digest::json_sha256_hex(fingerprint) },
    })
}

/// Returns the file that represents the run if its cases have none.
fn run_file<'a>(run: &CiRunView<'a>) -> &'a str {
    let suite = run.document.suite.as_ref().filter(|suite| !suite.replayed);
    suite.map_or(NO_FILE, |suite| suite.path.as_str())
}

/// Formats a path as a URI reference: absolute, or relative to the repository root.
fn uri_reference(path: &str) -> String {
    // The extended-length form of a Windows path, as `canonicalize` returns it.
    let path = path.strip_prefix(r"\\?\").unwrap_or(path);
    let (start, path) = match path.as_bytes() {
        // `C:\x` is `file:///C:/x`; the colon of a drive is not escaped.
        [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic() => {
            (format!("file:///{}:", char::from(*drive)), &path[2..])
        }
        // `\\server\share` is `file://server/share`.
        [b'\\', b'\\', ..] => ("file://".to_owned(), &path[2..]),
        [b'/', ..] => ("file://".to_owned(), path),
        _ => (String::new(), path.strip_prefix("./").unwrap_or(path)),
    };
    path.bytes().fold(start, |mut address, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                address.push(char::from(byte));
            }
            // Windows separators are not valid in a URI.
            b'\\' => address.push('/'),
            other => address.push_str(&format!("%{other:02X}")),
        }
        address
    })
}

#[cfg(test)]
mod tests {
    use super::super::CaseSources;
    use super::*;
    use crate::document::ReportDocument;
    use crate::fixture;
    use selftest_checks::check::ObservedToolCall;
    use selftest_harness::sut::SandboxEvidence;
    use selftest_sandbox::{AttemptCount, AttemptKind, SandboxAttempt};

    fn sarif(document: &ReportDocument) -> Value {
        let sources = CaseSources::new("config/suites/my cases.yaml", [("a".to_owned(), 7)].into());
        serde_json::from_str(&render(&CiRunView::new(document, &sources)).unwrap()).unwrap()
    }

    fn rules(log: &Value) -> Vec<&str> {
        let results = log["runs"][0]["results"].as_array().unwrap();
        results.iter().map(|result| result["ruleId"].as_str().unwrap()).collect()
    }

    #[test]
    fn findings_of_a_rich_run() {
        let mut document = fixture::document();
        document.changed_files.push("changed: somewhere.md".to_owned());
        let arguments = json!({ "path": "./config/suites/x.yaml" });
        let call =
            ObservedToolCall { name: "Read \u{1b}[31m".to_owned(), arguments, failed: false };
        let reply = document.cases[0].steps[0].reply.as_mut().unwrap();
        reply.tool_calls = Some(vec![call.clone(), call]);
        let attempts = [
            (AttemptKind::AnswerKey, "config/suites/\u{1b}x.yaml"),
            (AttemptKind::Secret, ".env"),
            (AttemptKind::Connect, "10.0.0.1:80"),
            (AttemptKind::Signal, "process 17"),
        ];
        let attempts = attempts.map(|(kind, what)| AttemptCount {
            attempt: SandboxAttempt { kind, what: what.to_owned() },
            times: 2,
        });
        let sandbox = SandboxEvidence::new(attempts.into(), 0, true);
        document.cases[0].evidence.sandbox = Some(sandbox);
        let log = sarif(&document);
        let expected = [
            "selftest/answer-key-read",
            "selftest/answer-key-read",
            "selftest/secret-read",
            "selftest/refused",
            "selftest/project-changed",
            "selftest/break-out",
        ];
        assert_eq!(rules(&log), expected);
        insta::assert_snapshot!(serde_json::to_string_pretty(&log["runs"][0]["results"]).unwrap());
        assert_eq!(sarif(&document), log, "fingerprints stay");
    }

    #[test]
    fn a_failed_case_is_no_finding() {
        let mut document = fixture::document();
        document.cases.retain(|case| case.interruption.is_none());
        document.changed_files.clear();
        assert!(document.cases.iter().any(|case| case.pass == Some(false)));
        assert_eq!(rules(&sarif(&document)), [""; 0]);
    }

    #[test]
    fn paths_become_addresses() {
        assert_eq!(uri_reference("config/suites/my cases.yaml"), "config/suites/my%20cases.yaml");
        assert_eq!(uri_reference("/tmp/ä:b"), "file:///tmp/%C3%A4%3Ab");
        assert_eq!(uri_reference("./a\\b"), "a/b");
        assert_eq!(uri_reference(r"C:\my suites\a.yaml"), "file:///C:/my%20suites/a.yaml");
        assert_eq!(uri_reference(r"\\?\d:\a"), "file:///d:/a");
        assert_eq!(uri_reference(r"\\server\share\a"), "file://server/share/a");
    }
}
