//! `selftest report comment`: a run as a comment on a pull request, which the next run updates.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use secrecy::SecretString;
use selftest_app::{AppError, Project};
use selftest_config::Environment;
use selftest_reports::comment::{MARK, marker, render};
use selftest_text::file::read_bounded_text;
use serde_json::Value;

use super::github::Target;
use crate::args::GlobalArgs;
use crate::commands::report::github::GitHub;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

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
    let text = read_bounded_text(&project.path(file), MAX_COMMENT)
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
    let found = std::fs::metadata(Path::new(path)).map_err(|error| unreadable(&error))?;
    if found.len() > MAX_EVENT {
        return Err(unreadable(&format!("more than {MAX_EVENT} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
    let event: Value = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    let places = ["/pull_request/number", "/issue/number", "/number"];
    Ok(places.into_iter().find_map(|place| event.pointer(place)?.as_u64()))
}
