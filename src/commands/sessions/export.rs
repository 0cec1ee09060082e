//! `selftest sessions export`: sessions in a form that others read. Secrets are taken out first.

use crate::commands::sessions::ExportFormat;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use selftest_app::AppError;
use selftest_grading::report::session;
use selftest_models::prices::ModelPrices;
use selftest_sessions::{Session, to_atif};
use selftest_text::file::replace;
use selftest_text::one_line;
use selftest_text::redact::Redactor;
use serde_json::json;

use super::{NamedSession, Shown};
use crate::exit::Exit;
use crate::ui::{eprint, print};

impl ExportFormat {
    /// The ending of a file's name.
    fn extension(self) -> &'static str {
        match self {
            Self::Atif => "json",
            Self::Markdown => "md",
            Self::Html => "html",
            Self::Jsonl => "jsonl",
        }
    }

    /// Whether several sessions can stand in one text.
    fn joins(self) -> bool {
        matches!(self, Self::Markdown | Self::Jsonl)
    }

    fn write(
        self,
        session: &Session,
        prices: &ModelPrices,
        redactor: &Redactor,
    ) -> Result<String, AppError> {
        let redacted = |mut json: serde_json::Value| {
            redactor.apply_json(&mut json);
            json
        };
        Ok(match self {
            Self::Atif => format!("{:#}\n", redacted(to_atif(session))),
            Self::Markdown => session::render_markdown(session),
            Self::Html => session::render_html(session, prices)
                .map_err(|error| AppError::setup(anyhow!("cannot render the page: {error}")))?,
            Self::Jsonl => {
                let about = json!({ "session": session.head, "left_out": session.left_out });
                let events = session.events.iter().map(|event| json!(event));
                let lines = std::iter::once(about).chain(events).map(redacted);
                lines.fold(String::new(), |text, line| text + &line.to_string() + "\n")
            }
        })
    }
}

/// Exports the sessions that these names stand for.
pub(super) fn export(
    chosen: &[NamedSession],
    roots: &[PathBuf],
    format: ExportFormat,
    target: Option<&Path>,
    prices: &ModelPrices,
    redactor: &Redactor,
) -> Result<Exit, AppError> {
    let mut sessions = Vec::new();
    for named in chosen {
        for (place, Shown { mut session, notes, .. }) in
            named.read(roots, None)?.into_iter().enumerate()
        {
            if let Some(lost) = notes.describe_losses().filter(|_| place == 0) {
                let shown = one_line(&named.name, 400);
                eprint(&format!("warning: {shown}: {}\n", one_line(&lost, 200)));
            }
            session.rewrite(|text| redactor.apply(text));
            let cwd = session.head.cwd.take();
            // The folder is no text of an event, and may hold a user's name or a token as well.
            session.head.cwd = cwd.map(|cwd| redactor.apply(&cwd).into_owned());
            sessions.push(session);
        }
    }
    let Some(folder) = target else {
        // Two JSON documents or two pages in a row are neither.
        if sessions.len() > 1 && !format.joins() {
            let error =
                anyhow!("{} sessions do not fit into one {}", sessions.len(), format.extension());
            return Err(AppError::usage(error).hint(Some(
                "--output DIR writes a file for each, --format jsonl prints them all",
            )));
        }
        for session in &sessions {
            print(&format.write(session, prices, redactor)?)?;
        }
        return Ok(Exit::Passed);
    };
    let failed = |path: &Path, error: std::io::Error| {
        AppError::setup(anyhow!("cannot write {}: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let writer = std::process::id().to_string();
    for (number, session) in sessions.iter().enumerate() {
        // Ids are foreign, and no part of a path.
        let path = folder.join(format!("session-{:04}.{}", number + 1, format.extension()));
        let text = format.write(session, prices, redactor)?;
        replace(&path, &writer, &text).map_err(|error| failed(&path, error))?;
        print(&format!("{}  {}\n", path.display(), one_line(&session.head.id, 200)))?;
    }
    Ok(Exit::Passed)
}
