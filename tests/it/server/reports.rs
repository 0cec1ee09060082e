//! Weekly reports and patterns.

use serde_json::json;

use super::site::{Site, graded};

#[test]
fn a_weekly_report_is_listed_and_shown() {
    let workspace = graded();
    let _ = workspace.clone().grade(&["weekly", "--week", "2026-W47"]).run().exit(0);
    let site = Site::start(workspace);
    let list = site.get("/api/reports/weekly").json();
    let entry = &list["items"][0];
    assert_eq!(entry["week"], "2026-W47");
    assert_eq!(
        (&entry["week_start"], &entry["week_end"]),
        (&json!("2026-11-16"), &json!("2026-11-22"))
    );
    let report = site.get("/api/reports/weekly/2026-W47").json();
    assert_eq!(report["summary"]["sessions"], 4);
    for week in ["2026-W46", "2026-W99", "2026-11-16", "x"] {
        site.get(&format!("/api/reports/weekly/{week}")).problem(404);
    }
    let stored = "UPDATE weekly_reports SET report_json = '{\"secret\": 1}'";
    site.workspace.sql(stored);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let detail = site.get("/api/reports/weekly/2026-W47").problem(500);
    assert!(!detail.contains("secret"), "{detail}");
}

#[test]
fn patterns_of_the_last_days() {
    let site = Site::start(graded());
    let patterns = site.get("/api/patterns?days=3650").json();
    assert_eq!(patterns["sessions"], 4);
    assert_eq!(patterns["tools"]["items"][0]["tool"], "Bash");
    for query in ["days=0", "days=3651", "days=x", "days=-1", "day=1", "days=1&days=2"] {
        let detail = site.get(&format!("/api/patterns?{query}")).problem(400);
        assert!(detail.contains("day"), "{detail}");
    }
}
