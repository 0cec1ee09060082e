//! Renders a success estimate as text: its quality, then the sessions that look doubtful.

use std::fmt::Write as _;

use crate::grade::estimate::{FittedEstimate, SuccessEstimate};
use crate::grade::outcome_table::OutcomeTable;
use crate::report::outcomes::render_outcomes;
use selftest_text::one_line;

/// Renders the estimate for a project, followed by the least probable sessions as (ID, title,
/// probability).
pub fn render_estimate(
    project: Option<&str>,
    estimate: &SuccessEstimate,
    seen: &OutcomeTable,
    doubtful: &[(&str, &str, f64)],
) -> String {
    let mut text = match project {
        Some(project) => format!("{}\n", one_line(project, 200)),
        None => "sessions without a project\n".to_owned(),
    };
    match estimate {
        SuccessEstimate::NotEnoughLabels { labels, successes, needed, needed_of_each } => {
            let failures = labels - successes;
            let _ = writeln!(text, "  not enough labels ({labels} of {needed})");
            if *labels >= *needed {
                let _ = writeln!(
                    text,
                    "  {successes} of success and {failures} of failure, {needed_of_each} of either \
                     are needed, of several tasks"
                );
            }
        }
        SuccessEstimate::Fitted(fit) => render_fit(&mut text, fit),
    }
    text += &render_outcomes(seen);
    if !doubtful.is_empty() {
        text += "  least probable successes without a label:\n";
    }
    for (session, title, probability) in doubtful {
        let _ = writeln!(
            text,
            "    {:>3.0} %  {}  {}",
            probability * 100.0,
            one_line(session, 40),
            one_line(title, 60)
        );
    }
    text
}

fn render_fit(text: &mut String, fit: &FittedEstimate) {
    let FittedEstimate { labels, successes, tasks, auc, brier, brier_of_share, .. } = fit;
    let _ = writeln!(text, "  {labels} labels of {tasks} tasks, {successes} of success");
    let interval = fit.auc_interval.map(|it| format!(" [{:.2}, {:.2}]", it.low, it.high));
    let _ = writeln!(
        text,
        "  AUC {auc:.2}{} on tasks that were held out; Brier score {brier:.3}, {brier_of_share:.3} \
         by the share of successes alone",
        interval.unwrap_or_default()
    );
    if !fit.is_useful() {
        *text += "  no better than chance on these labels: nothing is said of single sessions\n";
    }
    *text += "  estimated   observed   sessions\n";
    for bin in &fit.calibration {
        let _ = writeln!(
            text,
            "  {:>7.0} %  {:>7.0} % [{:.0}, {:.0}]   {}",
            bin.forecast * 100.0,
            bin.observed * 100.0,
            bin.interval.low * 100.0,
            bin.interval.high * 100.0,
            bin.count
        );
    }
}
