//! The flags of `selftest grade` and `selftest sessions`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

/// The database unless another is named.
pub const DATABASE: &str = ".selftest/selftest.db";

/// Which recorded sessions.
#[derive(Debug, Clone, Args)]
pub struct SessionArgs {
    /// Read sessions from this file or folder; may be repeated. Default: grade.sources of the
    /// configuration, else where the known agents keep theirs
    #[arg(long = "source", value_name = "PATH", global = true, help_heading = "Which sessions")]
    pub sources: Vec<PathBuf>,
    /// Only sessions begun since then: 30d, 12h, 2w, or a date such as 2026-11-01
    #[arg(long, value_name = "TIME", global = true, help_heading = "Which sessions")]
    pub since: Option<String>,
    /// Only sessions of this agent, such as claude-code
    #[arg(long, value_name = "NAME", global = true, help_heading = "Which sessions")]
    pub agent: Option<String>,
}

/// How results are printed, and where they are kept.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// Print JSON instead of text
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    /// Where they are kept.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// Where grades, skills and reflections are kept.
#[derive(Debug, Clone, Args)]
pub struct DatabaseArgs {
    /// Use this database: a path, or the address of a PostgreSQL database
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
        /// Most sessions to list, from the newest files; 0 for all
        #[arg(long, value_name = "N", default_value_t = 30)]
        limit: usize,
    },
    /// Print what was said and done in a session
    Show {
        /// Its file, its id or the beginning of its id
        session: String,
        /// Print texts whole instead of their beginnings
        #[arg(long)]
        full: bool,
        /// Print only events from this number on, 100 unless --events says how many
        #[arg(long, value_name = "N")]
        from: Option<u64>,
        /// Print at most so many events
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        events: Option<u64>,
        /// Print one event whole, with the three before and after it
        #[arg(long, value_name = "N", conflicts_with_all = ["from", "events"])]
        event: Option<u64>,
    },
    /// Search what was said and done in graded sessions; grade and index what is new first
    Search {
        /// Words that have to stand in one event, "phrases" in quotation marks, beginnings*
        #[arg(required = true, value_name = "WORDS")]
        words: Vec<String>,
        /// Only sessions in this folder; its last part is enough
        #[arg(long, value_name = "FOLDER", help_heading = "Which sessions")]
        project: Option<String>,
        /// Only sessions in which this model answered
        #[arg(long, value_name = "NAME", help_heading = "Which sessions")]
        model: Option<String>,
        /// Only sessions begun before then: a date such as 2026-11-01, or 30d
        #[arg(long, value_name = "TIME", help_heading = "Which sessions")]
        until: Option<String>,
        /// Only events of this tool, such as Bash
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Only events in which a tool failed
        #[arg(long)]
        errors: bool,
        /// Most sessions to list
        #[arg(long, value_name = "N", default_value_t = 20,
            value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
        /// Go on behind a page: its `next`
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
        /// Grade and index nothing: search what is indexed
        #[arg(long)]
        no_scan: bool,
        /// Where they are kept.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Say for each place what was found, read and refused, and why
    Doctor {
        /// How it is printed
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: DoctorFormat,
    },
    /// Write sessions of any agent in a form that other programs or people read; secrets are taken out
    Export {
        /// Their files, their ids or the beginnings of their ids
        #[arg(required = true, value_name = "FILE|ID")]
        sessions: Vec<String>,
        /// The form
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: ExportFormat,
        /// Write into this folder, a file for each session, instead of printing
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Say whether the tasks of graded sessions truly succeeded, one by one or from a file
    Label(SessionLabelArgs),
    /// Estimate which tasks succeeded, from the labels of each project
    Estimate(EstimateArgs),
}

/// Whether tasks succeeded.
#[derive(Debug, Args)]
#[group(skip)]
#[command(group(ArgGroup::new("said").required(true)))]
pub struct SessionLabelArgs {
    /// Their ids or the beginnings of their ids
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
    /// The least reward of a file that is a success
    #[arg(long, value_name = "0..1", default_value_t = 1.0, value_parser = unit,
        requires = "labels")]
    pub least_reward: f64,
    /// The task, where several sessions have the same one
    #[arg(long, conflicts_with = "labels", value_name = "NAME")]
    pub task: Option<String>,
    /// Why, for those who read it later
    #[arg(long, conflicts_with = "labels", value_name = "TEXT")]
    pub note: Option<String>,
    /// Where labels are kept.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// Arguments of an estimate.
#[derive(Debug, Args)]
pub struct EstimateArgs {
    /// Only this project: the folder that its sessions worked in
    #[arg(long, value_name = "FOLDER")]
    pub project: Option<String>,
    /// Sessions to name that hardly succeeded, of those without a label
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub limit: usize,
    /// Where labels are kept.
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

/// A form of exported sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A trajectory of the Agent Trajectory Interchange Format
    #[default]
    Atif,
    /// Markdown
    Markdown,
    /// One page that loads nothing
    Html,
    /// A line about the session, then one for each event, as this program reads them
    Jsonl,
}

/// Actions on grades.
#[derive(Debug, Subcommand)]
pub enum GradeAction {
    /// Grade the newest sessions that have no grade yet or have changed
    #[command(short_flag = 'g')]
    Latest {
        /// How many, by the dates of their files
        #[arg(default_value_t = 10, value_name = "N")]
        count: usize,
    },
    /// Grade what is new, and summarise the last days
    #[command(short_flag = 's')]
    Summary {
        /// How many days
        #[arg(short, long, value_name = "N", default_value_t = 7,
            value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
        /// Grade nothing: summarise the grades that are there
        #[arg(long)]
        no_scan: bool,
    },
    /// Grade what is new, and write the report of a week; with --agent only print one
    #[command(short_flag = 'r')]
    Weekly {
        /// ISO week, such as 2026-W47; default: the current one
        #[arg(long, value_name = "WEEK")]
        week: Option<String>,
        /// Grade nothing: report the grades that are there
        #[arg(long)]
        no_scan: bool,
    },
    /// Grade these files or folders, and show the grades of their sessions
    #[command(short_flag = 'f')]
    File {
        /// Files or folders
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Grade sessions as they finish, until interrupted
    Watch {
        /// Seconds without a write after which a session counts as finished
        #[arg(long, value_name = "SECS", default_value_t = 30.0)]
        quiet: f64,
        /// Seconds between two looks
        #[arg(long, value_name = "SECS", default_value_t = 5.0)]
        interval: f64,
        /// Look once and end
        #[arg(long)]
        once: bool,
    },
    /// Let a model grade one session: problem solved, tests added, code clean, edge cases
    Session {
        /// Its id or the beginning of its id
        session: String,
        /// The model; default: grade.quality.model of the configuration
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
    },
    /// Let a model grade the sessions that it has not graded yet, newest first
    Backfill {
        /// Sessions to grade per model; those that get no grade do not count
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        limit: Option<u64>,
        /// The models, separated by commas; default: grade.quality.model of the configuration
        #[arg(long = "model", value_name = "NAMES", value_delimiter = ',')]
        models: Vec<String>,
        /// Sessions at once; default: grade.quality.concurrency of the configuration
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
        concurrency: Option<u32>,
        /// Do not look for new sessions first
        #[arg(long)]
        no_scan: bool,
        /// Put them into the queue, for workers; those that failed there last
        #[arg(long, conflicts_with = "concurrency")]
        queue: bool,
    },
    /// List the newest grades by models
    Recent {
        /// Only those with at least this overall score
        #[arg(long, value_name = "SCORE", value_parser = unit)]
        min_overall: Option<f64>,
        /// Most grades to list
        #[arg(long, value_name = "N", default_value_t = 20,
            value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// Print the grade of a session with the evidence behind it
    Show {
        /// Its id or the beginning of its id
        session: String,
    },
    /// Say that a grade is wrong; both grades are kept, yours counts
    Override(OverrideArgs),
    /// Compare the rules' grades with overrides and with graders by model; propose weights
    Agreement,
    /// Say how far rules, models and people are apart, and where by more than grade.discrepancy
    Calibration,
}

/// A person's grade of a session.
#[derive(Debug, Args)]
// Not the group of the struct itself, to which the session and the reason would belong too.
#[group(skip)]
#[command(group(ArgGroup::new("grades").required(true).multiple(true)))]
pub struct OverrideArgs {
    /// Its id or the beginning of its id
    pub session: String,
    /// Whether the task was completed
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
    /// Whether errors were recovered from
    #[arg(long, value_name = "true|false", group = "grades")]
    pub errors_recovered: Option<bool>,
    /// Why, for those who read it later
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

fn unit(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0.0 to 1.0".to_owned())
}
