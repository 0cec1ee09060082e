//! Detects failed actions from messages of SWE-agent, its tools and the shell at the start or in
//! the last line of an observation. Words inside an output must not count.

use crate::event::{ToolOutcome, ToolResult};
use crate::failure;
use crate::text::Text;

/// Prefixes that only failures have.
const FAILED: [&str; 9] = [
    "bash: ",
    "/bin/bash: ",
    "-bash: ",
    "sh: ",
    "/bin/sh: ",
    "COMMAND FAILED TO EXECUTE",
    "BROKEN PIPE ERROR",
    "No file open.",
    "No replacement was performed",
];

/// Converts an observation to a result.
pub(super) fn result_of(observation: Text<'_>) -> ToolResult<'_> {
    let outcome = outcome_of(observation.trim());
    let mut result = failure::result_of(observation);
    result.outcome = outcome.unwrap_or(result.outcome);
    result
}

fn outcome_of(observation: &str) -> Option<ToolOutcome> {
    // In the history, observations are wrapped in a template.
    let text = ["OBSERVATION:", "Observation:"]
        .iter()
        .find_map(|prefix| observation.strip_prefix(prefix))
        .unwrap_or(observation)
        .trim_start();
    let first = text.lines().next().unwrap_or_default();
    let last = text.lines().next_back().unwrap_or_default();
    // A forbidden command: refused by a policy, not a tool failure.
    let is_refused = (first.starts_with("Operation '")
        || first.starts_with("Interactive operation '"))
        && first.contains("' is not supported");
    if is_refused {
        return Some(ToolOutcome::Rejected);
    }
    let is_failure = failure::is_failure_text(text)
        || FAILED.iter().any(|beginning| text.starts_with(beginning))
        // "Your bash command contained syntax errors", "Your proposed edit has introduced new …"
        || (first.starts_with("Your ") && first.contains("syntax error"))
        || (first.starts_with("The command '") && text.contains("' was cancelled because it took"))
        || (first.starts_with("File ") && first.ends_with(" not found"))
        || (first.starts_with("File \"") && is_syntax_error(last))
        || last.starts_with("EXECUTION TIMED OUT")
        // From `submit` in a capture-the-flag task.
        || text == "Wrong flag!";
    is_failure.then_some(ToolOutcome::Failed)
}

/// Returns true if this is the last line of Python's report about a script that it cannot parse.
fn is_syntax_error(line: &str) -> bool {
    ["SyntaxError:", "IndentationError:", "TabError:"].iter().any(|error| line.starts_with(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_and_what_only_looks_like_it() {
        use ToolOutcome::{Failed, Rejected, Unknown};
        for (observation, outcome) in [
            ("Your bash command contained syntax errors and was NOT executed. Please", Failed),
            ("Your proposed edit has introduced new syntax error(s). Please read", Failed),
            ("\nEXECUTION TIMED OUT", Failed),
            ("1\n2\nEXECUTION TIMED OUT BECAUSE NO OUTPUT WAS PRODUCED FOR 30 SECONDS.", Failed),
            ("The command 'sleep 99' was cancelled because it took more than 30 seconds.", Failed),
            ("bash: frobnicate: command not found", Failed),
            ("/bin/bash: line 1: frobnicate: command not found\n", Failed),
            ("OBSERVATION:\nbash: x: command not found\n(Open file: n/a)", Failed),
            ("Traceback (most recent call last):\n  File \"a.py\", line 1", Failed),
            (
                "  File \"a.py\", line 4\n    def f()\n          ^\nSyntaxError: invalid syntax",
                Failed,
            ),
            ("File src/a.py not found", Failed),
            ("Wrong flag!", Failed),
            ("Interactive operation 'vim' is not supported by this environment", Rejected),
            ("Operation 'nano a' is not supported by this environment", Rejected),
            ("the log has error: none and bash: x: command not found", Unknown),
            ("[File: /a/b.py (3 lines total)]\n1:raise SyntaxError", Unknown),
            ("Found 2 matches for \"syntax error\"", Unknown),
            ("", Unknown),
        ] {
            assert_eq!(result_of(observation.into()).outcome, outcome, "{observation}");
        }
    }
}
