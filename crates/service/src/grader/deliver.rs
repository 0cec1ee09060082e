//! Sends notifications to the configured commands and webhooks only.

use std::process::{ExitStatus, Stdio};
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
        faults.extend(receiver.send(news).await.err().map(|error| error.to_string()));
    }
    faults
}

/// A notification could not be delivered. Messages contain no arguments and addresses, which may
/// contain tokens.
#[derive(Debug, thiserror::Error)]
pub(super) enum HookError {
    /// The program cannot be started, or did not succeed.
    #[error("the {purpose} command {program:?} failed: {source}")]
    Command { purpose: &'static str, program: String, source: CommandHookError },
    /// The program took too long.
    #[error("the {purpose} command {program:?} did not end within {} s", timeout.as_secs())]
    Late { purpose: &'static str, program: String, timeout: Duration },
    /// The server is not reachable, or rejected the notification.
    #[error("the {purpose} webhook{host} failed: {source}")]
    Webhook { purpose: &'static str, host: String, source: WebhookError },
}

#[derive(Debug, thiserror::Error)]
pub(super) enum CommandHookError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Status(ExitStatus),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum WebhookError {
    #[error("{}", root_cause(.0))]
    Request(#[source] reqwest::Error),
    #[error("the server answered {0}")]
    Status(reqwest::StatusCode),
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

    /// Sends a notification.
    pub(super) async fn send(&self, news: &Value) -> Result<(), HookError> {
        let Self { purpose, timeout, .. } = *self;
        let body = news.to_string();
        match self.address {
            HookAddress::Command(command) => {
                let name = || command[0].clone();
                let late = |_| HookError::Late { purpose, program: name(), timeout };
                let ended = tokio::time::timeout(timeout, run(command, &body)).await;
                let failed = |source| HookError::Command { purpose, program: name(), source };
                ended.map_err(late)?.map_err(failed)
            }
            HookAddress::Webhook(address) => post(address, body, timeout)
                .await
                .map_err(|source| HookError::Webhook { purpose, host: host_of(address), source }),
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

async fn run(command: &[String], body: &str) -> Result<(), CommandHookError> {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        // stdout may hold a report in JSON, to which a hook's output must not be added.
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        // The timeout drops this future, which must end the program too.
        .kill_on_drop(true)
        .spawn()?;
    // Dropped at the end of this block, so that a program that reads all of its input gets to the
    // end.
    if let Some(mut stdin) = child.stdin.take() {
        // It is not an error if the program does not read its input.
        let _ = stdin.write_all(body.as_bytes()).await;
    }
    let status = child.wait().await?;
    if status.success() { Ok(()) } else { Err(CommandHookError::Status(status)) }
}

async fn post(address: &str, body: String, timeout: Duration) -> Result<(), WebhookError> {
    // The address may contain a token, so it is removed from messages that go to logs.
    let failed = |error: reqwest::Error| WebhookError::Request(error.without_url());
    let client =
        selftest_models::http::client_builder(address).timeout(timeout).build().map_err(failed)?;
    let request = client.post(address).header("content-type", "application/json").body(body);
    let answer = request.send().await.map_err(failed)?;
    if answer.status().is_success() { Ok(()) } else { Err(WebhookError::Status(answer.status())) }
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
