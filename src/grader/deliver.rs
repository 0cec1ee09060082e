//! Hands news to the program or address that the configuration names, and to nobody else.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Who is told, and what they are for.
pub(super) struct Receivers<'a> {
    /// One word for messages, such as `alert`.
    pub(super) purpose: &'static str,
    /// A program and its arguments: gets the news on its standard input.
    pub(super) command: Option<&'a [String]>,
    /// An address: gets the news by POST.
    pub(super) webhook: Option<&'a str>,
    /// A receiver that takes longer is given up.
    pub(super) longest: Duration,
}

impl Receivers<'_> {
    /// Sends the news; the words of what went wrong, one for each receiver.
    pub(super) async fn tell(&self, news: &Value) -> Vec<String> {
        let Self { purpose, longest, .. } = *self;
        let body = news.to_string();
        let mut faults = Vec::new();
        if let Some(command) = self.command.filter(|command| !command.is_empty()) {
            let name = &command[0];
            match tokio::time::timeout(longest, run(command, &body)).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => {
                    faults.push(format!("the {purpose} command {name:?} failed: {why}"));
                }
                Err(_) => faults.push(format!(
                    "the {purpose} command {name:?} did not end within {} s",
                    longest.as_secs()
                )),
            }
        }
        if let Some(address) = self.webhook
            && let Err(why) = post(address, body, longest).await
        {
            faults.push(format!("the {purpose} webhook failed: {why}"));
        }
        faults
    }
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

async fn post(address: &str, body: String, longest: Duration) -> Result<(), String> {
    // The address may hold a token: it is not repeated in words that go to logs.
    let words = |error: reqwest::Error| error.without_url().to_string();
    let client =
        crate::model::http::client_builder(address).timeout(longest).build().map_err(words)?;
    let request = client.post(address).header("content-type", "application/json").body(body);
    let answer = request.send().await.map_err(words)?;
    if answer.status().is_success() {
        Ok(())
    } else {
        Err(format!("the server answered {}", answer.status()))
    }
}
