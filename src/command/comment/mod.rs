//! `selftest report comment`: a run as a comment on a pull request, which the next run updates.

mod github;

use std::path::Path;

use anyhow::anyhow;
use secrecy::SecretString;
use serde_json::Value;

use crate::cli::{CommentArgs, GlobalArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};
use github::{GitHub, Target};
use selftest_app::AppError;
use selftest_config::Environment;
use selftest_reports::comment::{marker, render};

/// The API of github.com.
const API: &str = "https://api.github.com";
/// Most bytes of the file of an event.
const MAX_EVENT: u64 = 16 * 1024 * 1024;

pub(super) async fn execute(args: &CommentArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    let report = selftest_app::find_report(&project, &resolved, &args.run)?;
    let environment = &project.environment;
    let link = link(environment);
    let text = render(&report, &args.key, link.as_deref());
    if args.dry_run {
        print(&text)?;
        return Ok(Exit::Passed);
    }
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
    let posted = github.post(&target, &marker(&args.key), &text).await?;
    let verb = if posted.updated { "updated" } else { "written" };
    let address = selftest_text::escape::terminal(&posted.address, 300);
    eprint(&format!("comment {verb} on {}#{}: {address}\n", target.repository, target.number));
    Ok(Exit::Passed)
}

fn set<'a>(environment: &'a Environment, name: &str) -> Option<&'a String> {
    environment.variables.get(name).filter(|value| !value.is_empty())
}

/// Where the run can be looked at in GitHub Actions.
pub(super) fn link(environment: &Environment) -> Option<String> {
    let server = set(environment, "GITHUB_SERVER_URL")?;
    let repository = set(environment, "GITHUB_REPOSITORY")?;
    let run = set(environment, "GITHUB_RUN_ID")?;
    Some(format!("{server}/{repository}/actions/runs/{run}"))
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

/// The number in the file of the event, where it is about a pull request or an issue.
fn from_event(environment: &Environment) -> Result<Option<u64>, AppError> {
    let Some(path) = set(environment, "GITHUB_EVENT_PATH") else { return Ok(None) };
    let unreadable = |why: &dyn std::fmt::Display| {
        let shown = selftest_text::escape::terminal(path, 300);
        AppError::usage(anyhow!("GITHUB_EVENT_PATH {shown}: {why}"))
            .hint(Some("name the pull request with --number N"))
    };
    let found = std::fs::metadata(Path::new(path)).map_err(|error| unreadable(&error))?;
    if found.len() > MAX_EVENT {
        return Err(unreadable(&format!("more than {MAX_EVENT} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
    let event: Value = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    let places = ["/pull_request/number", "/issue/number", "/number"];
    Ok(places.into_iter().find_map(|place| event.pointer(place)?.as_u64()))
}
