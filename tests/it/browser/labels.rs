//! Answers labelled in a browser: by keys, by buttons, and by two people at once.

use serde_json::{Value, json};

use super::chrome::{Chrome, browse};
use super::demo;
use super::runs::RUN;
use super::site::Site;

fn address() -> String {
    format!("/label/{RUN}")
}

/// The labels that are kept, in the order in which they were given.
fn kept(site: &Site) -> Vec<String> {
    let file = site.path(&format!("reports/selftest/labels/{RUN}.json"));
    let Ok(text) = std::fs::read_to_string(file) else { return Vec::new() };
    let labels: Value = serde_json::from_str(&text).unwrap();
    let labels = labels["labels"].as_array().unwrap().iter();
    labels.map(|label| label["label"].as_str().unwrap().to_owned()).collect()
}

/// Presses a key on a page that is on the screen. The key leads to another page at once, on which
/// the driver's own command for keys presses it a second time; the developer tools do not.
async fn press(chrome: &Chrome, key: &str) {
    chrome.painted("document.querySelector('form[data-keys]')").await;
    for event in ["keyDown", "keyUp"] {
        let event = json!({ "type": event, "key": key, "text": key });
        chrome.tool("Input.dispatchKeyEvent", event).await;
    }
}

#[test]
fn answers_are_labelled_by_keys() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at(&format!("/selftests/{RUN}"))).await;
        chrome.click("a[href^='/label/']").await;
        chrome.shows("#labelled", "0 of 8 labelled").await;
        let shown = chrome.text("main").await;
        for verdict in ["PASS", "FAIL", "threshold", "Does what was asked", "leaves out what"] {
            assert!(!shown.contains(verdict), "{verdict} in {shown}");
        }
        assert!(shown.contains("A good answer keeps to the form"), "{shown}");
        let first = chrome.text("main h2").await;
        press(chrome, "p").await;
        chrome.shows("#labelled", "1 of 8 labelled").await;
        let skipped = chrome.text("main h2").await;
        press(chrome, "s").await;
        chrome
            .until(&format!("document.querySelector('main h2').textContent !== '{skipped}'"))
            .await;
        press(chrome, "f").await;
        chrome.shows("#labelled", "2 of 8 labelled").await;
        assert_eq!(kept(&site), ["good", "bad"]);
        // Who comes back goes on where nothing was said.
        chrome.open(&site.at(&address())).await;
        assert_eq!(chrome.text("main h2").await, skipped);
        assert_ne!(first, skipped);
        for done in 3..=8 {
            press(chrome, if done % 2 == 0 { "g" } else { "b" }).await;
            chrome.shows("#labelled", &format!("{done} of 8 labelled")).await;
        }
        let end = chrome.shows("main", "Every answer has a label").await;
        assert!(end.contains(&format!("selftest judge calibrate --runs {RUN}")), "{end}");
        assert_eq!(kept(&site).len(), 8);
    });
}

#[test]
fn answers_are_labelled_without_javascript() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.tool("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
        chrome.open(&site.at(&address())).await;
        chrome.click("button[value=bad]").await;
        chrome.shows("#labelled", "1 of 8 labelled").await;
        for _ in 0..7 {
            chrome.click("button[value=skip]").await;
        }
        chrome.shows("main", "You have skipped 7").await;
        chrome.click("main p a[href^='/label/']").await;
        chrome.click("button[value=good]").await;
        chrome.shows("#labelled", "2 of 8 labelled").await;
        assert_eq!(kept(&site), ["bad", "good"]);
    });
}

/// Two windows show the same answer: the second one does not turn the first one's label round.
#[test]
fn a_stale_page_does_not_label_again() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at(&address())).await;
        let form = "return new URLSearchParams(new FormData(document.querySelector('main form'))).toString()";
        let form = chrome.run(form, Vec::new()).await.as_str().unwrap().to_owned() + "&said=good";
        assert_eq!(site.post(&address(), form.leak()).0, 303);
        chrome.refused(409);
        chrome.click("button[value=bad]").await;
        chrome.shows("main", "contradict each other").await;
        assert_eq!(kept(&site), ["good"]);
    });
}
