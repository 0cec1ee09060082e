//! Options of `selftest grade` and `selftest sessions`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

/// Default database.
pub const DATABASE: &str = ".selftest/selftest.db";

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

/// Actions on recorded sessions.
#[derive(Debug, Subcommand)]
pub enum SessionsAction {
    /// List recorded sessions, newest first
    List {
        /// Maximum number of sessions to list, newest files first; 0 for all
        #[arg(long, value_name = "N", default_value_t = 30)]
        limit: usize,
    },
    /// Print the transcript of a session
    Show {
        /// Its file, id or id prefix
        session: String,
        /// Print full texts instead of excerpts
        #[arg(long)]
        full: bool,
        /// Print events from this number on, 100 unless --events is given
        #[arg(long, value_name = "N")]
        from: Option<u64>,
        /// Maximum number of events to print
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        events: Option<u64>,
        /// Print one event in full, with three events before and after it
        #[arg(long, value_name = "N", conflicts_with_all = ["from", "events"])]
        event: Option<u64>,
    },
    /// Search the transcripts of graded sessions; grades and indexes new sessions first
    Search {
        /// Words that must occur in one event, "quoted phrases", prefixes*
        #[arg(required = true, value_name = "WORDS")]
        words: Vec<String>,
        /// Only sessions in this folder; its last component is enough
        #[arg(long, value_name = "FOLDER", help_heading = "Which sessions")]
        project: Option<String>,
        /// Only sessions with this model
        #[arg(long, value_name = "NAME", help_heading = "Which sessions")]
        model: Option<String>,
        /// Only sessions started before then: a date such as 2026-11-01, or 30d
        #[arg(long, value_name = "TIME", help_heading = "Which sessions")]
        until: Option<String>,
        /// Only events of this tool, such as Bash
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Only events with a failed tool call
        #[arg(long)]
        errors: bool,
        /// Maximum number of sessions to list
        #[arg(long, value_name = "N", default_value_t = 20,
            value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
        /// Continue after a page: its `next`
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
        /// Do not scan; search the existing index
        #[arg(long)]
        no_scan: bool,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List for each source what was found, read and refused, and why
    Doctor {
        /// Output format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: DoctorFormat,
    },
    /// Export sessions of any agent for other programs or people; secrets are redacted
    Export {
        /// Their files, ids or id prefixes
        #[arg(required = true, value_name = "FILE|ID")]
        sessions: Vec<String>,
        /// Export format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: ExportFormat,
        /// Write one file per session to this folder instead of printing
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Label whether the tasks of graded sessions succeeded, one by one or from a file
    Label(SessionLabelArgs),
    /// Estimate which tasks succeeded, from the labels of each project
    Estimate(EstimateArgs),
}

/// Labels of tasks.
#[derive(Debug, Args)]
#[group(skip)]
#[command(group(ArgGroup::new("said").required(true)))]
pub struct SessionLabelArgs {
    /// Their ids or id prefixes
    #[arg(required_unless_present = "labels", conflicts_with = "labels", value_name = "ID")]
    pub sessions: Vec<String>,
    /// They succeeded
    #[arg(long, group = "said")]
    pub success: bool,
    /// They failed
    #[arg(long, group = "said")]
    pub failure: bool,
    /// Import labels: JSON lines or a JSON list of objects, each with a session, whether it succeeded
    /// or its reward, and its task
    #[arg(long, group = "said", value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Minimum reward in the file that counts as success
    #[arg(long, value_name = "0..1", default_value_t = 1.0, value_parser = unit,
        requires = "labels")]
    pub least_reward: f64,
    /// The task, if several sessions share it
    #[arg(long, conflicts_with = "labels", value_name = "NAME")]
    pub task: Option<String>,
    /// Reason, for later readers
    #[arg(long, conflicts_with = "labels", value_name = "TEXT")]
    pub note: Option<String>,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// Arguments of an estimate.
#[derive(Debug, Args)]
pub struct EstimateArgs {
    /// Only this project: the folder that its sessions worked in
    #[arg(long, value_name = "FOLDER")]
    pub project: Option<String>,
    /// Number of unlabelled sessions to list that probably failed
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub limit: usize,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// How `sessions doctor` prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    /// A table, for people
    #[default]
    Text,
    /// JSON
    Json,
}

/// Format of exported sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A trajectory of the Agent Trajectory Interchange Format
    #[default]
    Atif,
    /// Markdown
    Markdown,
    /// One self-contained page
    Html,
    /// One line about the session, then one per event, as parsed by selftest
    Jsonl,
}

/// Actions on grades.
#[derive(Debug, Subcommand)]
pub enum GradeAction {
    /// Grade the newest sessions that are new or have changed
    #[command(short_flag = 'g')]
    Latest {
        /// Maximum number of sessions, newest files first
        #[arg(default_value_t = 10, value_name = "N")]
        count: usize,
    },
    /// Grade new sessions and summarise the last days
    #[command(short_flag = 's')]
    Summary {
        /// Number of days
        #[arg(short, long, value_name = "N", default_value_t = 7,
            value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
        /// Do not scan; summarise existing grades
        #[arg(long)]
        no_scan: bool,
    },
    /// Grade new sessions and write the report of a week; with --agent only print it
    #[command(short_flag = 'r')]
    Weekly {
        /// ISO week, such as 2026-W47; default: the current one
        #[arg(long, value_name = "WEEK")]
        week: Option<String>,
        /// Do not scan; report existing grades
        #[arg(long)]
        no_scan: bool,
    },
    /// Grade these files or folders and show the grades
    #[command(short_flag = 'f')]
    File {
        /// Files or folders
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Grade sessions as they finish, until interrupted
    Watch {
        /// Time without a write after which a session counts as finished: seconds, or 30s, 2m
        #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::run::seconds)]
        quiet: f64,
        /// Time between scans: seconds, or 5s, 1m
        #[arg(long, value_name = "TIME", default_value = "5s", value_parser = super::run::seconds)]
        interval: f64,
        /// Scan once and exit
        #[arg(long)]
        once: bool,
    },
    /// Let a model grade one session: problem solved, tests added, code clean, edge cases
    Session {
        /// Its id or id prefix
        session: String,
        /// The model; default: grade.quality.model of the configuration
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
    },
    /// Let a model grade sessions without a grade of this model, newest first
    Backfill {
        /// Number of sessions to grade per model, not counting failures
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        limit: Option<u64>,
        /// The models, separated by commas; default: grade.quality.model of the configuration
        #[arg(long = "model", value_name = "NAMES", value_delimiter = ',')]
        models: Vec<String>,
        /// Number of sessions graded at once; default: grade.quality.concurrency of the configuration
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
        concurrency: Option<u32>,
        /// Do not scan for new sessions first
        #[arg(long)]
        no_scan: bool,
        /// Queue them for workers; those that failed there come last
        #[arg(long, conflicts_with = "concurrency")]
        queue: bool,
    },
    /// List the newest grades by models
    Recent {
        /// Only those with at least this overall score
        #[arg(long, value_name = "SCORE", value_parser = unit)]
        min_overall: Option<f64>,
        /// Maximum number of grades to list
        #[arg(long, value_name = "N", default_value_t = 20,
            value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// Print the grade of a session with the evidence behind it
    Show {
        /// Its id or id prefix
        session: String,
    },
    /// Override a grade; both are kept, and yours counts
    Override(OverrideArgs),
    /// Compare the rules' grades with overrides and with graders by model; propose weights
    Agreement,
    /// Report how far rules, models and people differ, and flag differences above grade.discrepancy
    Calibration,
}

/// A person's grade of a session.
#[derive(Debug, Args)]
// Not the group of the struct itself, to which the session and the reason would belong too.
#[group(skip)]
#[command(group(ArgGroup::new("grades").required(true).multiple(true)))]
pub struct OverrideArgs {
    /// Its id or id prefix
    pub session: String,
    /// True if the task was completed
    #[arg(long, value_name = "true|false", group = "grades")]
    pub task_completed: Option<bool>,
    /// Efficiency of tool use
    #[arg(long, value_name = "1..5", group = "grades",
        value_parser = clap::value_parser!(u8).range(1..=5))]
    pub tool_calls_efficient: Option<u8>,
    /// Quality of the final response
    #[arg(long, value_name = "1..5", group = "grades",
        value_parser = clap::value_parser!(u8).range(1..=5))]
    pub response_quality: Option<u8>,
    /// True if errors were recovered from
    #[arg(long, value_name = "true|false", group = "grades")]
    pub errors_recovered: Option<bool>,
    /// Reason, for later readers
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

fn unit(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0.0 to 1.0".to_owned())
}
