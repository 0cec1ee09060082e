//! Sends notifications to the configured commands and webhooks only.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use selftest_models::http::root_cause;
use selftest_text::digest;

/// A command or webhook that receives notifications.
pub(super) struct HookReceiver<'a> {
    /// One word for messages, such as `alert`.
    purpose: &'static str,
    address: HookAddress<'a>,
    /// Time after which a delivery is given up.
    timeout: Duration,
}

enum HookAddress<'a> {
    /// A program with arguments, which gets the notification on its standard input.
    Command(&'a [String]),
    /// An address that gets the notification by POST.
    Webhook(&'a str),
}

/// Returns the configured receivers.
pub(super) fn receivers<'a>(
    purpose: &'static str,
    command: Option<&'a [String]>,
    webhook: Option<&'a str>,
    timeout: Duration,
) -> Vec<HookReceiver<'a>> {
    let command = command.filter(|command| !command.is_empty()).map(HookAddress::Command);
    let addresses = command.into_iter().chain(webhook.map(HookAddress::Webhook));
    addresses.map(|address| HookReceiver { purpose, address, timeout }).collect()
}

/// Sends a notification to all receivers and returns their errors.
pub(super) async fn send_all(receivers: &[HookReceiver<'_>], news: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for receiver in receivers {
        faults.extend(receiver.send(news).await.err());
    }
    faults
}

impl HookReceiver<'_> {
    /// Returns its name in reports. A digest is used because arguments and addresses may contain
    /// tokens.
    pub(super) fn key(&self) -> String {
        let (kind, value) = match self.address {
            HookAddress::Command(command) => ("command", json!(command)),
            HookAddress::Webhook(address) => ("webhook", json!(address)),
        };
        format!("{kind} {}", &digest::json_sha256_hex(value)[..16])
    }

    /// Sends a notification, or returns an error message.
    pub(super) async fn send(&self, news: &Value) -> Result<(), String> {
        let Self { purpose, timeout, .. } = *self;
        let body = news.to_string();
        match self.address {
            HookAddress::Command(command) => {
                let name = &command[0];
                let failed = |why| format!("the {purpose} command {name:?} failed: {why}");
                let late = |_| {
                    let limit = timeout.as_secs();
                    format!("the {purpose} command {name:?} did not end within {limit} s")
                };
                let ended = tokio::time::timeout(timeout, run(command, &body)).await;
                ended.map_err(late)?.map_err(failed)
            }
            HookAddress::Webhook(address) => post(address, body, timeout)
                .await
                .map_err(|why| format!("the {purpose} webhook{} failed: {why}", host_of(address))),
        }
    }
}

/// Returns ` at https://host`, without the parts that may contain a token: user, path and query.
fn host_of(address: &str) -> String {
    let parsed = reqwest::Url::parse(address).ok().filter(reqwest::Url::has_host);
    parsed
        .map(|address| format!(" at {}", address.origin().ascii_serialization()))
        .unwrap_or_default()
}

async fn run(command: &[String], body: &str) -> Result<(), String> {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        // The timeout drops this future, which must end the program too.
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // It is not an error if the program does not read its input.
        let _ = stdin.write_all(body.as_bytes()).await;
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

async fn post(address: &str, body: String, timeout: Duration) -> Result<(), String> {
    // The address may contain a token, so it is removed from messages that go to logs.
    let words = |error: reqwest::Error| root_cause(&error.without_url());
    let client =
        selftest_models::http::client_builder(address).timeout(timeout).build().map_err(words)?;
    let request = client.post(address).header("content-type", "application/json").body(body);
    let answer = request.send().await.map_err(words)?;
    if answer.status().is_success() {
        Ok(())
    } else {
        Err(format!("the server answered {}", answer.status()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_of_an_address_is_repeated() {
        for (address, shown) in [
            (
                "https://user:secret@hooks.example/T0/secret?token=secret",
                " at https://hooks.example",
            ),
            ("http://127.0.0.1:8080/hook", " at http://127.0.0.1:8080"),
            ("secret", ""),
            ("secret:secret", ""),
        ] {
            assert_eq!(host_of(address), shown);
        }
        let command = ["notify".to_owned(), "--token=secret".to_owned()];
        let keys = |webhook| {
            let timeout = Duration::from_secs(1);
            let receivers = receivers("alert", Some(&command), Some(webhook), timeout);
            receivers.iter().map(HookReceiver::key).collect::<Vec<_>>()
        };
        let [command, webhook] = &keys("https://a.example/secret")[..] else { panic!() };
        assert!(command.starts_with("command ") && webhook.starts_with("webhook "));
        assert!(!command.contains("secret") && !webhook.contains("secret"));
        assert_ne!(&keys("https://a.example/other")[1], webhook);
    }
}
