//! Renders scores of reflections for a terminal, and their weekly mean as an SVG without scripts or
//! external references. Texts inside them are untrusted.

use std::fmt::Write as _;

use askama::Template;

use super::{GridLine, PlotSeries, WeekLabel};
use crate::grade::reflection::{
    AdaptiveThreshold, MIN_SCORES, ProjectReflections, ReflectionIssue, ReflectionScore,
    ReflectionScores, ReflectionSettings, ReflectionWeek, ThresholdProposal,
};
use selftest_stats::plot::{PlotScale, RIGHT, column, number};
use selftest_stats::score::Threshold;
use selftest_text::escape::terminal;
use selftest_text::wording::{date, plural};

const PROJECT_WIDTH: usize = 24;
const AGENT_WIDTH: usize = 14;
const ID_WIDTH: usize = 36;
const MAX_WORDS: usize = 240;

/// Placeholder for a missing value.
const MISSING: &str = "-";

/// Renders one line per score, followed by its issues.
pub fn cards(scores: &[ReflectionScore]) -> String {
    let mut text = heading();
    for score in scores {
        text += &line(score);
        for issue in &score.issues {
            let (cost, code) = (cost(issue), issue.code.name());
            let _ = writeln!(text, "  {cost:>5} {code}: {}", terminal(&issue.text, MAX_WORDS));
        }
    }
    text
}

/// Formats the deduction of an issue as `-0.20`, or `0.00`.
pub fn cost(issue: &ReflectionIssue) -> String {
    let sign = if issue.deduction > 0.0 { "-" } else { "" };
    format!("{sign}{:.2}", issue.deduction)
}

/// Renders the scores of a project, one per line, and their average.
pub fn scores(found: &ReflectionScores) -> String {
    let mut text = heading();
    for score in &found.reflection_scores {
        text += &line(score);
    }
    if let Some(average) = found.average_score {
        let count = plural(found.count, "reflection");
        let _ = writeln!(text, "\n{count}, average score {average:.2}");
    }
    text
}

fn heading() -> String {
    format!(
        "{:>5} {:<4} {:>5}  {:<AGENT_WIDTH$} {:<10} {:<PROJECT_WIDTH$} {:<ID_WIDTH$} ISSUES\n",
        "SCORE", "WEAK", "LOOP", "AGENT", "DATE", "PROJECT", "REFLECTION"
    )
}

fn line(score: &ReflectionScore) -> String {
    format!(
        "{:>5.2} {:<4} {:>5}  {:<AGENT_WIDTH$} {:<10} {:<PROJECT_WIDTH$} {:<ID_WIDTH$} {}\n",
        score.score,
        if score.weak { "weak" } else { "" },
        score.loop_count,
        terminal(score.agent.as_deref().unwrap_or(MISSING), AGENT_WIDTH),
        date(score.made_at),
        terminal(&score.project_id, PROJECT_WIDTH),
        terminal(&score.reflection_id, ID_WIDTH),
        score.issues.len(),
    )
}

/// Renders the projects with reflections, one per line.
pub fn projects(projects: &[ProjectReflections]) -> String {
    let mut text =
        format!("{:>11} {:>7} {:>5}  {:<10} PROJECT\n", "REFLECTIONS", "AVERAGE", "WEAK", "NEWEST");
    for project in projects {
        let _ = writeln!(
            text,
            "{:>11} {:>7.2} {:>5}  {:<10} {}",
            project.count,
            project.average_score,
            project.weak,
            date(project.newest),
            terminal(&project.project_id, MAX_WORDS),
        );
    }
    text
}

/// Renders the trend, one line per week.
pub fn trend_table(weeks: &[ReflectionWeek]) -> String {
    let mut text =
        format!("{:<8} {:>11} {:>5} {:>5}  95 % INTERVAL\n", "WEEK", "REFLECTIONS", "WEAK", "MEAN");
    for week in weeks {
        let [mean, interval] = numbers(week);
        let name = week.week.to_string();
        let _ =
            writeln!(text, "{name:<8} {:>11} {:>5} {mean:>5}  {interval}", week.count, week.weak);
    }
    text
}

/// Formats the mean and interval of a week.
pub fn numbers(week: &ReflectionWeek) -> [String; 2] {
    let mean = week.mean.map(|mean| format!("{mean:.2}"));
    let interval = week.interval.map(|ends| format!("{:.2} to {:.2}", ends.low, ends.high));
    [mean, interval].map(|text| text.unwrap_or_else(|| MISSING.to_owned()))
}

/// Describes the threshold proposed from past scores and the one in force.
pub fn proposal(proposal: Option<&ThresholdProposal>, settings: &ReflectionSettings) -> String {
    let configured = settings.weak_threshold;
    let Some(ThresholdProposal { threshold, interval, scores }) = proposal else {
        return format!(
            "No threshold is proposed: that takes {MIN_SCORES} scores of the project. In force \
             is {configured}."
        );
    };
    let in_force = match settings.adaptive {
        AdaptiveThreshold::Propose => {
            format!("In force is {configured}, because grade.reflection.adaptive is propose.")
        }
        AdaptiveThreshold::Apply if threshold > &configured => "It is in force.".to_owned(),
        AdaptiveThreshold::Apply => {
            format!("In force is {configured}: a proposal does not lower it.")
        }
    };
    format!(
        "Proposed threshold: {threshold}, 95 % interval {:.2} to {:.2}, below which lie at most \
         10 % of the last {}. {in_force}",
        interval.low,
        interval.high,
        plural(*scores as u64, "score"),
    )
}

/// Plot area within the 720 × 280 picture.
const SCORES: PlotScale = PlotScale { top: 44.0, bottom: 244.0, low: 0.0, high: 1.0 };

// Numbers are already formatted and week names are generated, so no field is untrusted.
#[derive(Template)]
#[template(path = "reflections/trend.svg")]
struct ReflectionTrendPicture {
    description: String,
    grid: [GridLine; 5],
    threshold: GridLine,
    whiskers: Vec<String>,
    means: PlotSeries,
    weeks: Vec<WeekLabel>,
}

/// Renders a trend together with the configured threshold.
pub fn trend_picture(
    weeks: &[ReflectionWeek],
    threshold: Threshold,
) -> Result<String, askama::Error> {
    let whiskers = weeks.iter().enumerate().filter_map(|(position, week)| {
        week.mean?;
        Some(SCORES.whisker(column(position, weeks.len()), week.interval?))
    });
    let picture = ReflectionTrendPicture {
        description: description(weeks),
        grid: [0.0, 0.25, 0.5, 0.75, 1.0]
            .map(|score| GridLine::at(SCORES, score, format!("{score:.2}"))),
        threshold: GridLine::at(SCORES, threshold.get(), format!("weak below {threshold}")),
        whiskers: whiskers.collect(),
        means: PlotSeries::new(SCORES, weeks.iter().map(|week| Some((week.mean?, title(week))))),
        weeks: labels(weeks),
    };
    picture.render().map(|text| format!("{}\n", text.trim_end()))
}

fn title(week: &ReflectionWeek) -> String {
    let [mean, interval] = numbers(week);
    let interval = week.interval.map(|_| format!(" ({interval})")).unwrap_or_default();
    format!("{}: {mean}{interval}, {} of {} weak", week.week, week.weak, week.count)
}

/// Returns week labels at even distances, always including the latest week, with enough space to be
/// legible.
fn labels(weeks: &[ReflectionWeek]) -> Vec<WeekLabel> {
    // In pixels: width of a label and width of the plot.
    const MAX_NAME: usize = 72;
    const PLOT: usize = 644;
    let step = (weeks.len() * MAX_NAME).div_ceil(PLOT).max(1);
    // From the newest week back, so that it has a label whatever is left out.
    let positions = (0..weeks.len()).rev().step_by(step);
    let labels = positions.map(|position| WeekLabel {
        // The last column may be narrower than half a label.
        x: number(column(position, weeks.len()).min(RIGHT - 12.0)),
        label: weeks[position].week.to_string(),
    });
    labels.collect()
}

fn description(weeks: &[ReflectionWeek]) -> String {
    let told: Vec<String> = weeks
        .iter()
        .filter(|week| week.count > 0)
        .map(|week| format!("{}.", title(week)))
        .collect();
    if told.is_empty() { "No reflections yet.".to_owned() } else { told.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::reflection::{IssueCode, TimedScore, trend};
    use selftest_stats::Interval;
    use selftest_stats::score::Threshold;

    fn score(number: u64, issues: Vec<ReflectionIssue>) -> ReflectionScore {
        let lost: f64 = issues.iter().map(|issue| issue.deduction).sum();
        ReflectionScore {
            project_id: "shop".to_owned(),
            reflection_id: format!("r{number}"),
            agent: (number > 1).then(|| "CRITIC\u{1b}[31m".to_owned()),
            loop_count: number,
            score: 1.0 - lost,
            threshold: 0.6,
            weak: 1.0 - lost < 0.6,
            issues,
            timestamp: "2026-11-20T10:00:00Z".parse().unwrap(),
            made_at: "2026-11-19T10:00:00Z".parse().unwrap(),
        }
    }

    fn weeks() -> Vec<ReflectionWeek> {
        let days = ["2026-11-02", "2026-11-03", "2026-11-17", "2026-11-04"];
        let scored = days.iter().zip([0.5, 0.9, 0.8, 0.7]).map(|(day, score)| TimedScore {
            made_at: format!("{day}T10:00:00Z").parse().unwrap(),
            score,
            weak: score < 0.6,
        });
        trend(&scored.collect::<Vec<_>>())
    }

    #[test]
    fn for_a_terminal() {
        let issues = vec![
            ReflectionIssue::new(IssueCode::SchemaMismatch, "not of the\nexpected \u{202e}schema"),
            ReflectionIssue::new(IssueCode::LowConfidence, "the confidence is 0.3, below 0.6"),
            ReflectionIssue::new(
                IssueCode::GoalMissing,
                "there is no goal to compare the summary with",
            ),
        ];
        let scores_of = vec![score(2, issues), score(1, Vec::new())];
        insta::assert_snapshot!("cards", cards(&scores_of));
        let found = ReflectionScores {
            project_id: "shop".to_owned(),
            reflection_scores: scores_of,
            count: 2,
            average_score: Some(0.75),
            next: None,
        };
        insta::assert_snapshot!("scores", scores(&found));
        insta::assert_snapshot!("trend_table", trend_table(&weeks()));
    }

    #[test]
    fn proposals_in_words() {
        let threshold = |value| Threshold::new(value).unwrap();
        let of = |value| ThresholdProposal {
            threshold: threshold(value),
            interval: Interval { low: 0.6, high: 0.9 },
            scores: 40,
        };
        let propose = ReflectionSettings::default();
        let apply = ReflectionSettings {
            adaptive: AdaptiveThreshold::Apply,
            ..ReflectionSettings::default()
        };
        let words = [
            proposal(None, &propose),
            proposal(Some(&of(0.75)), &propose),
            proposal(Some(&of(0.75)), &apply),
            proposal(Some(&of(0.45)), &apply),
        ];
        insta::assert_snapshot!("proposals", words.join("\n"));
    }

    #[test]
    fn picture() {
        insta::assert_snapshot!("trend_picture", trend_picture(&weeks(), threshold()).unwrap());
        let nothing = trend_picture(&[], threshold()).unwrap();
        assert!(nothing.contains("No reflections yet."), "{nothing}");
        for forbidden in ["<script", "href", "url(", "<image", "<foreignObject", "@import"] {
            assert!(!nothing.contains(forbidden), "{forbidden}");
        }
    }

    fn threshold() -> Threshold {
        Threshold::new(0.6).unwrap()
    }
}
