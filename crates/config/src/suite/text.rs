//! Formats a suite as readable YAML.

use std::fmt::Write as _;

use serde_json::Value;

use crate::show::quoted;
use selftest_checks::check::Check;
use selftest_checks::scenario::{JudgeRole, ReplyStep, Scenario};
use selftest_checks::suite::{Suite, SuiteCase};
use selftest_text::one_line;

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
