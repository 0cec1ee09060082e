//! Options that select recorded sessions and the database, and what they stand for.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use selftest_app::{AppError, Project};
use selftest_service::grader::GraderOptions;
use selftest_sessions::AgentHome;
use selftest_text::redact::Redactor;

use crate::ui::eprint;

/// Default database.
pub(crate) const DATABASE: &str = ".selftest/selftest.db";

/// Options that select recorded sessions.
#[derive(Debug, Clone, Args)]
pub struct SessionArgs {
    /// Read sessions from this file or folder; may be repeated. Default: grade.sources of the
    /// configuration, else the default folders of all known agents
    #[arg(long = "source", value_name = "PATH", global = true, help_heading = "Which sessions")]
    pub sources: Vec<PathBuf>,
    /// Only sessions started since then: 30d, 12h, 2w, or a date such as 2026-11-01
    #[arg(long, value_name = "TIME", global = true, help_heading = "Which sessions")]
    pub since: Option<String>,
    /// Only sessions of this agent, such as claude-code
    #[arg(long, value_name = "NAME", global = true, help_heading = "Which sessions")]
    pub agent: Option<String>,
}

/// Output format and database.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// Print JSON instead of text
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// The database of grades, skills and reflections.
#[derive(Debug, Clone, Args)]
pub struct DatabaseArgs {
    /// Database: a path, or a PostgreSQL URL
    #[arg(
        long,
        value_name = "FILE|URL",
        env = "DATABASE_URL",
        hide_env_values = true,
        default_value = DATABASE,
        global = true,
        help_heading = "Output"
    )]
    pub db: String,
}

/// Returns the folders to scan: the flags, else the configuration, else the agents' homes.
/// Paths of the command line count from the project folder, as all others do.
pub(crate) fn roots(project: &Project, args: &SessionArgs) -> Result<Vec<PathBuf>, AppError> {
    if !args.sources.is_empty() {
        for source in &args.sources {
            let path = project.path(source);
            path.symlink_metadata().map_err(|error| {
                let shown = source.display();
                AppError::usage(anyhow!("--source {shown}: {error}"))
            })?;
        }
        return Ok(args.sources.iter().map(|source| project.path(source)).collect());
    }
    let configured = project.load(Vec::new())?.config.grade.sources;
    if !configured.is_empty() {
        return Ok(configured.iter().map(|source| project.path(source)).collect());
    }
    let homes = homes(project).into_iter().map(|home| home.path);
    // Few people use all agents.
    Ok(homes.filter(|path| path.exists()).collect())
}

/// Returns the default locations of sessions, which may not exist.
pub(crate) fn homes(project: &Project) -> Vec<AgentHome> {
    let variables = &project.environment.variables;
    let variable = |name: &str| variables.get(name).map(Into::into);
    let home = variables.get("HOME").map(PathBuf::from);
    selftest_sessions::agent_homes(variable, home.as_deref())
}

/// Prints the locations without sessions.
pub(crate) fn nothing_found(roots: &[PathBuf]) {
    let mut text = match roots {
        [] => "none of the known agents keeps sessions here\n".to_owned(),
        _ => "no recorded session was found in\n".to_owned(),
    };
    for root in roots {
        text += &format!("  {}\n", root.display());
    }
    text += "hint: name a file or folder with --source, or grade.sources in the configuration\n";
    eprint(&text);
}

/// Returns the time that the flag means, relative to `now`. Dates start at midnight UTC.
pub(crate) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, AppError> {
    moment_of("--since", text, now)
}

/// The same for a flag of that name.
pub(crate) fn moment_of(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp, AppError> {
    let hours = |text: &str| {
        let unit = text.chars().next_back()?;
        let number: i64 = text[..text.len() - unit.len_utf8()].trim().parse().ok()?;
        let hours = match unit.to_ascii_lowercase() {
            'h' => 1,
            'd' => 24,
            'w' => 24 * 7,
            _ => return None,
        };
        let hours = number.checked_mul(hours).filter(|hours| (0..=24 * 36_500).contains(hours))?;
        now.checked_sub(SignedDuration::from_hours(hours)).ok()
    };
    let date = || Some(text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    // Times before dates: a date is a prefix of a time.
    let time = || text.parse::<Timestamp>().ok();
    hours(text).or_else(time).or_else(date).ok_or_else(|| {
        let shown = selftest_text::one_line(text, 60);
        AppError::usage(anyhow!("{flag} {shown:?} is not a valid time"))
            .hint(Some("write 12h, 30d or 2w, or a date such as 2026-11-01"))
    })
}

/// Returns the options of the grader from the configuration and the flags.
pub(crate) fn options(project: &Project, args: &SessionArgs) -> Result<GraderOptions, AppError> {
    let config = project.load(Vec::new())?.config;
    let (settings, prices) = (config.grade, config.prices);
    let sources = roots(project, args)?;
    let now = selftest_clock::now();
    let since = args.since.as_ref().map(|text| moment(text, now)).transpose()?;
    let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
    Ok(GraderOptions { sources, since, agent: args.agent.clone(), settings, prices, redactor })
}

/// An address as it is, a path below the project folder. A variable that is set to nothing is as
/// good as none.
pub(crate) fn database(project: &Project, args: &DatabaseArgs) -> String {
    let db = if args.db.is_empty() { DATABASE } else { &args.db };
    if db.contains(':') {
        return db.to_owned();
    }
    project.path(db.as_ref()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_dates() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("12h", "2026-11-22T00:00:00Z"),
            ("30d", "2026-10-23T12:00:00Z"),
            ("2w", "2026-11-08T12:00:00Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("2026-11-01T10:00:00+02:00", "2026-11-01T08:00:00Z"),
        ] {
            assert_eq!(moment(text, now).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "d", "-3d", "30", "soon", "30µ", "99999999999999999999d", "900000000w"] {
            let failure = moment(text, now).unwrap_err();
            assert!(failure.render(false).contains("is not a valid time"), "{text}");
        }
    }
}
