//! Comments of a pull request over GitHub's REST API. Sends the token nowhere but there, and shows it
//! nowhere.

use std::time::Duration;

use anyhow::anyhow;
use reqwest::{Method, Response, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use selftest_app::AppError;
use selftest_models::http::{client_builder, is_loopback, root_cause};
use serde::Deserialize;
use serde_json::json;

/// Version of the API that is spoken.
const VERSION: &str = "2022-11-28";

/// Most bytes of an answer: a hundred comments of the greatest length.
const MAX_ANSWER: usize = 32 * 1024 * 1024;

/// Comments that are asked for at once, and how often.
const PAGE: usize = 100;

const MAX_PAGES: usize = 30;

/// Maximum number of attempts at a request that meets a rate limit.
const MAX_TRIES: u32 = 3;

/// Maximum wait between two attempts.
const MAX_WAIT: Duration = Duration::from_mins(1);

const TIMEOUT: Duration = Duration::from_secs(30);

/// A pull request or an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// `owner/name`.
    pub(super) repository: String,
    pub(super) number: u64,
}

/// The outcome of writing a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Posted {
    pub(super) updated: bool,
    /// Address of its page.
    pub(super) address: String,
}

/// The API of one GitHub.
pub(super) struct GitHub {
    client: reqwest::Client,
    base: String,
    token: SecretString,
}

#[derive(Deserialize)]
struct Comment {
    id: u64,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    html_url: String,
    #[serde(default)]
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default, rename = "type")]
    kind: String,
}

impl GitHub {
    pub(super) fn new(base: &str, token: SecretString) -> Result<Self, AppError> {
        let base = base.trim_end_matches('/').to_owned();
        let address = Url::parse(&base)
            .map_err(|error| AppError::usage(anyhow!("GITHUB_API_URL `{base}`: {error}")))?;
        if address.scheme() != "https" && !is_loopback(&address) {
            let error = anyhow!("GITHUB_API_URL `{base}` would have the token sent unencrypted");
            return Err(AppError::usage(error).hint(Some("use an https:// address")));
        }
        let client = client_builder(&base)
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .build()
            .map_err(|error| AppError::setup(anyhow!("{base}: {}", root_cause(&error))))?;
        Ok(Self { client, base, token })
    }

    /// Replaces the comment that starts with the marker, or writes a new one.
    pub(super) async fn post(
        &self,
        target: &Target,
        marker: &str,
        text: &str,
    ) -> Result<Posted, AppError> {
        let Target { repository, number } = target;
        let body = json!({ "body": text });
        if let Some(id) = self.find(target, marker).await? {
            let path = format!("/repos/{repository}/issues/comments/{id}");
            let comment: Comment = self.ask(Method::PATCH, &path, Some(&body), target).await?;
            return Ok(Posted { updated: true, address: comment.html_url });
        }
        let path = format!("/repos/{repository}/issues/{number}/comments");
        let comment: Comment = self.ask(Method::POST, &path, Some(&body), target).await?;
        Ok(Posted { updated: false, address: comment.html_url })
    }

    /// Returns the comment that starts with the marker. Any user can write such a line, so under the
    /// token of an app, which is a bot itself, only comments of bots count.
    async fn find(&self, target: &Target, marker: &str) -> Result<Option<u64>, AppError> {
        let of_an_app = self.token.expose_secret().starts_with("ghs_");
        let Target { repository, number } = target;
        for page in 1..=MAX_PAGES {
            let path =
                format!("/repos/{repository}/issues/{number}/comments?per_page={PAGE}&page={page}");
            let comments: Vec<Comment> = self.ask(Method::GET, &path, None, target).await?;
            let is_ours = |comment: &&Comment| {
                let begins = comment.body.as_deref().is_some_and(|body| body.starts_with(marker));
                let is_bot = comment.user.as_ref().is_some_and(|user| user.kind == "Bot");
                begins && (is_bot || !of_an_app)
            };
            if let Some(comment) = comments.iter().find(is_ours) {
                return Ok(Some(comment.id));
            }
            if comments.len() < PAGE {
                break;
            }
        }
        Ok(None)
    }

    async fn ask<T: for<'de> Deserialize<'de>>(
        &self,
        method: Method,
        path: &str,
        body: Option<&serde_json::Value>,
        target: &Target,
    ) -> Result<T, AppError> {
        let mut tries = 1;
        loop {
            let mut request = self
                .client
                .request(method.clone(), format!("{}{path}", self.base))
                .bearer_auth(self.token.expose_secret())
                .header("accept", "application/vnd.github+json")
                .header("x-github-api-version", VERSION);
            if let Some(body) = body {
                request = request.json(body);
            }
            let response = request.send().await.map_err(|error| self.unreachable(&error))?;
            let status = response.status();
            let limit = rate_limit(&response);
            let bytes = self.read(response).await?;
            if status.is_success() {
                return serde_json::from_slice(&bytes).map_err(|error| {
                    AppError::setup(anyhow!("{}: an answer that is no comment: {error}", self.base))
                });
            }
            match limit {
                Some(wait) if wait <= MAX_WAIT && tries < MAX_TRIES => {
                    tries += 1;
                    tokio::time::sleep(wait).await;
                }
                Some(wait) => return Err(self.limited(status, wait)),
                None => return Err(self.refused(status, &bytes, target)),
            }
        }
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>, AppError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if bytes.len() + chunk.len() > MAX_ANSWER {
                let error = anyhow!("{}: an answer of more than {MAX_ANSWER} bytes", self.base);
                return Err(AppError::setup(error));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn unreachable(&self, error: &reqwest::Error) -> AppError {
        let why = if error.is_timeout() {
            format!("no answer within {} s", TIMEOUT.as_secs())
        } else {
            self.hidden(&root_cause(error))
        };
        AppError::setup(anyhow!("{}: {why}", self.base))
    }

    fn limited(&self, status: StatusCode, wait: Duration) -> AppError {
        let seconds = wait.as_secs();
        let error =
            anyhow!("{}: rate limit ({}), for {seconds} s more", self.base, status.as_u16());
        AppError::setup(error)
            .hint(Some("run `selftest report comment` later, with the same report"))
    }

    fn refused(&self, status: StatusCode, body: &[u8], target: &Target) -> AppError {
        let Target { repository, number } = target;
        let said: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let said = said["message"].as_str().unwrap_or_default();
        let said = self.hidden(&selftest_text::escape::terminal(said, 200));
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        let code = status.as_u16();
        let (what, hint) = match code {
            401 => ("the token is not valid".to_owned(), "set GITHUB_TOKEN or GH_TOKEN"),
            403 => (
                format!("the token may not comment on {repository}"),
                "give the job `permissions: pull-requests: write`; pull requests of forks get a \
                 token that only reads",
            ),
            404 => (
                format!("there is no {repository}#{number}, or the token cannot see it"),
                "name another with --repo OWNER/NAME --number N",
            ),
            410 | 422 => (
                format!("{repository}#{number} takes no such comment"),
                "look whether its conversation is locked",
            ),
            300..=399 => (format!("{repository} has moved"), "name it with --repo OWNER/NAME"),
            _ => ("it gave no comment".to_owned(), "try again later"),
        };
        AppError::setup(anyhow!("{}: {what} ({code}{said})", self.base)).hint(Some(hint))
    }

    /// Removes the token, in case a server repeats it.
    fn hidden(&self, words: &str) -> String {
        words.replace(self.token.expose_secret(), "***")
    }
}

/// Returns the wait that a response requests after too many requests.
fn rate_limit(response: &Response) -> Option<Duration> {
    let number =
        |name: &str| response.headers().get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    let code = response.status().as_u16();
    if !matches!(code, 403 | 429) {
        return None;
    }
    let asked = number("retry-after");
    let is_used_up = number("x-ratelimit-remaining") == Some(0);
    let reset = || {
        let at = number("x-ratelimit-reset").filter(|_| is_used_up)?;
        Some(at.saturating_sub(selftest_clock::now().as_second()))
    };
    let seconds = asked.or_else(reset).or((code == 429 || is_used_up).then_some(60))?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}
