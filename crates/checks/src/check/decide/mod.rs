//! Decides one check on what was observed, in three-valued logic.

mod agent;
mod answer;
mod command;
mod files;
mod skill;

use selftest_text::escape::terminal;

use super::finding::MAX_SENTENCE;
use super::{Check, CheckKind, CheckOutcome, CheckSummary, Finding, Observation};
use selftest_stats::score::Score;

/// Most bytes of foreign text that is quoted in a sentence.
const MAX_QUOTE: usize = 80;
/// Most findings of `all` and `any` that are told.
const MAX_TOLD: usize = 3;

/// Decides a check. What the adapter does not report, and a check that cannot be used, leave it
/// undecided.
pub fn decide(check: &Check, observation: &Observation<'_>) -> Finding {
    let finding = statement(check, observation).finding();
    if let Some(why) = reason(check) {
        let sentence = format!("{}: {why}", finding.sentence);
        return Finding { sentence: terminal(&sentence, MAX_SENTENCE), ..finding };
    }
    // The name says what was demanded, better than a pattern does.
    if check.name.is_some()
        && finding.outcome == CheckOutcome::Failed
        && matches!(check.kind, CheckKind::Regex(_))
    {
        let sentence = format!("the answer is {}", quoted(observation.output.trim()));
        return Finding { sentence: terminal(&sentence, MAX_SENTENCE), ..finding };
    }
    finding
}

/// Why nobody can decide a demand, where that stands behind its name.
fn reason(check: &Check) -> Option<&str> {
    let (Some(name), CheckKind::Unknown(text)) = (&check.name, &check.kind) else { return None };
    text.as_str().strip_prefix(name.as_str())?.strip_prefix(": ")
}

/// Decides all checks of a case.
pub fn decide_all(checks: &[Check], observation: &Observation<'_>) -> CheckSummary {
    let findings: Vec<Finding> = checks.iter().map(|check| decide(check, observation)).collect();
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
    let score = (decided > 0.0).then(|| Score::new(held / decided).ok()).flatten();
    let outcome = findings.iter().map(|finding| finding.outcome).reduce(CheckOutcome::and);
    CheckSummary { outcome, score, findings }
}

/// A fact, and whether it is as the check demands. Negation turns the demand around and leaves the
/// fact.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Statement {
    outcome: CheckOutcome,
    /// The observed fact: "4 lines", "calls the tool `Bash`".
    fact: String,
    /// Follows the fact where it is not as demanded: "3 expected".
    demand: Option<String>,
    /// Whether the demand is that the fact be otherwise.
    negated: bool,
}

impl Statement {
    fn new(holds: bool, fact: impl Into<String>) -> Self {
        Self { outcome: CheckOutcome::of(holds), fact: fact.into(), demand: None, negated: false }
    }

    fn undecided(why: impl Into<String>) -> Self {
        let outcome = CheckOutcome::Undecided;
        Self { outcome, fact: why.into(), demand: None, negated: false }
    }

    fn not_reported(what: &str) -> Self {
        Self::undecided(format!("the adapter does not report {what}"))
    }

    /// Adds what was demanded instead.
    fn demanding(mut self, demand: impl Into<String>) -> Self {
        self.demand = Some(demand.into());
        self
    }

    fn negated(mut self) -> Self {
        self.outcome = self.outcome.negated();
        self.negated = !self.negated;
        self
    }

    fn finding(&self) -> Finding {
        let sentence = match (self.outcome, self.negated, &self.demand) {
            (CheckOutcome::Failed, true, _) => format!("{}, which is forbidden", self.fact),
            (CheckOutcome::Failed, false, Some(demand)) => format!("{}, {demand}", self.fact),
            _ => self.fact.clone(),
        };
        Finding { outcome: self.outcome, sentence: terminal(&sentence, MAX_SENTENCE) }
    }
}

fn statement(check: &Check, seen: &Observation<'_>) -> Statement {
    match &check.kind {
        CheckKind::All(checks) => all(checks, seen),
        CheckKind::Any(checks) => any(checks, seen),
        CheckKind::Not(inner) => statement(inner, seen).negated(),

        CheckKind::Contains(text) => answer::contains(text, seen),
        CheckKind::NotContains(text) => answer::contains(text, seen).negated(),
        CheckKind::Regex(pattern) => answer::matches(pattern, seen),
        CheckKind::NotRegex(pattern) => answer::matches(pattern, seen).negated(),
        CheckKind::Equals(text) => answer::equals(text, seen),
        CheckKind::Similar(similar) => answer::similar(similar, seen),
        CheckKind::Occurrences(occurrences) => answer::occurrences(occurrences, seen),
        CheckKind::Json(json) => answer::json(json, seen),
        CheckKind::Lines(bounds) => answer::lines(*bounds, seen),
        CheckKind::Words(bounds) => answer::words(*bounds, seen),
        CheckKind::Questions(bounds) => answer::questions(*bounds, seen),
        CheckKind::Characters(bounds) => answer::characters(*bounds, seen),

        CheckKind::Status(status) => agent::status(*status, seen),
        CheckKind::Turns(bounds) => agent::turns(*bounds, seen),
        CheckKind::Tokens(bounds) => agent::tokens(*bounds, seen),
        CheckKind::Seconds(bounds) => agent::seconds(*bounds, seen),
        CheckKind::TranscriptRegex(pattern) => agent::transcript(pattern, seen),
        CheckKind::ToolCalled(called) => agent::tool_called(called, seen),
        CheckKind::ToolNotCalled(name) => agent::tool_not_called(name, seen),
        CheckKind::ToolsInOrder(tools) => agent::tools_in_order(tools, seen),

        CheckKind::SkillLoaded(name) => skill::loaded(name, seen),

        CheckKind::FileCreated(path) => files::created(path, seen),
        CheckKind::FileChanged(path) => files::changed(path, seen),
        CheckKind::FileDeleted(path) => files::deleted(path, seen),
        CheckKind::FileUnchanged(path) => files::unchanged(path, seen),
        CheckKind::FileExists(path) => files::exists(path, seen),
        CheckKind::FileContains(wanted) => files::contains(wanted, seen),
        CheckKind::OnlyChanges(globs) => files::only_changes(globs, seen),

        CheckKind::Unknown(_) => Statement::undecided("nobody can decide it"),
        CheckKind::Command(command) => command::ended(command, seen),
    }
}

/// The outcomes that agree with `wanted`, told in one line.
fn told(statements: &[Statement], wanted: CheckOutcome) -> String {
    let agreeing: Vec<String> = statements
        .iter()
        .filter(|statement| statement.outcome == wanted)
        .map(|statement| statement.finding().sentence)
        .collect();
    let shown = agreeing.iter().take(MAX_TOLD).cloned().collect::<Vec<_>>().join("; ");
    match agreeing.len().saturating_sub(MAX_TOLD) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

fn all(checks: &[Check], seen: &Observation<'_>) -> Statement {
    let statements: Vec<Statement> = checks.iter().map(|check| statement(check, seen)).collect();
    let outcomes = statements.iter().map(|statement| statement.outcome);
    let outcome = outcomes.fold(CheckOutcome::Held, CheckOutcome::and);
    Statement { outcome, fact: told(&statements, outcome), demand: None, negated: false }
}

fn any(checks: &[Check], seen: &Observation<'_>) -> Statement {
    let statements: Vec<Statement> = checks.iter().map(|check| statement(check, seen)).collect();
    let outcomes = statements.iter().map(|statement| statement.outcome.negated());
    let outcome = outcomes.fold(CheckOutcome::Held, CheckOutcome::and).negated();
    Statement { outcome, fact: told(&statements, outcome), demand: None, negated: false }
}

/// Foreign text in quotes, on one line.
fn quoted(text: &str) -> String {
    format!("\"{}\"", terminal(text, MAX_QUOTE).replace('"', "'"))
}

/// A name or a path in backticks, on one line.
fn named(text: &str) -> String {
    format!("`{}`", terminal(text, MAX_QUOTE).replace('`', "'"))
}
