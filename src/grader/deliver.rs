//! Hands alerts to the program or address that the configuration names, and to nobody else.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::grade::{Alert, AlertSettings, Week};

/// A receiver that takes longer is given up.
const LONGEST: Duration = Duration::from_secs(30);

/// Sends the alerts of a week; the words of what went wrong, one for each receiver.
///
/// A program gets the JSON on its standard input, an address gets it by POST.
pub(super) async fn deliver(settings: &AlertSettings, week: Week, alerts: &[Alert]) -> Vec<String> {
    if alerts.is_empty() {
        return Vec::new();
    }
    let body = json!({ "kind": "selftest.alerts", "week": week, "alerts": alerts }).to_string();
    let mut faults = Vec::new();
    if let Some(command) = settings.command.as_ref().filter(|command| !command.is_empty()) {
        let name = &command[0];
        match tokio::time::timeout(LONGEST, run(command, &body)).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => faults.push(format!("the alert command {name:?} failed: {why}")),
            Err(_) => faults.push(format!(
                "the alert command {name:?} did not end within {} s",
                LONGEST.as_secs()
            )),
        }
    }
    if let Some(address) = &settings.webhook
        && let Err(why) = post(address, body).await
    {
        faults.push(format!("the alert webhook failed: {why}"));
    }
    faults
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
