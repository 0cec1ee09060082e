//! `selftest db`: copies the database, exports it, deletes what is old.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Subcommand;
use selftest_app::AppError;
use selftest_store::{BackupError, BackupOutcome, HumanDataPolicy, PruneCounts, Store};
use selftest_text::wording::plural;
use serde_json::json;

use crate::args::sessions::{database, moment_of};
use crate::args::{GlobalArgs, StoreArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print, printable_line};

/// Actions on the database.
#[derive(Debug, Subcommand)]
pub enum DbAction {
    /// Copy the database to a new file while it is in use; for PostgreSQL, print how
    Backup {
        /// The copy; an existing file is not overwritten
        file: PathBuf,
    },
    /// Print the database as JSON Lines, each with a table name and a row
    Export {
        /// Write to this new file instead of printing
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Delete old rows and print the counts. Keeps sessions that people corrected or labelled, and
    /// decisions on skills and gaps
    Prune {
        /// Age limit: 90d, 26w, or a date such as 2026-08-01
        #[arg(long, value_name = "TIME", required = true)]
        older_than: String,
        /// Only print what would be deleted
        #[arg(long)]
        dry_run: bool,
        /// Also delete old sessions that people corrected or labelled, with their reasons
        #[arg(long)]
        people: bool,
    },
}

pub(super) async fn execute(
    action: &DbAction,
    args: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let store = Store::open(&database(&project, &args.database)).await?;
    let done = match action {
        DbAction::Backup { file } => backup(&store, &project.path(file), args.json).await,
        DbAction::Export { output } => {
            let output = output.as_ref().map(|file| project.path(file));
            export(&store, output.as_deref()).await
        }
        DbAction::Prune { older_than, dry_run, people } => {
            let people = if *people { HumanDataPolicy::Delete } else { HumanDataPolicy::Keep };
            prune(&store, older_than, *dry_run, people, args.json).await
        }
    };
    store.close().await;
    done.map(|()| Exit::Passed)
}

async fn backup(store: &Store, file: &Path, json: bool) -> Result<(), AppError> {
    let made = store.backup(file).await.map_err(|error| match error {
        BackupError::Store(error) => AppError::from(error),
        error @ BackupError::File { .. } => AppError::usage(anyhow!(error))
            .hint(Some("name a new file in a folder that you may write to")),
    })?;
    let shown = file.display();
    match made {
        BackupOutcome::Copied(bytes) if json => {
            print(&format!("{:#}\n", json!({ "file": shown.to_string(), "bytes": bytes })))
        }
        BackupOutcome::Copied(bytes) => {
            print(&format!("{} copied to {shown}: {bytes} bytes\n", store.location()))
        }
        BackupOutcome::ByServer { address, schema } => {
            let error = anyhow!("{address} is copied by PostgreSQL's own program");
            // Nothing escapes a `'` between quotation marks of a shell, so they end before it and
            // begin again behind it.
            let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
            let command = format!(
                "pg_dump --format=custom --schema={} --file={} --dbname={}",
                quoted(&schema),
                quoted(&shown.to_string()),
                quoted(&address)
            );
            Err(AppError::usage(error).hint(Some(command)))
        }
    }
}

/// One line for each row.
async fn export(store: &Store, output: Option<&Path>) -> Result<(), AppError> {
    let mut writer: Box<dyn Write> = match output {
        None => Box::new(std::io::stdout().lock()),
        Some(file) => {
            let mut options = OpenOptions::new();
            // Never over another file, and for nobody else to read: it holds what people and agents
            // said.
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let opened = options.open(file);
            Box::new(opened.map_err(|error| {
                AppError::usage(anyhow!("cannot write {}: {error}", file.display()))
                    .hint(Some("name a new file in a folder that you may write to"))
            })?)
        }
    };
    let mut lines = BufWriter::new(&mut writer);
    let exported = store
        .export(|table, row| {
            let line = format!("{}\n", json!({ "table": table, "row": row }));
            // In the log of a CI system, a line of a session could be taken for one of its
            // commands.
            let line = if output.is_none() { printable_line(&line) } else { line.into() };
            lines.write_all(line.as_bytes())
        })
        .await?;
    // A writer that is dropped flushes too, but nobody learns of its errors.
    let written = exported.and_then(|rows| lines.flush().map(|()| rows));
    match written {
        Ok(rows) => {
            if let Some(file) = output {
                eprint(&format!("{} written to {}\n", plural(rows, "row"), file.display()));
            }
            Ok(())
        }
        // A reader that has enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(AppError::setup(anyhow!("cannot write the export: {error}"))),
    }
}

async fn prune(
    store: &Store,
    older_than: &str,
    dry_run: bool,
    people: HumanDataPolicy,
    json: bool,
) -> Result<(), AppError> {
    let now = selftest_clock::now();
    let before = moment_of("--older-than", older_than, now)?;
    if before > now {
        let error =
            anyhow!("--older-than {before} lies in the future: everything would be deleted");
        return Err(AppError::usage(error).hint(Some("write 90d or 26w, or a date that is past")));
    }
    let pruned = if dry_run {
        store.count_prunable(before, people).await?
    } else {
        store.prune(before, people).await?
    };
    if json {
        let rows: serde_json::Map<_, _> =
            pruned.rows.iter().map(|(kind, rows)| (kind.name().to_owned(), json!(rows))).collect();
        let value = json!({
            "before": before, "dry_run": dry_run, "rows": rows,
            "kept_sessions": pruned.kept_sessions,
        });
        return print(&format!("{value:#}\n"));
    }
    print(&told(&pruned, &before.strftime("%Y-%m-%d %H:%M UTC").to_string(), dry_run))
}

/// The counts, for people.
fn told(pruned: &PruneCounts, before: &str, dry_run: bool) -> String {
    let (mut text, total) = (String::new(), pruned.rows.iter().map(|(_, rows)| rows).sum::<u64>());
    for (kind, rows) in &pruned.rows {
        text += &format!("{rows:>9}  {}\n", kind.description());
    }
    if pruned.kept_sessions > 0 {
        let kept = plural(pruned.kept_sessions, "session");
        text += &format!(
            "{kept} that people have corrected or labelled kept; --people deletes them too\n"
        );
    }
    let verb = if dry_run { "would be deleted" } else { "deleted" };
    text.push_str(&format!("{} from before {before} {verb}\n", plural(total, "row")));
    text
}
