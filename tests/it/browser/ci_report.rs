//! The HTML report of a run, opened as a file: hostile text, filter, sorting, both colour schemes.

use std::path::Path;

use serde_json::{Value, json};

use super::chrome::{Chrome, browse};
use super::every_page::{FAINT, NAMELESS};
use super::runs;
use selftest_reports::ci::{self, CaseSources, RenderContext, ReportFileKind};
use selftest_reports::document::ReportDocument;

/// Texts that try to become more than text.
const HOSTILE: &str = "</pre></details><script>document.title = 'broken'</script>\
    <img src=x onerror=\"document.title='broken'\"> <style>body { display: none }</style>\u{202e}";

/// A run of eight cases, of which two fail and one has no verdict.
fn document() -> ReportDocument {
    let mut document = runs::run(runs::RUN, "2026-11-21T06:00:12Z", 8, &[2, 5]);
    let failed = &mut document.cases[2];
    HOSTILE.clone_into(&mut failed.steps[0].reply.as_mut().unwrap().output);
    failed.prompt = Some(HOSTILE.to_owned());
    let open = serde_json::to_value(&document.cases[6]).unwrap();
    let mut open: Value = open;
    open["interruption"] = json!({ "kind": "answer_cut", "detail": "the answer is too long" });
    document.cases[6] = serde_json::from_value(open).unwrap();
    document
}

fn page(document: &ReportDocument, folder: &Path) -> String {
    let context = RenderContext { sources: &CaseSources::default(), json_link: "report.json" };
    let text = ci::render(ReportFileKind::Html, document, context).unwrap();
    let file = folder.join("report.html");
    std::fs::write(&file, text).unwrap();
    format!("file://{}", file.display())
}

/// The names of the cases that are seen, in order.
async fn names(chrome: &Chrome) -> Vec<String> {
    chrome.texts("#cases > details:not([hidden]) .name").await
}

#[test]
fn the_report_is_one_file_that_filters_and_sorts() {
    let folder = tempfile::tempdir().unwrap();
    let address = page(&document(), folder.path());
    browse(async |chrome| {
        chrome.open(&address).await;
        chrome.until("!document.querySelector('.filters').hidden").await;
        assert!(chrome.window.title().await.unwrap().starts_with("Selftest failed: "));
        let all = names(chrome).await;
        assert_eq!(all[..3], ["contradiction_detect", "docs_reorganization", "unit_conversion"]);
        assert_eq!(all.len(), 8, "those that did not pass come first");

        chrome.click("input[name=kind][value=failed]").await;
        assert_eq!(names(chrome).await, ["contradiction_detect", "docs_reorganization"]);
        chrome.shows("#shown", "2 cases").await;
        chrome.click("input[name=kind][value='']").await;
        chrome.click("#words").await;
        chrome.press("PRIME numbers").await;
        chrome.shows("#shown", "1 case").await;
        assert_eq!(names(chrome).await, ["json_only"]);
        chrome.run("const it = document.getElementById('words'); it.value = ''; it.form.dispatchEvent(new Event('input'))", vec![]).await;

        chrome.click("#sorting [data-by=s]").await;
        let scores = async || -> Vec<f64> {
            let shown = chrome.texts("#cases .row > :nth-child(3)").await;
            shown.iter().filter_map(|score| score.parse().ok()).collect()
        };
        let rising = scores().await;
        assert!(rising.is_sorted() && rising.len() == 7, "{rising:?}");
        assert_eq!(names(chrome).await[7], "unit_conversion", "without a score it comes last");
        chrome.click("#sorting [data-by=s]").await;
        assert!(scores().await.is_sorted_by(|a, b| a >= b));
        assert_eq!(names(chrome).await[7], "unit_conversion");

        chrome.click("#fold").await;
        chrome.until("document.querySelectorAll('#cases > details[open]').length === 8").await;
        let shown = chrome.texts("#case-3 pre").await;
        assert!(shown[0].starts_with("</pre></details><script>"), "{shown:?}");
        assert!(!shown.concat().contains('\u{202e}'));
        assert_eq!(chrome.run("return document.images.length", vec![]).await, json!(0));

        for dark in [false, true] {
            if dark {
                chrome.dark().await;
                let ground = "return getComputedStyle(document.body).backgroundColor";
                assert_eq!(chrome.run(ground, vec![]).await, "rgb(15, 18, 21)");
            }
            assert_eq!(chrome.run(FAINT, vec![]).await, json!([]), "dark: {dark}");
        }
        assert_eq!(chrome.run(NAMELESS, vec![]).await, json!([]));
        let wide = "return document.documentElement.scrollWidth > innerWidth";
        for width in [1280, 360] {
            let size =
                json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
            chrome.tool("Emulation.setDeviceMetricsOverride", size).await;
            assert_eq!(chrome.run(wide, vec![]).await, json!(false), "{width}");
        }
    });
}

/// The same run beside a baseline, in which one case is worse, one better, one new and one flaky, and
/// which has a case that is no more.
pub(super) fn compared() -> ReportDocument {
    let mut document = document();
    let id = |at: usize| document.cases[at].id.clone();
    let case = |at: usize, change: &str, reason: Option<&str>| {
        json!({
            "id": id(at), "change": change, "reason": reason, "passed": 0, "decided": 3,
            "score_before": 0.9, "score": 0.45,
        })
    };
    let gate = json!({
        "mode": "no_regression", "baseline": "config/selftest-baseline.json",
        "baseline_run_id": "selftest-20261120-0600-before", "compared": 6, "passed_before": 6,
        "trials_needed": 3, "beyond_chance": false, "removed": [HOSTILE],
        "cases": [
            case(2, "regression", Some(HOSTILE)), case(5, "flaky", Some("it failed at first")),
            case(1, "fixed", None), case(0, "new", None),
        ],
    });
    document.gate = Some(serde_json::from_value(gate).unwrap());
    document
}

#[test]
fn the_report_says_how_cases_stand_against_the_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let address = page(&compared(), folder.path());
    browse(async |chrome| {
        chrome.open(&address).await;
        chrome.until("!document.querySelector('.filters').hidden").await;
        let group = async |value: &str| {
            chrome.click(&format!("input[name=group][value='{value}']")).await;
            chrome.texts("#cases > details:not([hidden]) .against").await
        };
        assert_eq!(group("regression").await, ["REGRESSION"]);
        assert_eq!(group("flaky").await, ["FLAKY"]);
        assert_eq!(group("fixed").await, ["FIXED"]);
        assert_eq!(group("new").await, ["NEW"]);
        assert_eq!(group("same").await.len(), 4, "what the gate does not name");
        assert_eq!(group("removed").await, ["REMOVED"]);
        let removed = names(chrome).await;
        assert!(removed[0].starts_with("</pre></details><script>"), "{removed:?}");
        assert_eq!(group("").await.len(), 9);
        // Both filters hold at once.
        chrome.click("input[name=kind][value=failed]").await;
        assert_eq!(group("regression").await.len(), 1);
        assert_eq!(group("flaky").await.len(), 1);
        assert_eq!(group("same").await.len(), 0);
        chrome.click("input[name=kind][value='']").await;
        let _ = group("").await;
        chrome.click("#sorting [data-by=a]").await;
        let shown = chrome.texts("#cases .against").await;
        assert_eq!(shown[..5], ["REGRESSION", "FLAKY", "FIXED", "NEW", "REMOVED"]);
        chrome.click("#case-3 > summary").await;
        let words = chrome
            .shows("#case-3", "compared with the baseline: REGRESSION, score 0.90 then")
            .await;
        assert!(words.contains("0 of 3 trials passed"), "{words}");
        for dark in [false, true] {
            if dark {
                chrome.dark().await;
            }
            assert_eq!(chrome.run(FAINT, vec![]).await, json!([]), "dark: {dark}");
        }
        assert_eq!(chrome.run(NAMELESS, vec![]).await, json!([]));
        let wide = "return document.documentElement.scrollWidth > innerWidth";
        for width in [1280, 360] {
            let size =
                json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
            chrome.tool("Emulation.setDeviceMetricsOverride", size).await;
            assert_eq!(chrome.run(wide, vec![]).await, json!(false), "{width}");
        }
    });
}

#[test]
fn the_report_is_readable_without_its_script() {
    let folder = tempfile::tempdir().unwrap();
    let address = page(&document(), folder.path());
    browse(async |chrome| {
        let off = json!({ "value": true });
        chrome.tool("Emulation.setScriptExecutionDisabled", off).await;
        chrome.window.goto(&address).await.unwrap();
        chrome.click("#case-3 > summary").await;
        let shown = chrome.shows("#case-3", "Answer (AWAITING_RESPONSE").await;
        assert!(shown.contains("below threshold 0.74"), "{shown}");
    });
}
