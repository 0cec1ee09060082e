//! What a case left behind for a reader who asks why: the grounds of the verdict, the traces of the
//! system under test, and its tool calls. Pure; renderers bound the texts.

use selftest_harness::outcome::CaseResult;
use selftest_harness::sut::{SandboxEvidence, SandboxState};
use selftest_text::one_line;

/// Maximum length of a tool call, in bytes.
const MAX_CALL: usize = 400;
/// Maximum number of tool calls listed.
const MAX_CALLS: usize = 200;

/// The kind of a part of the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvidenceKind {
    /// Facts of the project that a good answer agrees with.
    Facts,
    /// The part of a file that the judge saw.
    Excerpt(String),
    /// How the program ended.
    Exit,
    /// What the sandbox denied.
    Isolation,
    /// What the program printed on stderr.
    Stderr,
}

/// A part of the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidencePart {
    /// What it is.
    pub kind: EvidenceKind,
    /// The text, untrusted.
    pub text: String,
}

impl EvidencePart {
    /// Returns what it is, as a heading. The path of an excerpt is untrusted.
    pub fn title(&self) -> &str {
        match &self.kind {
            EvidenceKind::Facts => "Facts of the project",
            EvidenceKind::Excerpt(path) => path,
            EvidenceKind::Exit => "End of the program",
            EvidenceKind::Isolation => "Isolation",
            EvidenceKind::Stderr => "Standard error",
        }
    }
}

/// Returns the evidence of a case: facts and excerpts that its answer was judged by, and how the
/// system under test ended.
pub fn evidence(case: &CaseResult) -> Vec<EvidencePart> {
    let mut parts = Vec::new();
    let mut add = |kind, text: String| {
        if !text.trim().is_empty() {
            parts.push(EvidencePart { kind, text });
        }
    };
    if let Some(generated) = &case.case {
        add(EvidenceKind::Facts, generated.grounds.facts.join("\n"));
        for excerpt in &generated.grounds.excerpts {
            add(EvidenceKind::Excerpt(excerpt.path.clone()), excerpt.text.clone());
        }
    }
    let traces = &case.evidence;
    // An ordinary end is no evidence of anything.
    let exit = traces.exit.as_ref().filter(|exit| *exit != "exit code 0");
    add(EvidenceKind::Exit, exit.cloned().unwrap_or_default());
    let tried = traces.sandbox.as_ref().filter(|it| it.state != SandboxState::Clean);
    add(EvidenceKind::Isolation, tried.map(SandboxEvidence::summary).unwrap_or_default());
    add(EvidenceKind::Stderr, traces.stderr.clone().unwrap_or_default());
    parts
}

/// Returns the tool calls of a case, one line each; `None` if the system under test does not report
/// them.
pub fn tool_calls(case: &CaseResult) -> Option<Vec<String>> {
    let replies = case.steps.iter().filter_map(|step| step.reply.as_ref());
    let mut reported = replies.filter_map(|reply| reply.tool_calls.as_ref()).peekable();
    reported.peek()?;
    let lines = reported.flatten().map(|call| {
        let arguments =
            if call.arguments.is_null() { String::new() } else { call.arguments.to_string() };
        one_line(&format!("{} {arguments}", call.name), MAX_CALL)
    });
    Some(lines.take(MAX_CALLS).collect())
}

/// Returns the yes/no criteria of a case, as written.
pub fn expectations(case: &CaseResult) -> &[String] {
    case.case.as_ref().map_or(&[], |generated| &generated.grounds.expectations)
}

/// Returns a good answer, if the case names one.
pub fn reference(case: &CaseResult) -> Option<&str> {
    case.case.as_ref()?.grounds.reference.as_deref().filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture;
    use selftest_checks::check::ObservedToolCall;

    #[test]
    fn calls_that_are_not_reported_are_not_none() {
        let mut case = fixture::case(0, "a", fixture::scored([1.0; 4], ""));
        assert_eq!(tool_calls(&case), None);
        case.steps[0].reply.as_mut().unwrap().tool_calls = Some(Vec::new());
        assert_eq!(tool_calls(&case), Some(Vec::new()));
        let call = |name: &str, arguments| ObservedToolCall {
            name: name.to_owned(),
            arguments,
            failed: false,
        };
        let calls = vec![call("read", json!({"path": "a\nb"})), call("list", json!(null))];
        case.steps[0].reply.as_mut().unwrap().tool_calls = Some(calls);
        assert_eq!(tool_calls(&case).unwrap(), [r#"read {"path":"a\nb"}"#, "list"]);
    }
}
