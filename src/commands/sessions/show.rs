//! `selftest sessions show`: what was said and done in one session, or in all of one file.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::anyhow;
use selftest_app::AppError;
use selftest_grading::report::transcript::{TranscriptOptions, transcript};
use selftest_models::prices::ModelPrices;
use selftest_text::one_line;
use selftest_text::redact::Redactor;

use super::named::{NamedSession, Shown};
use crate::exit::Exit;
use crate::ui::{eprint, print};

/// How a session is shown.
pub(super) struct Form {
    pub(super) printing: TranscriptOptions,
    /// The numbers of the events that are shown, where not all are.
    pub(super) part: Option<Range<u64>>,
    pub(super) as_json: bool,
    pub(super) prices: ModelPrices,
}

/// Prints the sessions that a name stands for.
pub(super) fn show(
    session: &NamedSession,
    roots: &[PathBuf],
    form: &Form,
    redactor: &Redactor,
) -> Result<Exit, AppError> {
    let shown = session.read(roots, form.part.as_ref())?;
    if let Some(part) = &form.part
        && let [only] = shown.as_slice()
        && let wanted = form.printing.target.unwrap_or(part.start)
        && !only.session.events.iter().any(|event| event.number == wanted)
    {
        let last = only.overview.events.saturating_sub(1);
        let error = anyhow!("event {wanted} is not among those of the session, 0 to {last}");
        return Err(AppError::usage(error));
    }
    if form.as_json {
        // A secret may stand in any field.
        let mut json = serde_json::json!(shown);
        for (one, json) in shown.iter().zip(json.as_array_mut().into_iter().flatten()) {
            json["cost"] = serde_json::json!(one.overview.cost(&one.session.head, &form.prices));
            json["events_in_all"] = serde_json::json!(one.overview.events);
        }
        redactor.apply_json(&mut json);
        print(&format!("{json:#}\n"))?;
    } else {
        let texts = shown.iter().map(|Shown { session, overview, .. }| {
            transcript(session, overview, &form.prices, redactor, form.printing)
        });
        print(&texts.collect::<Vec<_>>().join("\n\n"))?;
    }
    if let Some(lost) = shown.first().and_then(|shown| shown.notes.describe_losses()) {
        eprint(&format!("warning: {}: {}\n", one_line(&session.name, 400), one_line(&lost, 200)));
    }
    Ok(Exit::Passed)
}
