//! Hands alerts and weak reflections to the program or address that the configuration names, and to
//! nobody else.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::grade::{Alert, AlertSettings, Week};

/// A receiver that takes longer is given up.
const LONGEST: Duration = Duration::from_secs(30);

/// Who is told, by the configuration.
pub(super) struct Receivers<'a> {
    /// Of what, for messages: `alert`.
    pub(super) what: &'static str,
    /// A program that gets the JSON on its standard input.
    pub(super) command: Option<&'a [String]>,
    /// An address that gets it by POST.
    pub(super) webhook: Option<&'a str>,
}

impl Receivers<'_> {
    /// Sends a body of JSON; the words of what went wrong, one for each receiver.
    pub(super) async fn tell(&self, body: &str) -> Vec<String> {
        let Self { what, command, webhook } = self;
        let mut faults = Vec::new();
        if let Some(command) = command.filter(|command| !command.is_empty()) {
            let name = &command[0];
            match tokio::time::timeout(LONGEST, run(command, body)).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => faults.push(format!("the {what} command {name:?} failed: {why}")),
                Err(_) => faults.push(format!(
                    "the {what} command {name:?} did not end within {} s",
                    LONGEST.as_secs()
                )),
            }
        }
        if let Some(address) = webhook
            && let Err(why) = post(address, body.to_owned()).await
        {
            faults.push(format!("the {what} webhook failed: {why}"));
        }
        faults
    }
}

/// Sends the alerts of a week; the words of what went wrong, one for each receiver.
pub(super) async fn deliver(settings: &AlertSettings, week: Week, alerts: &[Alert]) -> Vec<String> {
    if alerts.is_empty() {
        return Vec::new();
    }
    let body = json!({ "kind": "selftest.alerts", "week": week, "alerts": alerts }).to_string();
    let receivers = Receivers {
        what: "alert",
        command: settings.command.as_deref(),
        webhook: settings.webhook.as_deref(),
    };
    receivers.tell(&body).await
}

async fn run(command: &[String], body: &str) -> Result<(), String> {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read is no fault.
        let _ = stdin.write_all(body.as_bytes()).await;
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

async fn post(address: &str, body: String) -> Result<(), String> {
    // The address may hold a token: it is not repeated in words that go to logs.
    let words = |error: reqwest::Error| error.without_url().to_string();
    let client =
        crate::model::http::client_builder(address).timeout(LONGEST).build().map_err(words)?;
    let request = client.post(address).header("content-type", "application/json").body(body);
    let answer = request.send().await.map_err(words)?;
    if answer.status().is_success() {
        Ok(())
    } else {
        Err(format!("the server answered {}", answer.status()))
    }
}
