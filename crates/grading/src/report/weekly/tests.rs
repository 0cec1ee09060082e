//! Pages, pictures and summaries from records made by hand.

use std::fs;

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::{coverage_text, errors_picture, index, render, summary_text, trend_picture, write};
use crate::grade::fixture::{hostile, two_months};
use crate::grade::{
    AlertSettings, GradePatterns, GradeRecord, GradeSummary, ReportRules, ScanCoverage,
    SuggestionRules, WeeklyReport,
};
use selftest_models::prices::ModelPrices;

const COVERAGE: ScanCoverage = ScanCoverage {
    scanned: true,
    found: 412,
    read: 398,
    graded: 377,
    not_gradable: 9,
    unchanged: 11,
    unreadable: 3,
    no_session: 8,
    duplicate: 4,
    left_out: 0,
    stored: 401,
    undated: 0,
};

fn report(week: &str, records: &[GradeRecord]) -> WeeklyReport {
    WeeklyReport::build(
        week.parse().unwrap(),
        records,
        COVERAGE,
        ReportRules {
            suggestions: &SuggestionRules::default(),
            alerts: &AlertSettings::default(),
            prices: &ModelPrices::default(),
        },
        "2026-11-23T06:00:00Z".parse().unwrap(),
    )
}

fn rich() -> WeeklyReport {
    report("2026-W47", &two_months())
}

#[test]
fn pages() {
    insta::assert_snapshot!("page_rich", render(&rich()).unwrap());
    insta::assert_snapshot!("page_nothing_graded", render(&report("2026-W47", &[])).unwrap());
    insta::assert_snapshot!("page_hostile", render(&report("2026-W47", &hostile())).unwrap());
}

#[test]
fn a_report_of_one_agent_names_it_and_shows_no_files() {
    let one = WeeklyReport { agent: Some("co*dex".to_owned()), ..rich() };
    let text = render(&one).unwrap();
    assert!(text.contains("\nOnly sessions of co\\*dex. 12 tasks of this week"), "{text}");
    assert!(!text.contains("svg"), "{text}");
    let none = WeeklyReport { agent: one.agent, ..report("2026-W47", &[]) };
    assert!(render(&none).unwrap().contains("Only sessions of co\\*dex. No task was graded"));
}

#[test]
fn pictures() {
    insta::assert_snapshot!("trend", trend_picture(&rich()).unwrap());
    insta::assert_snapshot!("errors", errors_picture(&rich()).unwrap());
}

#[test]
fn indexes() {
    let records = two_months();
    let reports = ["2026-W47", "2026-W46", "2026-W45"].map(|week| report(week, &records));
    let newest_first: Vec<(&WeeklyReport, bool)> =
        reports.iter().map(|report| (report, report.week.to_string() != "2026-W45")).collect();
    insta::assert_snapshot!("index", index(&newest_first).unwrap());
    insta::assert_snapshot!("index_empty", index(&[]).unwrap());
}

#[test]
fn summaries() {
    let text = |records: &[GradeRecord]| {
        summary_text(
            30,
            &GradeSummary::from_records(records),
            &GradePatterns::from_records(records),
        )
    };
    insta::assert_snapshot!("summary", text(&two_months()));
    assert_eq!(text(&[]), "0 sessions graded in the last 30 days\n");
    let steered = text(&hostile());
    assert!(!steered.chars().any(|c| c.is_control() && c != '\n'), "{steered:?}");
}

#[test]
fn coverage_is_always_said() {
    let none = ScanCoverage { scanned: true, ..ScanCoverage::default() };
    assert_eq!(
        coverage_text(&none),
        "0 files found, 0 read, 0 sessions graded, 0 skipped. The database holds 0 graded sessions."
    );
    let one = ScanCoverage { found: 1, read: 1, no_session: 1, stored: 1, ..none };
    assert_eq!(
        coverage_text(&one),
        "1 file found, 1 read, 0 sessions graded, 1 skipped: 1 without a session. The database \
         holds 1 graded session."
    );
    let recent = ScanCoverage { found: 9, unchanged: 3, read: 2, graded: 2, left_out: 4, ..none };
    assert_eq!(
        coverage_text(&recent),
        "9 files found (3 of them unchanged since the last scan), 2 read, 2 sessions graded, 0 \
         skipped; 4 left out: too old, of another agent or still being written. The database holds 0 graded sessions."
    );
    let without = ScanCoverage { scanned: false, graded: 7, ..one };
    assert_eq!(
        coverage_text(&without),
        "No scan was made for this report. The database holds 7 graded sessions, and knows 1 \
         file, some of which may be gone by now; 1 skipped: 1 without a session."
    );
}

#[test]
fn hostile_names_change_nothing_in_the_structure() {
    let text = render(&report("2026-W47", &hostile())).unwrap();
    let mut pictures = 0;
    let mut headings = 0;
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        match event {
            Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::Link { .. }) => {
                panic!("{event:?}")
            }
            Event::Start(Tag::Image { .. }) => pictures += 1,
            Event::Start(Tag::Heading { .. }) => headings += 1,
            _ => {}
        }
    }
    assert_eq!((pictures, headings), (2, 8), "{text}");
    assert!(text.lines().all(|line| line.len() < 2000));
    let svg = errors_picture(&report("2026-W47", &hostile())).unwrap();
    for forbidden in ["<script", "<svg onload", "href", "url(", "]]>", "\u{1b}", "\u{202e}"] {
        assert!(!svg.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn the_files_of_a_week() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("docs/reports/weekly");
    let records = two_months();
    let (older, newer) = (report("2026-W46", &records), report("2026-W47", &records));
    write(&folder, &older, &[]).unwrap();
    let paths = write(&folder, &newer, &[older.clone(), newer.clone()]).unwrap();
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "2026-W46-errors.svg",
            "2026-W46-trend.svg",
            "2026-W46.md",
            "2026-W47-errors.svg",
            "2026-W47-trend.svg",
            "2026-W47.md",
            "index.md"
        ]
    );
    assert_eq!(fs::read_to_string(&paths.page).unwrap(), render(&newer).unwrap());
    let index = fs::read_to_string(&paths.index).unwrap();
    assert_eq!(index.matches("| [2026-W").count(), 2, "{index}");
    let blocked = root.path().join("blocked");
    fs::write(&blocked, "").unwrap();
    let error = write(&blocked, &newer, &[]).unwrap_err().to_string();
    assert!(error.contains("blocked as a folder for weekly reports"), "{error}");
}
