//! `selftest sessions doctor`: for each place what was found, read and refused, and why.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selftest_app::{AppError, Project};
use selftest_sessions::{
    AgentHome, Event, SessionFile, SessionFormat, SessionHead, SessionSink, UnknownBlocks,
};
use selftest_text::escape::terminal;
use selftest_text::one_line;
use selftest_text::redact::Redactor;
use selftest_text::wording::plural;
use serde::Serialize;

use super::find;
use crate::exit::Exit;
use crate::progress::FileProgress;
use crate::ui::print;

/// Maximum number of distinct reasons per location; a foreign folder may have any number.
const MAX_REASONS: usize = 20;

/// Files that are named for a reason.
const MAX_NAMED: usize = 3;

/// Bytes of a reason.
const MAX_REASON: usize = 200;

/// Counts of the files of one place, read and refused.
#[derive(Debug, Serialize)]
struct Place {
    /// The agent whose home it is.
    agent: Option<&'static str>,
    path: String,
    /// Files that may hold sessions.
    found: u64,
    /// Of them those with a session.
    read: u64,
    sessions: u64,
    /// Files that were read, by format.
    formats: BTreeMap<SessionFormat, u64>,
    refused: Vec<Refused>,
    /// Files that were read, of which a part was lost.
    damaged: u64,
    #[serde(skip_serializing_if = "UnknownBlocks::is_empty")]
    unknown_blocks: UnknownBlocks,
}

/// Files that hold no session, for one reason.
#[derive(Debug, Serialize)]
struct Refused {
    reason: String,
    count: u64,
    /// The first of them.
    files: Vec<String>,
}

/// Takes sessions and keeps none.
struct Nothing;

impl SessionSink for Nothing {
    fn event(&mut self, _: Event<'_>) {}
    fn end(&mut self, _: SessionHead) {}
    fn restart(&mut self) {}
    fn wants_outputs(&self) -> bool {
        false
    }
}

pub(super) fn doctor(
    project: &Project,
    roots: &[PathBuf],
    homes: &[AgentHome],
    as_json: bool,
    redactor: &Redactor,
) -> Result<Exit, AppError> {
    let agent = |root: &Path| homes.iter().find(|home| home.path == root).map(|home| home.agent);
    let found: Vec<Vec<SessionFile>> =
        roots.iter().map(|root| find(std::slice::from_ref(root))).collect();
    let progress = FileProgress::new(project, found.iter().map(Vec::len).sum());
    let places: Vec<Place> = roots
        .iter()
        .zip(found)
        .map(|(root, found)| examine(root, agent(root), found, redactor, &progress))
        .collect();
    progress.finish();
    if as_json {
        let mut json = serde_json::json!(places);
        redactor.apply_json(&mut json);
        print(&format!("{json:#}\n"))?;
    } else {
        print(&table(&places, &absent(&places, homes)))?;
    }
    Ok(Exit::Passed)
}

/// Agents that keep nothing on this machine.
fn absent(places: &[Place], homes: &[AgentHome]) -> Vec<&'static str> {
    let mut absent: Vec<&str> = homes.iter().map(|home| home.agent).collect();
    absent.retain(|agent| !places.iter().any(|place| place.agent == Some(agent)));
    absent.sort_unstable();
    absent.dedup();
    absent
}

fn examine(
    root: &Path,
    agent: Option<&'static str>,
    found: Vec<SessionFile>,
    redactor: &Redactor,
    progress: &FileProgress,
) -> Place {
    let mut place = Place {
        agent,
        path: root.display().to_string(),
        found: 0,
        read: 0,
        sessions: 0,
        formats: BTreeMap::new(),
        refused: Vec::new(),
        damaged: 0,
        unknown_blocks: UnknownBlocks::default(),
    };
    for found in found {
        place.found += 1;
        progress.step();
        match selftest_sessions::read(&found.source, &mut Nothing) {
            Ok(reading) => {
                place.read += 1;
                place.sessions += reading.sessions;
                *place.formats.entry(reading.format).or_default() += 1;
                place.damaged += u64::from(reading.notes.describe_losses().is_some());
                place.unknown_blocks.add(&reading.notes.unknown_blocks);
            }
            Err(error) => {
                let reason = one_line(&redactor.apply(&error.to_string()), MAX_REASON);
                place.refuse(reason, found.source.path());
            }
        }
    }
    place.refused.sort_by(|a, b| (b.count, &a.reason).cmp(&(a.count, &b.reason)));
    place
}

impl Place {
    fn refuse(&mut self, reason: String, file: &Path) {
        let at = self.refused.iter().position(|refused| refused.reason == reason);
        let at = at.unwrap_or_else(|| {
            if self.refused.len() < MAX_REASONS {
                self.refused.push(Refused { reason, count: 0, files: Vec::new() });
            } else {
                "other reasons".clone_into(&mut self.refused[MAX_REASONS - 1].reason);
            }
            self.refused.len() - 1
        });
        let refused = &mut self.refused[at];
        refused.count += 1;
        if refused.files.len() < MAX_NAMED {
            refused.files.push(file.display().to_string());
        }
    }
}

fn table(places: &[Place], absent: &[&str]) -> String {
    let mut text = String::new();
    if !places.is_empty() {
        text += &format!(
            "{:<14} {:>6} {:>6} {:>8} {:>7}  {}\n",
            "AGENT", "FOUND", "READ", "SESSIONS", "REFUSED", "PLACE"
        );
    }
    for place in places {
        let refused: u64 = place.refused.iter().map(|refused| refused.count).sum();
        text += &format!(
            "{:<14} {:>6} {:>6} {:>8} {refused:>7}  {}\n",
            place.agent.unwrap_or("-"),
            place.found,
            place.read,
            place.sessions,
            terminal(&place.path, 400),
        );
        let mut formats: Vec<(&SessionFormat, &u64)> = place.formats.iter().collect();
        formats.sort_by(|(_, one), (_, other)| other.cmp(one));
        let formats: Vec<String> =
            formats.iter().map(|(format, count)| format!("{count} {format}")).collect();
        if !formats.is_empty() {
            text += &format!("  read as: {}\n", formats.join(", "));
        }
        if place.damaged > 0 {
            text += &format!("  a part is lost of {}\n", plural(place.damaged, "file"));
        }
        if let Some(words) = place.unknown_blocks.describe() {
            text += &format!("  {}\n", terminal(&words, MAX_REASON));
        }
        for refused in &place.refused {
            text += &format!(
                "  refused: {} × {}, such as {}\n",
                refused.count,
                terminal(&refused.reason, MAX_REASON),
                refused.files.first().map(|file| terminal(file, 400)).unwrap_or_default(),
            );
        }
    }
    if !absent.is_empty() {
        text += &format!("nothing here of: {}\n", absent.join(", "));
    }
    text
}
