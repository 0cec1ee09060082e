//! The list of sessions in a browser: sorting, filters, more rows, keys.

use thirtyfour::Key;

use super::chrome::{Chrome, browse};
use super::demo;
use super::site::Site;

/// The column of the quality scores, absent ones left out.
async fn scores(chrome: &Chrome) -> Vec<f64> {
    let texts = chrome.texts(".sessions td.quality").await;
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

#[test]
fn quality_sorts_both_ways() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at("/")).await;
        chrome.click("thead th:nth-child(2) a").await;
        chrome.until("document.querySelector('th[aria-sort=descending]')").await;
        let falling = scores(chrome).await;
        assert!(falling.len() > 20 && falling.is_sorted_by(|a, b| a >= b), "{falling:?}");
        chrome.click("thead th:nth-child(2) a").await;
        chrome.until("document.querySelector('th[aria-sort=ascending]')").await;
        let rising = scores(chrome).await;
        assert!(rising.is_sorted() && rising.first() < falling.first(), "{rising:?}");
    });
}

#[test]
fn filters_narrow_the_list() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at("/")).await;
        assert_eq!(chrome.text(".count").await, "401 sessions");
        // Choosing is enough.
        chrome.click("select[name=task_type] option[value=testing]").await;
        chrome.until("location.search.includes('task_type=testing')").await;
        chrome.until("document.querySelector('.count').textContent === '33 sessions'").await;
        let kinds = chrome.texts(".sessions tbody td:nth-child(9)").await;
        assert!(kinds.len() == 33 && kinds.iter().all(|kind| kind == "testing"), "{kinds:?}");
        chrome.open(&site.at("/")).await;
        chrome.find("input[name=min_quality]").await.send_keys("0.8").await.unwrap();
        chrome.find("input[name=q]").await.send_keys("parser").await.unwrap();
        chrome.press(String::from(char::from(Key::Enter))).await;
        chrome.until("location.search.includes('min_quality=0.8')").await;
        chrome.find(".clear").await;
        let names = chrome.texts(".sessions tbody th > a").await;
        assert!(!names.is_empty() && names.iter().all(|name| name.contains("parser")), "{names:?}");
        assert!(scores(chrome).await.iter().all(|score| *score >= 0.8));
    });
}

#[test]
fn rows_come_on_scrolling_and_by_link() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at("/")).await;
        chrome.until("document.querySelectorAll('.sessions tbody tr').length >= 100").await;
        let rows = "document.querySelectorAll('.sessions tbody tr').length";
        chrome.until(&format!("(scrollTo(0, document.body.scrollHeight), {rows} === 401)")).await;
        let mut ids = chrome.texts(".sessions tbody tr th small").await;
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 401, "no session twice");
        chrome.until("!document.querySelector('.pager a[rel=next]')").await;
    });
}

#[test]
fn keys_search_move_open_and_close() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at("/")).await;
        chrome.press("/").await;
        chrome.until("document.activeElement.name === 'q'").await;
        chrome.press("jjk").await;
        chrome.until("document.querySelector('input[name=q]').value === 'jjk'").await;
        chrome.press(String::from(char::from(Key::Escape))).await;
        chrome.until("document.activeElement === document.body").await;
        let kept = chrome.run("return document.querySelector('input[name=q]').value", Vec::new());
        assert_eq!(kept.await, "jjk", "leaving the field takes no words away");
        chrome.press("jjk").await;
        chrome.until("document.querySelector('tbody tr:first-child.current')").await;
        chrome.press("j").await;
        chrome.until("document.querySelector('tbody tr:nth-child(2).current')").await;
        chrome.press(String::from(char::from(Key::Enter))).await;
        let row = chrome.text("tbody tr:nth-child(2) th a").await;
        let start: String = row.chars().take(20).collect();
        chrome.shows("dialog[open] h1", &start).await;
        chrome.press(String::from(char::from(Key::Escape))).await;
        chrome.until("!document.querySelector('dialog[open]')").await;
        chrome.until("document.activeElement.closest('tr')?.classList.contains('current')").await;
    });
}
