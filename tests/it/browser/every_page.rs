//! Properties of every page: readable without JavaScript, in the dark and on narrow screens,
//! with names for those who do not see it; and pictures of them for the documentation.

use serde_json::{Value, json};
use thirtyfour::Key;

use super::chrome::{Chrome, browse};
use super::demo::{self, GRADED};
use super::improvement::TESTED;
use super::runs::RUN;
use super::site::Site;
use super::skills::DISABLED;
use crate::require;

fn pages() -> Vec<(&'static str, String)> {
    vec![
        ("sessions", "/".to_owned()),
        ("session", format!("/sessions/{GRADED}")),
        ("transcript", format!("/sessions/{GRADED}/transcript")),
        ("transcript-event", format!("/sessions/{GRADED}/transcript?event=5#event-5")),
        ("search", "/search?q=empty+lines".to_owned()),
        ("selftests", "/selftests".to_owned()),
        ("run", format!("/selftests/{RUN}")),
        ("case", format!("/selftests/{RUN}/contradiction_detect")),
        ("label", format!("/label/{RUN}")),
        ("weekly-list", "/weekly".to_owned()),
        ("weekly", "/weekly/2026-W47".to_owned()),
        ("reflections", "/reflections".to_owned()),
        ("reflections-project", "/reflections?project=web-shop".to_owned()),
        ("skills", "/skills".to_owned()),
        ("skill", format!("/skills/{DISABLED}")),
        ("gaps", "/gaps".to_owned()),
        ("proposal", format!("/proposals/{TESTED}")),
        ("jobs", "/jobs".to_owned()),
    ]
}

/// Texts whose contrast with what lies behind them is below 4.5 (WCAG AA).
pub(super) const FAINT: &str = r"
    const channel = (value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = numbers(getComputedStyle(at).backgroundColor);
            if (colour.length < 4 || colour[3] > 0.5) return colour;
        }
        return [255, 255, 255];
    };
    const faint = [];
    for (const element of document.querySelectorAll('body *')) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!own || !element.checkVisibility() || element.closest('svg, option, button:disabled')) continue;
        const [a, b] = [light(numbers(getComputedStyle(element).color)), light(behind(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) faint.push(`${element.tagName}.${element.className} ${contrast.toFixed(2)}: ${element.textContent.trim().slice(0, 30)}`);
    }
    return faint;";

/// Faults that keep people with screen readers out.
pub(super) const NAMELESS: &str = r"
    const faults = [];
    const name = (element) => element.textContent.trim() || element.getAttribute('aria-label');
    for (const element of document.querySelectorAll('a, button, summary')) if (!name(element)) faults.push(element.outerHTML);
    for (const element of document.querySelectorAll('img')) if (element.getAttribute('alt') === null) faults.push(element.outerHTML);
    for (const element of document.querySelectorAll('input:not([type=hidden]), select')) if (!element.labels.length) faults.push(element.outerHTML);
    for (const element of document.querySelectorAll('table')) if (!element.caption) faults.push(element.outerHTML.slice(0, 90));
    for (const element of document.querySelectorAll('thead th, tbody th')) if (!element.scope) faults.push(element.outerHTML);
    for (const element of document.querySelectorAll('[id]')) if (document.querySelectorAll('#' + element.id).length > 1) faults.push(element.outerHTML.slice(0, 90));
    if (document.querySelectorAll('main h1').length !== 1) faults.push('not one heading');
    return faults;";

async fn none(chrome: &Chrome, script: &str, page: &str) {
    assert_eq!(chrome.run(script, Vec::new()).await, json!([]), "{page}");
}

#[test]
fn texts_can_be_read_in_the_light_and_in_the_dark() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        for (name, path) in pages() {
            chrome.open(&site.at(&path)).await;
            none(chrome, FAINT, name).await;
            none(chrome, NAMELESS, name).await;
        }
        chrome.dark().await;
        for (name, path) in pages() {
            chrome.open(&site.at(&path)).await;
            let ground = chrome
                .run("return getComputedStyle(document.body).backgroundColor", Vec::new())
                .await;
            assert_eq!(ground, "rgb(15, 18, 21)", "{name} is dark");
            none(chrome, FAINT, name).await;
        }
    });
}

#[test]
fn pages_need_no_javascript() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.tool("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
        for (name, path) in pages() {
            chrome.open(&site.at(&path)).await;
            let text = chrome.text("main").await;
            assert!(text.len() > 200, "{name}: {text}");
        }
        chrome.open(&site.at("/")).await;
        chrome.click("thead th:nth-child(2) a").await;
        chrome.find("th[aria-sort=descending]").await;
        chrome.find("input[name=q]").await.send_keys("calendar").await.unwrap();
        chrome.click(".filters button").await;
        chrome.find(".clear").await;
        chrome.shows(".sessions tbody tr:first-child th a", "calendar").await;
        chrome.click(".sessions tbody tr:first-child th a").await;
        chrome.shows("main h1", "calendar").await;
        chrome.open(&site.at("/")).await;
        let first = chrome.text(".sessions tbody tr:first-child small").await;
        chrome.click(".pager a[rel=next]").await;
        chrome.find(".pager a:not([rel])").await;
        assert_ne!(chrome.text(".sessions tbody tr:first-child small").await, first);
    });
}

#[test]
fn narrow_screens_do_not_scroll_sideways() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        let phone = json!({ "width": 375, "height": 700, "deviceScaleFactor": 2, "mobile": true });
        chrome.tool("Emulation.setDeviceMetricsOverride", phone).await;
        for (name, path) in pages() {
            chrome.open(&site.at(&path)).await;
            // The emulation may reach a page only after it has loaded.
            let fits = "document.documentElement.scrollWidth <= 375";
            chrome.until(&format!("/* {name} */ {fits}")).await;
        }
    });
}

/// The serious findings of axe.
const SERIOUS: &str = r"
    const told = (fault) => `${fault.id}: ${fault.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`;
    return axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations
        .filter((fault) => ['serious', 'critical'].includes(fault.impact)).map(told));";

#[test]
fn axe_finds_nothing_serious_on_phones_and_desks() {
    let Some(axe) = require::node_module("axe-core/axe.min.js") else { return };
    let script = std::fs::read_to_string(axe).unwrap() + SERIOUS;
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        for width in [390, 1280] {
            let screen = json!({
                "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 800,
            });
            chrome.tool("Emulation.setDeviceMetricsOverride", screen).await;
            for (name, path) in pages() {
                chrome.open(&site.at(&path)).await;
                none(chrome, &script, &format!("{name} at {width}")).await;
            }
        }
    });
}

#[test]
fn an_event_is_shown_where_its_link_leads() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at(&format!("/sessions/{GRADED}/events/3"))).await;
        chrome.until("location.hash === '#event-3'").await;
        let target = "document.querySelector('.transcript :target')";
        chrome.until(&format!("{target} && {target}.checkVisibility()")).await;
        chrome.shows(".transcript :target", "assertion").await;
        chrome.open(&site.at("/search?q=%22empty+lines%22")).await;
        chrome.shows(".found mark", "empty lines").await;
        chrome.click(".found .hits a").await;
        chrome.until("document.querySelector('.transcript :target')").await;
    });
}

#[test]
fn pictures_of_all_pages() {
    // Written on request only: SELFTEST_SCREENSHOTS=docs/images cargo test --test it pictures_of
    let folder = std::env::var_os("SELFTEST_SCREENSHOTS").map(std::path::PathBuf::from);
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        let screen =
            json!({ "width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": false });
        chrome.tool("Emulation.setDeviceMetricsOverride", screen).await;
        let shoot = async |name: &str| {
            // Pictures within the page and the panel's movement have ended by then.
            chrome
                .until("[...document.images].every(image => image.complete && image.naturalWidth)")
                .await;
            tokio::time::sleep(std::time::Duration::from_millis(250)).await;
            let picture = chrome.window.screenshot_as_png().await.unwrap();
            assert!(picture.len() > 10_000, "{name}");
            if let Some(folder) = &folder {
                std::fs::write(folder.join(format!("{name}.png")), picture).unwrap();
            }
        };
        for (name, path) in pages() {
            chrome.open(&site.at(&path)).await;
            shoot(name).await;
            if name == "proposal" {
                chrome.run("scrollTo(0, document.body.scrollHeight)", Vec::new()).await;
                shoot("proposal-decision").await;
            }
        }
        chrome.open(&site.at("/")).await;
        chrome.click(".sessions tbody tr:nth-child(4) td.time").await;
        chrome.until("document.querySelector('dialog[open] .dimension')").await;
        shoot("panel").await;
        chrome.press(String::from(char::from(Key::Escape))).await;
        chrome.dark().await;
        chrome.open(&site.at("/?sort=quality")).await;
        shoot("sessions-dark").await;
        let loaded: Value = chrome.run("return document.styleSheets.length", Vec::new()).await;
        assert_eq!(loaded, 1);
    });
}
