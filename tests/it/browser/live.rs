//! A run that goes on, watched in a browser.

use super::chrome::browse;
use super::runs::run;
use super::site::{Contents, Site};

const RUNNING: &str = "selftest-20261122-0600-aaaaab";

#[test]
fn a_run_is_watched_to_its_end() {
    let growing = |finished| run(RUNNING, "2026-11-22T06:00:12Z", finished, &[2]);
    let site = Site::with(Contents { runs: vec![growing(1)], ..Contents::default() });
    browse(async |chrome| {
        chrome.open(&site.at(&format!("/selftests/{RUNNING}"))).await;
        assert_eq!(chrome.texts("#cases tbody tr").await.len(), 1);
        assert!(chrome.text("#said").await.starts_with("not finished: 1 of 8 cases"));
        for finished in [2, 4, 7] {
            site.report(&growing(finished));
            chrome
                .until(&format!(
                    "document.querySelector('.finished').textContent === '{finished}' \
                     && document.querySelectorAll('#cases tbody tr').length === {finished}"
                ))
                .await;
        }
        site.report(&growing(8));
        chrome
            .until("document.querySelector('#said').textContent.startsWith('failed: 8 of 8')")
            .await;
        assert_eq!(chrome.text("#progress .badge").await, "failed");
        let cases = chrome.texts("#cases tbody th a").await;
        assert_eq!(cases[..3], ["contradiction_detect", "three_line_summary", "ambiguous_request"]);
        assert_eq!(cases.len(), 8, "those that did not pass come first");
        assert_eq!(chrome.texts("#cases .badge").await[0], "FAIL");
    });
}

#[test]
fn events_say_it_without_a_browser() {
    let finished = run(RUNNING, "2026-11-22T06:00:12Z", 8, &[]);
    let site = Site::with(Contents { runs: vec![finished], ..Contents::default() });
    let (status, events) = site.get(&format!("/live/runs/{RUNNING}"));
    assert_eq!(status, 200);
    let kinds: Vec<&str> = events.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(kinds.len(), 11, "{events}");
    assert_eq!((kinds[0], kinds[1], kinds[9], kinds[10]), ("progress", "case", "said", "end"));
}
