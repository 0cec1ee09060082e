//! Decides a check against an observation, in three-valued logic.

pub(super) mod agent;
pub(super) mod answer;
pub(super) mod calls;
pub(super) mod files;

use super::{
    Check, CheckFinding, CheckKind, CheckObservation, CheckOutcome, CheckSummary, MAX_SENTENCE,
};
use crate::check::{CommandCheck, CommandOutcome};
pub use answer::accepts_empty_answer;
pub(super) use answer::{equal, json_values};
use selftest_stats::score::Score;
use selftest_text::escape::terminal;

/// Maximum length of quoted foreign text in a sentence, in bytes.
const MAX_QUOTE: usize = 80;
/// Maximum number of findings of `all` and `any` in a sentence.
const MAX_FINDINGS: usize = 3;

/// Decides a check. It stays undecided if it is unusable or if the adapter does not report what it
/// needs.
pub fn decide(check: &Check, observation: &CheckObservation<'_>) -> CheckFinding {
    decide_among(check, observation, answer::is_wanted(std::slice::from_ref(check)))
}

/// Decides a check of a case. An empty answer satisfies no check of its text unless it
/// `is_empty_wanted`.
fn decide_among(
    check: &Check,
    observation: &CheckObservation<'_>,
    is_empty_wanted: bool,
) -> CheckFinding {
    let is_empty = observation.is_answer_empty();
    // White space is no answer either.
    let output = if is_empty { "" } else { observation.output };
    let observation = &CheckObservation { output, ..*observation };
    let statement = if is_empty && !is_empty_wanted {
        answer::statement(check, observation)
    } else {
        check.kind.decide(observation)
    };
    let finding = statement.finding();
    if let Some(why) = undecidable_reason(check) {
        let sentence = format!("{}: {why}", finding.sentence);
        return CheckFinding { sentence: terminal(&sentence, MAX_SENTENCE), ..finding };
    }
    // The check's name expresses the requirement better than the pattern does.
    if check.name.is_some()
        && finding.outcome == CheckOutcome::Failed
        && matches!(check.kind, CheckKind::Regex(_))
    {
        let sentence = format!("the answer is {}", quote_text(observation.output.trim()));
        return CheckFinding { sentence: terminal(&sentence, MAX_SENTENCE), ..finding };
    }
    finding
}

/// Returns why a requirement cannot be decided, if its text continues after the name.
fn undecidable_reason(check: &Check) -> Option<&str> {
    let (Some(name), CheckKind::Unknown(text)) = (&check.name, &check.kind) else { return None };
    text.as_str().strip_prefix(name.as_str())?.strip_prefix(": ")
}

/// Decides all checks of a case.
pub fn decide_all(checks: &[Check], observation: &CheckObservation<'_>) -> CheckSummary {
    let is_empty_wanted = answer::is_wanted(checks);
    let findings: Vec<CheckFinding> =
        checks.iter().map(|check| decide_among(check, observation, is_empty_wanted)).collect();
    let (mut held, mut decided) = (0.0, 0.0);
    for (check, finding) in checks.iter().zip(&findings) {
        let weight = check.weight.get();
        match finding.outcome {
            CheckOutcome::Held => {
                held += weight;
                decided += weight;
            }
            CheckOutcome::Failed => decided += weight,
            CheckOutcome::Undecided => {}
        }
    }
    // Undecided checks count neither for nor against. The score is `None` if none was decided.
    let score = (decided > 0.0).then(|| Score::new(held / decided).ok()).flatten();
    let outcome = findings.iter().map(|finding| finding.outcome).reduce(CheckOutcome::and);
    CheckSummary { outcome, score, findings }
}

/// An observed fact and whether it satisfies the check. Negation inverts the outcome and leaves the
/// fact alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FactStatement {
    outcome: CheckOutcome,
    /// The observed fact: "4 lines", "calls the tool `Bash`".
    fact: String,
    /// Appended to the fact if the check failed: "3 expected".
    demand: Option<String>,
    /// True if the check requires the opposite.
    negated: bool,
}

impl FactStatement {
    pub(super) fn new(holds: bool, fact: impl Into<String>) -> Self {
        Self { outcome: CheckOutcome::of(holds), fact: fact.into(), demand: None, negated: false }
    }

    pub(super) fn undecided(why: impl Into<String>) -> Self {
        let outcome = CheckOutcome::Undecided;
        Self { outcome, fact: why.into(), demand: None, negated: false }
    }

    fn not_reported(what: &str) -> Self {
        Self::undecided(format!("the adapter does not report {what}"))
    }

    /// Adds what was expected instead.
    pub(super) fn with_demand(mut self, demand: impl Into<String>) -> Self {
        self.demand = Some(demand.into());
        self
    }

    pub(super) fn negated(mut self) -> Self {
        self.outcome = self.outcome.negated();
        self.negated = !self.negated;
        self
    }

    fn finding(&self) -> CheckFinding {
        let sentence = match (self.outcome, self.negated, &self.demand) {
            // A negated check fails because of the fact itself; what was expected instead does not
            // apply.
            (CheckOutcome::Failed, true, _) => format!("{}, which is forbidden", self.fact),
            (CheckOutcome::Failed, false, Some(demand)) => format!("{}, {demand}", self.fact),
            _ => self.fact.clone(),
        };
        CheckFinding { outcome: self.outcome, sentence: terminal(&sentence, MAX_SENTENCE) }
    }
}

/// Joins the sentences with the outcome `wanted` into one line.
fn join_sentences(statements: &[FactStatement], wanted: CheckOutcome) -> String {
    let agreeing: Vec<String> = statements
        .iter()
        .filter(|statement| statement.outcome == wanted)
        .map(|statement| statement.finding().sentence)
        .collect();
    let shown = agreeing.iter().take(MAX_FINDINGS).cloned().collect::<Vec<_>>().join("; ");
    match agreeing.len().saturating_sub(MAX_FINDINGS) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

pub(super) fn all(checks: &[Check], seen: &CheckObservation<'_>) -> FactStatement {
    let statements: Vec<_> = checks.iter().map(|check| check.kind.decide(seen)).collect();
    all_of(&statements)
}

/// Combines the statements of checks that all have to hold.
fn all_of(statements: &[FactStatement]) -> FactStatement {
    let outcomes = statements.iter().map(|statement| statement.outcome);
    let outcome = outcomes.fold(CheckOutcome::Held, CheckOutcome::and);
    FactStatement {
        outcome,
        fact: join_sentences(statements, outcome),
        demand: None,
        negated: false,
    }
}

pub(super) fn any(checks: &[Check], seen: &CheckObservation<'_>) -> FactStatement {
    let statements: Vec<_> = checks.iter().map(|check| check.kind.decide(seen)).collect();
    any_of(&statements)
}

/// Combines the statements of checks of which one has to hold.
fn any_of(statements: &[FactStatement]) -> FactStatement {
    // By De Morgan: `any` is the negation of `all` over the negated outcomes.
    let outcomes = statements.iter().map(|statement| statement.outcome.negated());
    let outcome = outcomes.fold(CheckOutcome::Held, CheckOutcome::and).negated();
    FactStatement {
        outcome,
        fact: join_sentences(statements, outcome),
        demand: None,
        negated: false,
    }
}

/// Quotes foreign text on one line.
fn quote_text(text: &str) -> String {
    // Quotes inside would make it unclear where the quotation ends.
    format!("\"{}\"", terminal(text, MAX_QUOTE).replace('"', "'"))
}

/// Quotes a name or a path in backticks, on one line.
fn quote_name(text: &str) -> String {
    format!("`{}`", terminal(text, MAX_QUOTE).replace('`', "'"))
}

pub(in crate::check) fn decide_command(
    command: &CommandCheck,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let program = quote_name(command.run.program());
    let Some(run) = seen.commands.iter().find(|run| run.command == *command) else {
        return FactStatement::undecided(format!("the command {program} was not run"));
    };
    match &run.end {
        // A fault of this machine or of the suite, and not of the agent.
        CommandOutcome::NotStarted { why } => FactStatement::undecided(format!(
            "the command {program} did not start: {}",
            quote_text(why)
        )),
        // A command without an exit code has not decided. Under `not`, a failure would be a pass.
        CommandOutcome::Killed { signal } => {
            FactStatement::undecided(format!("the command {program} was ended by signal {signal}"))
        }
        CommandOutcome::TimedOut => {
            let limit = command.timeout_seconds.seconds();
            FactStatement::undecided(format!("the command {program} did not end within {limit} s"))
        }
        CommandOutcome::TooMuchOutput => {
            FactStatement::undecided(format!("the command {program} printed without end"))
        }
        CommandOutcome::Exited { code, stdout } => decide_exit(command, *code, stdout),
    }
}

fn decide_exit(command: &CommandCheck, code: i32, stdout: &str) -> FactStatement {
    let program = quote_name(command.run.program());
    let first = stdout.lines().next().unwrap_or_default().trim();
    let says = if first.is_empty() { String::new() } else { format!(": {}", quote_text(first)) };
    // Before the expected code: a verifier that broke down says nothing about the agent.
    if command.undecided_exit.is_some_and(|exit| code == i32::from(exit)) {
        return FactStatement::undecided(format!("the command {program} could not decide{says}"));
    }
    if code != i32::from(command.exit_code) {
        let wanted = command.exit_code;
        let fact = format!("the command {program} ended with exit code {code}{says}");
        return FactStatement::new(false, fact).with_demand(format!("{wanted} expected"));
    }
    if let Some(wanted) = &command.first_line
        && wanted.trim() != first
    {
        let fact = format!("the command {program} printed {}", quote_text(first));
        return FactStatement::new(false, fact)
            .with_demand(format!("{} expected", quote_text(wanted)));
    }
    if let Some(wanted) = &command.prints
        && !stdout.contains(wanted.as_str())
    {
        let fact = format!("the command {program} did not print {}", quote_text(wanted.as_str()));
        return FactStatement::new(false, fact);
    }
    if let Some(pattern) = &command.matches {
        let shown = quote_name(pattern.as_str());
        let fact = || format!("the output of the command {program} does not match {shown}");
        match pattern.find(stdout) {
            Ok(Some(_)) => {}
            Ok(None) => return FactStatement::new(false, fact()),
            Err(error) => return FactStatement::undecided(format!("{shown}: {error}")),
        }
    }
    FactStatement::new(true, format!("the command {program} ended with exit code {code}{says}"))
}
