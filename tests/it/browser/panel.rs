//! The panel of a session in a browser.

use super::chrome::browse;
use super::demo::{self, GRADED, SCRIPT, SCRIPT_ID};
use super::site::Site;

#[test]
fn scores_quotes_and_rules_stand_side_by_side() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at(&format!("/?q={}", &GRADED[..13]))).await;
        chrome.click(".sessions tbody tr td.time").await;
        chrome.until("document.querySelector('dialog[open] .dimension')").await;
        let names = chrome.texts("dialog .dimension h3").await;
        assert_eq!(names.len(), 4, "{names:?}");
        assert!(names[0].starts_with("Problem solved"), "{names:?}");
        let score: f64 = chrome.text("dialog .dimension .score").await.parse().unwrap();
        assert!((0.0..=1.0).contains(&score));
        let quote = chrome.text("dialog blockquote").await;
        assert!(quote.contains("import_skips_empty_lines ... ok"), "{quote}");
        assert!(chrome.text("dialog .unsupported").await.starts_with("unsupported"));
        let models = chrome.texts("dialog .sides .small tbody th").await;
        assert_eq!(models[..2], ["gpt-oss:20b", "qwen2.5-coder:7b"]);
        let rules = chrome.text("dialog .grades").await;
        assert!(rules.contains("Task completed") && rules.contains("by a person"), "{rules}");
        let evidence = chrome.texts("dialog .evidence").await;
        assert!(evidence.iter().any(|list| list.contains("says done")), "{evidence:?}");
        assert_eq!(chrome.run("return location.pathname", Vec::new()).await, "/");
    });
}

#[test]
fn a_script_is_text() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at("/?q=script")).await;
        assert_eq!(chrome.text(".sessions tbody th > a").await, SCRIPT);
        chrome.click(".sessions tbody th > a").await;
        chrome.shows("dialog[open] h1", SCRIPT).await;
        assert_eq!(chrome.texts("dialog h1").await, [SCRIPT]);
        assert_eq!(chrome.text("dialog .id code").await, SCRIPT_ID);
        // On a page of its own too, and an open alert would have failed each of these.
        chrome.click("dialog .whole").await;
        chrome.until("location.pathname.startsWith('/sessions/agent%2Frun')").await;
        assert_eq!(chrome.text("main h1").await, SCRIPT);
        let scripts = chrome.run("return document.scripts.length", Vec::new()).await;
        assert_eq!(scripts, 1);
    });
}

/// A reload or a bookmark opens it again, and going back closes it.
#[test]
fn the_panel_has_an_address() {
    let site = Site::with(demo::contents());
    let is_open = "document.querySelector('#panel:modal .panel-body h1')";
    let is_closed = "!document.querySelector('#panel').open";
    browse(async |chrome| {
        chrome.open(&site.at("/?q=script")).await;
        chrome.click(".sessions tbody td.time").await;
        chrome.until(is_open).await;
        let address = chrome.run("return location.pathname + location.search", Vec::new()).await;
        let encoded = "session=agent%2Frun+7%3Fx%3D%3Cb%3E%26y%23z";
        assert_eq!(address, format!("/?q=script&{encoded}"));
        chrome.run("location.reload()", Vec::new()).await;
        chrome.until(is_open).await;
        assert!(chrome.text("dialog .id").await.starts_with(SCRIPT_ID));
        chrome.run("history.back()", Vec::new()).await;
        chrome.until(is_closed).await;
        chrome.until("location.search === '?q=script'").await;
        chrome.run("history.forward()", Vec::new()).await;
        chrome.until(is_open).await;
        // Closing leaves its address too.
        chrome.click("dialog .close").await;
        chrome.until(is_closed).await;
        chrome.until("location.search === '?q=script'").await;
        // Opened by its address, it is closed to the list.
        chrome.open(&site.at(&format!("/sessions?{encoded}"))).await;
        chrome.until(is_open).await;
        chrome.click("dialog .close").await;
        chrome.until("location.pathname === '/sessions' && location.search === ''").await;
        assert_eq!(chrome.texts(".sessions tbody tr").await.len(), 100);
    });
}
