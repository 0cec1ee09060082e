//! A headless Chromium driven through chromedriver. Where one of the two is missing, the test
//! is skipped.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::error::WebDriverErrorInner;
use thirtyfour::prelude::*;
use thirtyfour::{ChromeCapabilities, TimeoutConfiguration};

use crate::require::{self, Part};

/// Other tests may take all processors for a while, and a page that needs that long is no fault.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
/// Of the driver, for one page and for one script.
const MAX_WAIT: Duration = Duration::from_mins(2);

/// A browser window and the driver that holds it.
pub(super) struct Chrome {
    pub(super) window: WebDriver,
    driver: String,
    /// Status of the pages that are to be refused: browsers put these on the console.
    refused: Cell<Option<u16>>,
}

struct Chromedriver {
    child: Child,
    /// Where it and its browser leave what they do not clear away when they are killed.
    _folder: TempDir,
}

impl Drop for Chromedriver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_there(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// A driver on a free port, and its address. It ends at once where another one took the port that it
/// had found.
fn chromedriver() -> (Chromedriver, String) {
    std::iter::repeat_with(started_driver)
        .take(5)
        .flatten()
        .next()
        .expect("one of five chromedrivers names its port")
}

fn started_driver() -> Option<(Chromedriver, String)> {
    let folder = TempDir::with_prefix("chrome-").unwrap();
    let mut child = Command::new("chromedriver")
        .arg("--port=0")
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let driver = Chromedriver { child, _folder: folder };
    let port = lines.find_map(|line| {
        let line = line.unwrap();
        let (_, port) = line.split_once("started successfully on port ")?;
        Some(port.trim_end_matches('.').to_owned())
    })?;
    // Nobody reads on; what it writes must not block it.
    std::thread::spawn(move || lines.for_each(drop));
    Some((driver, format!("http://127.0.0.1:{port}")))
}

/// A browser that has started: on a busy machine the first one may be given up by the driver.
async fn session(address: &str, capabilities: &ChromeCapabilities) -> WebDriver {
    let connect = || {
        let builder = WebDriver::builder(address, capabilities.clone());
        builder.request_timeout(2 * MAX_WAIT).connect()
    };
    let window = match connect().await {
        Ok(window) => window,
        Err(_) => connect().await.unwrap(),
    };
    let timeouts = TimeoutConfiguration::new(Some(MAX_WAIT), Some(MAX_WAIT), None);
    window.update_timeouts(timeouts).await.unwrap();
    window
}

/// Does that in a fresh browser, and closes the browser whatever happens. Afterwards nothing may
/// be on its console, and no request may have gone to another host than the site's.
pub(super) fn browse(visit: impl AsyncFnOnce(&Chrome)) {
    let are_there = is_there("chromedriver") && is_there("chromium");
    let found = are_there.then_some(()).ok_or("chromium and chromedriver are not both installed");
    let Some(()) = require::part(Part::Chromium, found) else { return };
    // The client of the driver needs one, though it speaks plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (_driver, address) = chromedriver();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut capabilities = DesiredCapabilities::chrome();
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            // What moves in is not seen at first, and a text that is not seen is empty.
            "--force-prefers-reduced-motion",
            "--window-size=1280,800",
        ] {
            capabilities.add_arg(argument).unwrap();
        }
        let logs = json!({ "browser": "ALL", "performance": "ALL" });
        capabilities.set("goog:loggingPrefs", logs).unwrap();
        let window = session(&address, &capabilities).await;
        let chrome = Chrome { window, driver: address, refused: Cell::new(None) };
        // Without it a window that another one has covered takes no keys.
        chrome.tool("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })).await;
        let visited = AssertUnwindSafe(visit(&chrome)).catch_unwind().await;
        let checked = AssertUnwindSafe(chrome.check()).catch_unwind().await;
        let _ = chrome.window.quit().await;
        for outcome in [visited, checked] {
            outcome.unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

impl Chrome {
    pub(super) async fn open(&self, address: &str) {
        self.window.goto(address).await.unwrap();
        self.painted("true").await;
    }

    /// Waits for a page that is on the screen: before its first picture keys are dropped.
    pub(super) async fn painted(&self, condition: &str) {
        let painted = "performance.getEntriesByType('paint').length > 0";
        self.until(&format!("document.hasFocus() && {painted} && ({condition})")).await;
    }

    /// The outcome of the attempt, once it comes to something. Until then a fault is no fault: the
    /// page may be on its way to the next one. An alert is, because no page shows one.
    async fn patiently<T>(
        &self,
        what: &str,
        attempt: impl AsyncFn() -> WebDriverResult<Option<T>>,
    ) -> T {
        let since = Instant::now();
        loop {
            let fault = match attempt().await {
                Ok(Some(value)) => return value,
                Ok(None) => None,
                Err(error) => Some(error),
            };
            let alert =
                matches!(fault.as_deref(), Some(WebDriverErrorInner::UnexpectedAlertOpen(_)));
            assert!(!alert && since.elapsed() < PATIENCE, "{what}: not so; {fault:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// From now on pages may be refused with that status.
    pub(super) fn refused(&self, status: u16) {
        self.refused.set(Some(status));
    }

    /// The element, once it is there.
    pub(super) async fn find(&self, selector: &str) -> WebElement {
        let find = async || self.window.find(By::Css(selector)).await.map(Some);
        self.patiently(selector, find).await
    }

    /// Clicks the first element that matches, once that is possible.
    pub(super) async fn click(&self, selector: &str) {
        let click = async || {
            let element = self.window.find(By::Css(selector)).await?;
            element.click().await.map(Some)
        };
        self.patiently(&format!("clicking {selector}"), click).await;
    }

    /// The texts of all elements that match now.
    pub(super) async fn texts(&self, selector: &str) -> Vec<String> {
        let script = "return [...document.querySelectorAll(arguments[0])]\
                      .map(element => element.textContent.trim())";
        serde_json::from_value(self.run(script, vec![json!(selector)]).await).unwrap()
    }

    /// The text that is seen of the first element that matches.
    pub(super) async fn text(&self, selector: &str) -> String {
        let text = async || self.window.find(By::Css(selector)).await?.text().await.map(Some);
        self.patiently(selector, text).await
    }

    /// Waits until the first element that matches has those words, and returns all that is seen
    /// of it.
    pub(super) async fn shows(&self, selector: &str, words: &str) -> String {
        let shows = async || {
            let text = self.window.find(By::Css(selector)).await?.text().await?;
            Ok(text.contains(words).then_some(text))
        };
        self.patiently(&format!("{words:?} in {selector}"), shows).await
    }

    /// Waits until a script returns true on a page that has loaded.
    pub(super) async fn until(&self, condition: &str) {
        let script = format!("return document.readyState === 'complete' && !!({condition})");
        let holds = async || {
            let held = self.window.execute(script.as_str(), Vec::new()).await?;
            Ok((held.json() == &json!(true)).then_some(()))
        };
        self.patiently(condition, holds).await;
    }

    pub(super) async fn run(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.window.execute(script, arguments).await.unwrap().json().clone()
    }

    /// Presses keys where the focus is.
    pub(super) async fn press(&self, keys: impl AsRef<str>) {
        self.window.action_chain().send_keys(keys.as_ref()).perform().await.unwrap();
    }

    /// A command of the developer tools.
    pub(super) async fn tool(&self, command: &str, parameters: Value) {
        self.window.cdp().send_raw(command, parameters).await.unwrap();
    }

    pub(super) async fn dark(&self) {
        let features = json!([{ "name": "prefers-color-scheme", "value": "dark" }]);
        self.tool("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    async fn log(&self, kind: &str) -> Vec<Value> {
        let address = format!("{}/session/{}/se/log", self.driver, self.window.session_id());
        let request = reqwest::Client::new().post(address).json(&json!({ "type": kind }));
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        answer["value"].as_array().unwrap_or_else(|| panic!("no log: {answer}")).clone()
    }

    async fn check(&self) {
        let console = self.log("browser").await;
        let refused = self.refused.get().map(|status| format!("status of {status} "));
        let is_fault = |entry: &&Value| {
            let message = entry["message"].as_str().unwrap_or_default();
            entry["level"] == "SEVERE" && !refused.as_ref().is_some_and(|it| message.contains(it))
        };
        let faults: Vec<&Value> = console.iter().filter(is_fault).collect();
        assert!(faults.is_empty(), "on the console: {faults:#?}");
        for entry in self.log("performance").await {
            let entry: Value = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
            let message = &entry["message"];
            if message["method"] != "Network.requestWillBeSent" {
                continue;
            }
            let url = message["params"]["request"]["url"].as_str().unwrap();
            let is_ours = ["http://127.0.0.1:", "file://", "data:", "about:", "chrome:"]
                .iter()
                .any(|start| url.starts_with(start));
            assert!(is_ours, "a request left the machine: {url}");
        }
    }
}
