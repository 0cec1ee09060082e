//! Renders grades of recorded sessions, by rules and by models, for a terminal. Texts inside the
//! grades are untrusted.

use std::fmt::Write as _;

use crate::grade::agreement::{
    GraderAgreement, GraderCalibration, GraderDiscrepancy, RaterComparison,
};
use crate::grade::quality::{CombinedQuality, QualityDimension, rubric_name};
use crate::grade::{GradeOverride, GradeRecord, Proportion, QualityGrade, TokenCost};
use selftest_stats::Interval;
use selftest_text::escape::terminal;
use selftest_text::wording::plural;

const ID_WIDTH: usize = 36;
const MAX_REQUEST: usize = 50;
const MAX_WORDS: usize = 160;

/// Renders a table with one line per grade and a heading.
pub fn table(grades: &[GradeRecord]) -> String {
    let mut text = heading();
    for grade in grades {
        text += &line(grade);
    }
    text
}

/// Returns the heading for [`line()`].
pub fn heading() -> String {
    format!(
        "{:<13} {:<9} {:>10} {:>7} {:>9} {:>5} {:>6}  {:<14} {:<ID_WIDTH$} {}\n",
        "OUTCOME",
        "COMPLETED",
        "EFFICIENCY",
        "QUALITY",
        "RECOVERED",
        "CALLS",
        "ERRORS",
        "TASK",
        "SESSION",
        "REQUEST"
    )
}

/// Renders a grade as one line.
pub fn line(grade: &GradeRecord) -> String {
    let recovered = match (grade.total_errors, grade.errors_recovered) {
        (0, _) => "-",
        (_, yes) => yes_no(yes),
    };
    format!(
        "{:<13} {:<9} {:>10} {:>7} {:>9} {:>5} {:>6}  {:<14} {:<ID_WIDTH$} {}\n",
        outcome(grade),
        yes_no(grade.task_completed),
        grade.tool_calls_efficient.get(),
        grade.response_quality.get(),
        recovered,
        grade.total_api_calls,
        grade.total_errors,
        grade.details.task_type.name(),
        id_cell(&grade.session_id),
        terminal(grade.task_summary.as_deref().unwrap_or_default(), MAX_REQUEST),
    )
}

/// Returns an ID that fits its column. It is cut without an ellipsis, since a prefix still finds
/// the session.
fn id_cell(id: &str) -> String {
    terminal(id, 2 * ID_WIDTH).chars().take(ID_WIDTH).collect()
}

/// Returns the outcome of a task, or the kind of a session that is not a task.
fn outcome(grade: &GradeRecord) -> &'static str {
    if grade.is_task() { grade.outcome.name() } else { grade.session_kind.name() }
}

fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// Renders a grade in full. `grade` is the grade by the rules, `lost` describes the part of its
/// file that could not be read.
pub fn card(
    grade: &GradeRecord,
    overrides: &[GradeOverride],
    cost: &TokenCost,
    lost: Option<&str>,
) -> String {
    let mut text = String::new();
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<22} {}", terminal(value, MAX_WORDS));
    };
    fact("session", &grade.session_id);
    fact("file", &grade.session_file);
    if let Some(lost) = lost {
        fact("of the file lost", lost);
    }
    fact("agent", &grade.details.agent);
    fact("model", grade.model.as_deref().unwrap_or("-"));
    fact("start", &grade.session_start.map_or_else(|| "-".to_owned(), |time| time.to_string()));
    fact("task type", grade.details.task_type.name());
    fact("request", grade.task_summary.as_deref().unwrap_or("-"));
    fact("outcome", grade.outcome.name());
    fact("seen", &grade.details.state.words());
    if !grade.is_task() {
        fact("session_kind", &format!("{}, in no rate", grade.session_kind));
    }
    if let Some(parent) = &grade.parent_session {
        fact("parent_session", parent);
    }
    fact("corrections", &grade.details.corrections.to_string());
    fact("task_completed", yes_no(grade.task_completed));
    fact("tool_calls_efficient", &format!("{} of 5", grade.tool_calls_efficient));
    fact("response_quality", &format!("{} of 5", grade.response_quality));
    fact("errors_recovered", yes_no(grade.errors_recovered));
    fact("cost", &cost.words());
    fact("total_api_calls", &grade.total_api_calls.to_string());
    fact(
        "tool calls",
        &format!(
            "{}: {} failed, {} rejected, {} without result",
            grade.details.tool_calls,
            grade.total_errors,
            grade.details.rejected_calls,
            grade.details.pending_calls
        ),
    );
    fact("had_repeated_errors", yes_no(grade.had_repeated_errors));
    fact("had_infinite_loop_risk", yes_no(grade.had_infinite_loop_risk));
    fact("had_user_clarification", yes_no(grade.had_user_clarification));

    if !grade.details.outcome_evidence.is_empty() {
        text += "\noutcome (# is the event in `selftest sessions show SESSION`)\n";
    }
    for evidence in &grade.details.outcome_evidence {
        let words = terminal(&evidence.words, MAX_WORDS);
        let _ = writeln!(text, "  {:<42} #{}  {words}", evidence.sign.words(), evidence.event);
    }
    for result in &grade.details.results {
        let (words, file) = (terminal(&result.words, MAX_WORDS), terminal(&result.file, MAX_WORDS));
        let _ = writeln!(text, "  {:<42} {words}  {file}", "a file beside the session says");
    }
    text += "\nevidence (# is the event in `selftest sessions show SESSION`)\n";
    for evidence in &grade.details.evidence {
        let event = evidence.event.map_or_else(|| "-".to_owned(), |event| format!("#{event}"));
        let point = serde_json::to_value(evidence.point).ok();
        let point = point.as_ref().and_then(|point| point.as_str()).unwrap_or_default();
        let words = terminal(&evidence.words, MAX_WORDS);
        let _ = writeln!(text, "  {:>+5} {point:<16} {event:>6}  {words}", evidence.worth);
    }
    if !grade.details.errors.is_empty() {
        text += "\nerrors\n";
    }
    for error in &grade.details.errors {
        let _ = writeln!(
            text,
            "  {:>4} {:<18} {:<20} #{}  {}",
            error.count,
            error.cause.name(),
            terminal(&error.tool, 40),
            error.first_event,
            terminal(&error.example, MAX_WORDS)
        );
    }
    if !overrides.is_empty() {
        text += "\noverrides (the newest counts)\n";
    }
    for one in overrides {
        let _ = writeln!(
            text,
            "  {} {}: {} by the rules, {} by a person: {}",
            one.made_at,
            one.field,
            one.field.words(one.rule_value),
            one.field.words(one.human_value),
            terminal(&one.reason, MAX_WORDS)
        );
    }
    text
}

/// Renders the agreement of the rules with people and models.
pub fn agreement(agreement: &GraderAgreement) -> String {
    let mut text = format!("{} sessions have a grade by the rules\n", agreement.sessions);
    if agreement.comparisons.is_empty() {
        text += "none of them has a second grade yet\n";
        return text;
    }
    for comparison in &agreement.comparisons {
        text += &render_comparison(comparison);
    }
    text += "\n";
    if agreement.proposals.is_empty() {
        let _ = writeln!(
            text,
            "no weights are proposed: that takes {} overrides of task_completed or of \
             response_quality",
            crate::grade::proposal::MIN_SESSIONS
        );
    }
    for proposal in &agreement.proposals {
        let _ = writeln!(
            text,
            "{} weights, {} judged sessions: mean loss {:.3} now, {:.3} for weights fitted to \
             other sessions",
            proposal.section, proposal.sessions, proposal.loss_now, proposal.loss_proposed
        );
        if proposal.changes.is_empty() {
            text += "  no change is proposed\n";
        }
    }
    let proposals = agreement.proposals.iter().filter(|proposal| !proposal.changes.is_empty());
    let mut proposals = proposals.peekable();
    if proposals.peek().is_some() {
        text += "\nproposed for config/selftest.yaml; nothing is changed by itself:\n\n\
                 grade:\n  weights:\n";
    }
    for proposal in proposals {
        let _ = writeln!(text, "    {}:", proposal.section);
        for change in &proposal.changes {
            let (weight, proposed, now) = (&change.weight, change.proposed, change.now);
            // By `Debug`, a whole number keeps its point, and is a float to YAML.
            let _ = writeln!(text, "      {weight}: {proposed:?}  # now {now:?}");
        }
    }
    text
}

fn render_comparison(comparison: &RaterComparison) -> String {
    let Proportion { count, of, rate, interval } = comparison.agreeing;
    let mut text = format!(
        "\n{} against {}: {count} of {of} the same",
        comparison.field,
        terminal(&comparison.against, 60)
    );
    if let (Some(rate), Some(interval)) = (rate, interval) {
        let _ = write!(
            text,
            " ({:.0} %, 95 % interval {:.0} to {:.0} %)",
            100.0 * rate,
            100.0 * interval.low,
            100.0 * interval.high
        );
    }
    text += &kappa_text(comparison.kappa, comparison.kappa_interval);
    let _ = writeln!(text, ", mean difference {:+.2}", comparison.mean_difference);
    for one in &comparison.disagreements {
        let reason = one.reason.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "  {:<ID_WIDTH$} {} by the rules, {} by the other: {}",
            id_cell(&one.session_id),
            one.rules,
            one.rater,
            terminal(reason, MAX_WORDS)
        );
    }
    text
}

/// Returns `, kappa 0.61 (0.40 to 0.82)`, or the part of it that is known.
fn kappa_text(kappa: Option<f64>, interval: Option<Interval>) -> String {
    let kappa = kappa.map(|kappa| format!(", kappa {kappa:.2}"));
    let interval = interval.map(|ends| format!(" ({:.2} to {:.2})", ends.low, ends.high));
    kappa.into_iter().chain(interval).collect()
}

/// Renders the differences between graders.
pub fn calibration(calibration: &GraderCalibration) -> String {
    let mut text = format!("{} sessions have a grade by the rules\n", calibration.sessions);
    if calibration.discrepancies.is_empty() {
        text += "none of them has a second grade yet\n";
        return text;
    }
    for one in &calibration.discrepancies {
        text += &render_discrepancy(one);
    }
    let exceed = calibration.discrepancies.iter().filter(|one| one.exceeds).count();
    let threshold = 100.0 * calibration.threshold;
    let _ = writeln!(
        text,
        "\n{exceed} of {} are apart by more than {threshold:.0} % of the range, beyond chance",
        calibration.discrepancies.len()
    );
    if exceed > 0 {
        text += "`selftest grade agreement` shows the sessions, and proposes weights\n";
    }
    text
}

fn render_discrepancy(one: &GraderDiscrepancy) -> String {
    let (rater, against) = (terminal(&one.rater, 60), terminal(&one.against, 60));
    let mut text = format!(
        "\n{}, {rater} against {against}: mean difference {:+.2}",
        one.field, one.mean_difference
    );
    if let Some(interval) = one.interval {
        let _ = write!(text, " (95 % interval {:+.2} to {:+.2})", interval.low, interval.high);
    }
    let Proportion { count, of, .. } = one.agreeing;
    let _ = write!(text, ", {:.0} % of the range", 100.0 * one.discrepancy);
    let _ = write!(text, "; {count} of {of} the same");
    text += &kappa_text(one.kappa, one.kappa_interval);
    text += if one.exceeds { "; out of calibration\n" } else { "\n" };
    text
}

const MODEL_WIDTH: usize = 28;

/// Renders a table with one line per grade and a heading.
pub fn quality_table(grades: &[QualityGrade]) -> String {
    let mut text = quality_heading();
    for grade in grades {
        text += &quality_line(grade);
    }
    text
}

/// Returns the heading for [`quality_line`].
pub fn quality_heading() -> String {
    format!(
        "{:>7} {:>6} {:>5} {:>5} {:>5}  {:<MODEL_WIDTH$} {:<ID_WIDTH$} {}\n",
        "OVERALL", "SOLVED", "TESTS", "CODE", "EDGES", "MODEL", "SESSION", "SUMMARY"
    )
}

/// Renders a grade as one line. `-` means that the model could not tell.
pub fn quality_line(grade: &QualityGrade) -> String {
    format!(
        "{:>7} {:>6} {:>5} {:>5} {:>5}  {:<MODEL_WIDTH$} {:<ID_WIDTH$} {}\n",
        score(grade.overall),
        score(grade.problem_solved),
        score(grade.tests_added),
        score(grade.code_clean),
        score(grade.edge_cases),
        terminal(&grade.model, MODEL_WIDTH),
        id_cell(&grade.session_id),
        terminal(grade.reasoning.as_deref().unwrap_or_default(), MAX_WORDS),
    )
}

/// Renders the grades of one session with their quotes and reasons, and the average of several
/// grades.
pub fn quality_card(grades: &[QualityGrade], combined: Option<&CombinedQuality>) -> String {
    let mut text = String::new();
    for grade in grades {
        let (model, rubric) =
            (terminal(&grade.model, MAX_WORDS), rubric_name(grade.rubric_version));
        let _ = writeln!(text, "\nby {model}, {rubric}, {}", grade.ts);
        let _ = writeln!(text, "  {:<20} {}", "overall", score(grade.overall));
        for dimension in QualityDimension::ALL {
            let given = dimension.score_of(grade);
            let _ = writeln!(text, "  {:<20} {}", dimension.name(), score(given));
            let Some(note) = dimension.note_of(grade) else { continue };
            if note.unsupported {
                let _ =
                    writeln!(text, "    the quote is not in the session: the score was dropped");
            }
            for (what, words) in [("quote", &note.evidence), ("because", &note.reasoning)] {
                if !words.is_empty() {
                    let _ = writeln!(text, "    {what:<8} {}", terminal(words, MAX_WORDS));
                }
            }
        }
        if let Some(reasoning) = &grade.reasoning {
            let _ = writeln!(text, "  summary: {}", terminal(reasoning, 2 * MAX_WORDS));
        }
    }
    // Grades by earlier rubrics are listed above, but are not in the average.
    if let Some(combined) = combined.filter(|combined| combined.models > 1) {
        let models = plural(combined.models as u64, "model");
        let _ = writeln!(text, "\naverage of {models} (spread: highest less lowest)");
        for (name, mean) in combined.rows() {
            let spread =
                mean.map_or_else(String::new, |mean| format!("  spread {:.2}", mean.spread));
            let mean = score(mean.map(|mean| mean.mean));
            let _ = writeln!(text, "  {name:<20} {mean}{spread}");
        }
    }
    text
}

fn score(score: Option<f64>) -> String {
    score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::grade::quality::combine_grades;

    #[test]
    fn an_average_is_of_the_models_by_the_latest_rubric() {
        let grade = |model: &str, rubric_version| QualityGrade {
            session_id: "s".to_owned(),
            model: model.to_owned(),
            rubric_version,
            ts: Timestamp::UNIX_EPOCH,
            problem_solved: Some(1.0),
            tests_added: Some(1.0),
            code_clean: None,
            edge_cases: None,
            overall: Some(1.0),
            reasoning: None,
            details: None,
        };
        let card = |grades: &[QualityGrade]| quality_card(grades, combine_grades(grades).as_ref());
        let of_one = card(&[grade("a", 1), grade("a", 2)]);
        assert!(!of_one.contains("average of"), "{of_one}");
        let of_two = card(&[grade("a", 1), grade("a", 2), grade("b", 2)]);
        assert!(of_two.contains("average of 2 models"), "{of_two}");
    }
}
