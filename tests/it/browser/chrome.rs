//! A headless Chromium driven through chromedriver. Where one of the two is missing, the test
//! says so and does nothing.

use std::io::{BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use thirtyfour::prelude::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// A browser window and the driver that holds it.
pub(super) struct Chrome {
    pub(super) window: WebDriver,
    driver: String,
}

struct Chromedriver(Child);

impl Drop for Chromedriver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_there(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// A driver on a free port, and its address.
fn chromedriver() -> (Chromedriver, String) {
    let mut child = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let driver = Chromedriver(child);
    let port = lines
        .find_map(|line| {
            let line = line.unwrap();
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        })
        .expect("chromedriver names its port");
    // Nobody reads on; what it writes must not block it.
    std::thread::spawn(move || lines.for_each(drop));
    (driver, format!("http://127.0.0.1:{port}"))
}

/// Does that in a fresh browser, and closes the browser whatever happens. Afterwards nothing may
/// be on its console, and no request may have gone to another host than the site's.
#[expect(clippy::print_stderr, reason = "what is skipped is said to the developer")]
pub(super) fn browse(visit: impl AsyncFnOnce(&Chrome)) {
    if !is_there("chromedriver") || !is_there("chromium") {
        eprintln!("SKIPPED: chromium and chromedriver are not both installed");
        return;
    }
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
            "--window-size=1280,800",
        ] {
            capabilities.add_arg(argument).unwrap();
        }
        let logs = json!({ "browser": "ALL", "performance": "ALL" });
        capabilities.set("goog:loggingPrefs", logs).unwrap();
        let window = WebDriver::new(&address, capabilities).await.unwrap();
        let chrome = Chrome { window, driver: address };
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
    }

    /// The element, once it is there.
    pub(super) async fn find(&self, selector: &str) -> WebElement {
        let query = self.window.query(By::Css(selector)).wait(PATIENCE, Duration::from_millis(20));
        query.first().await.unwrap_or_else(|error| panic!("no {selector}: {error}"))
    }

    /// The texts of all elements that match now.
    pub(super) async fn texts(&self, selector: &str) -> Vec<String> {
        let script = "return [...document.querySelectorAll(arguments[0])]\
                      .map(element => element.textContent.trim())";
        serde_json::from_value(self.run(script, vec![json!(selector)]).await).unwrap()
    }

    pub(super) async fn text(&self, selector: &str) -> String {
        self.find(selector).await.text().await.unwrap()
    }

    /// Waits until a script returns true.
    pub(super) async fn until(&self, condition: &str) {
        let since = Instant::now();
        while self.run(&format!("return !!({condition})"), Vec::new()).await != json!(true) {
            assert!(since.elapsed() < PATIENCE, "{condition} did not become true");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
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
        let faults: Vec<&Value> =
            console.iter().filter(|entry| entry["level"] == "SEVERE").collect();
        assert!(faults.is_empty(), "on the console: {faults:#?}");
        for entry in self.log("performance").await {
            let entry: Value = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
            let message = &entry["message"];
            if message["method"] != "Network.requestWillBeSent" {
                continue;
            }
            let url = message["params"]["request"]["url"].as_str().unwrap();
            let is_ours = ["http://127.0.0.1:", "data:", "about:", "chrome:"]
                .iter()
                .any(|start| url.starts_with(start));
            assert!(is_ours, "a request left the machine: {url}");
        }
    }
}
