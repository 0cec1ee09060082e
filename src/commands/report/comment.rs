//! `selftest report comment`: a run as a comment on a pull request over GitHub's REST API, which the
//! next run updates. Sends the token nowhere but there, and shows it nowhere.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use reqwest::{Method, Response, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};
use selftest_app::{AppError, Project};
use selftest_config::Environment;
use selftest_models::http::{client_builder, is_loopback, root_cause};
use selftest_reports::comment::{MARK, marker, render};
use selftest_text::file::{read_bounded_text, read_named_text};

/// The run, and the pull request that it is written on.
#[derive(Debug, Args)]
pub struct CommentArgs {
    /// The run: its id, its JSON report, or `latest`
    #[arg(default_value = "latest")]
    pub run: String,
    /// Send this comment, written by `selftest skills test --report comment=FILE`, instead of one about a
    /// run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "key"])]
    pub file: Option<PathBuf>,
    /// The repository [default: `GITHUB_REPOSITORY`]
    #[arg(long, value_name = "OWNER/NAME")]
    pub repo: Option<String>,
    /// The pull request [default: that of the event in GitHub Actions]
    #[arg(long, value_name = "N")]
    pub number: Option<u64>,
    /// Key of the comment to update if a pull request has several, such as the name of a job
    #[arg(long, value_name = "KEY", default_value = "main")]
    pub key: String,
    /// Print the comment without sending it
    #[arg(long)]
    pub dry_run: bool,
}

/// The API of github.com.
const API: &str = "https://api.github.com";

/// Most bytes of a comment in a file.
const MAX_COMMENT: u64 = 65_536;

/// Most bytes of the file of an event.
const MAX_EVENT: u64 = 16 * 1024 * 1024;

pub(super) async fn execute(args: &CommentArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let environment = &project.environment;
    let (text, mark) = if let Some(file) = &args.file {
        read(&project, file)?
    } else {
        let resolved = project.load(Vec::new())?;
        let report = selftest_app::find_report(&project, &resolved, &args.run)?;
        let link = environment.github_run_url();
        (render(&report, &args.key, link.as_deref()), marker(&args.key))
    };
    if args.dry_run {
        print(&text)?;
        return Ok(Exit::Passed);
    }
    // Looked up before the token, so that a wrong pull request is reported also where no token is
    // set.
    let target = target(args, environment)?;
    let token = ["GITHUB_TOKEN", "GH_TOKEN"].into_iter().find_map(|name| set(environment, name));
    let token = token.ok_or_else(|| {
        AppError::usage(anyhow!("neither GITHUB_TOKEN nor GH_TOKEN is set"))
            .hint(Some("hand the job its token, or look at the comment with --dry-run"))
    })?;
    if environment.models.offline {
        return Err(AppError::usage(anyhow!("a comment needs GitHub, and --offline forbids it")));
    }
    let api = set(environment, "GITHUB_API_URL").map_or(API, String::as_str);
    let github = GitHub::new(api, SecretString::from(token.clone()))?;
    let posted = github.post(&target, &mark, &text).await?;
    let verb = if posted.updated { "updated" } else { "written" };
    let address = selftest_text::escape::terminal(&posted.address, 300);
    eprint(&format!("comment {verb} on {}#{}: {address}\n", target.repository, target.number));
    Ok(Exit::Passed)
}

/// Reads a comment, and the mark in its first line by which a later one replaces it.
fn read(project: &Project, file: &Path) -> Result<(String, String), AppError> {
    let shown = file.display();
    let text = read_named_text(&project.path(file), MAX_COMMENT)
        .map_err(|error| AppError::usage(anyhow!("cannot read the comment {shown}: {error}")))?;
    let mark = text.lines().next().filter(|line| line.starts_with(MARK)).map(str::to_owned);
    let mark = mark.ok_or_else(|| {
        AppError::usage(anyhow!("{shown} is no comment of selftest: its first line has no mark"))
            .hint(Some("write it with `selftest skills test --report comment=FILE`"))
    })?;
    Ok((text, mark))
}

fn set<'a>(environment: &'a Environment, name: &str) -> Option<&'a String> {
    environment.variables.get(name).filter(|value| !value.is_empty())
}

/// The pull request: as the flags name it, else that of the event of GitHub Actions.
fn target(args: &CommentArgs, environment: &Environment) -> Result<Target, AppError> {
    let repository = args.repo.as_ref().or_else(|| set(environment, "GITHUB_REPOSITORY"));
    let repository = repository.ok_or_else(|| {
        AppError::usage(anyhow!("GITHUB_REPOSITORY is not set"))
            .hint(Some("name it with --repo OWNER/NAME"))
    })?;
    if !is_repository(repository) {
        let shown = selftest_text::escape::terminal(repository, 100);
        return Err(AppError::usage(anyhow!("`{shown}` is no repository"))
            .hint(Some("write it as OWNER/NAME")));
    }
    let number = match args.number {
        // The flag wins over the event. The event goes before the ref, because for `issue_comment`
        // and `pull_request_target` the ref is a branch.
        Some(number) => Some(number),
        None => from_event(environment)?.or_else(|| {
            let reference = set(environment, "GITHUB_REF")?;
            reference.strip_prefix("refs/pull/")?.split('/').next()?.parse().ok()
        }),
    };
    let number = number.ok_or_else(|| {
        AppError::usage(anyhow!("this event has no pull request"))
            .hint(Some("name it with --number N"))
    })?;
    Ok(Target { repository: repository.clone(), number })
}

/// Owner and name, each of characters that need no escape in an address.
fn is_repository(text: &str) -> bool {
    let is_name = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !part.is_empty()
            && part.len() <= 100
            && part != ".."
            && part != "."
            && part.chars().all(plain)
    };
    text.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name))
}

/// Returns the number of the pull request or issue that the event file is about.
fn from_event(environment: &Environment) -> Result<Option<u64>, AppError> {
    let Some(path) = set(environment, "GITHUB_EVENT_PATH") else { return Ok(None) };
    let unreadable = |why: &dyn std::fmt::Display| {
        let shown = selftest_text::escape::terminal(path, 300);
        AppError::usage(anyhow!("GITHUB_EVENT_PATH {shown}: {why}"))
            .hint(Some("name the pull request with --number N"))
    };
    // GITHUB_EVENT_PATH is only an environment variable and may name any file.
    let text = read_bounded_text(Path::new(path), MAX_EVENT).map_err(|error| unreadable(&error))?;
    let event: Value = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    // Comments on a pull request arrive as events of an issue with the same number.
    let places = ["/pull_request/number", "/issue/number", "/number"];
    Ok(places.into_iter().find_map(|place| event.pointer(place)?.as_u64()))
}

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
            // Plain HTTP stays possible on this machine, for tests.
            let error = anyhow!("GITHUB_API_URL `{base}` would have the token sent unencrypted");
            return Err(AppError::usage(error).hint(Some("use an https:// address")));
        }
        let client = client_builder(&base)
            // A redirect could lead the token to another host. A renamed repository answers with
            // one, which is reported.
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
        // The token of a job in GitHub Actions is that of an app, with this prefix.
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
            // A page that is not full is the last one.
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
            // Read before the body, which consumes the response.
            let limit = rate_limit(&response);
            let bytes = self.read(response).await?;
            if status.is_success() {
                return serde_json::from_slice(&bytes).map_err(|error| {
                    AppError::setup(anyhow!("{}: an answer that is no comment: {error}", self.base))
                });
            }
            match limit {
                // The primary limit resets after up to an hour, for which no CI job should wait.
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
            // Redirects are not followed; see the client.
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
    // GitHub reports both its primary and secondary limits with either status.
    if !matches!(code, 403 | 429) {
        return None;
    }
    let asked = number("retry-after");
    let is_used_up = number("x-ratelimit-remaining") == Some(0);
    // Any other 403 is a missing permission and has a reset time as well, which says nothing.
    let reset = || {
        let at = number("x-ratelimit-reset").filter(|_| is_used_up)?;
        Some(at.saturating_sub(selftest_clock::now().as_second()))
    };
    // GitHub's documentation asks for at least a minute if a response gives no time.
    let seconds = asked.or_else(reset).or((code == 429 || is_used_up).then_some(60))?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}
