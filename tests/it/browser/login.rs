//! The page that asks for the token.

use super::chrome::browse;
use super::site::{Contents, Site};

#[test]
fn a_form_takes_the_token_once() {
    let site = Site::with(Contents { token: Some("open sesame"), ..Contents::default() });
    browse(async |chrome| {
        chrome.open(&site.at("/gaps")).await;
        chrome.until("location.pathname === '/login'").await;
        chrome.find("input[name=token]").await.send_keys("open sesame").await.unwrap();
        chrome.click("button").await;
        chrome.until("location.pathname === '/'").await;
        chrome.click("nav a[href='/gaps']").await;
        chrome.shows("main h1", "Gaps").await;
    });
}
