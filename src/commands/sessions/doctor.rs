//! `selftest sessions doctor`: for each place what was found, read and refused, and why.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selftest_app::{AppError, Project};
use selftest_sessions::{
    AgentHome, Event, SessionFile, SessionFormat, SessionHead, SessionSink, UnknownBlocks,
    VerifiedVersion, audit_files, is_newer, newer_than_verified,
};
use selftest_text::escape::terminal;
use selftest_text::one_line;
use selftest_text::redact::Redactor;
use selftest_text::wording::plural;
use serde::Serialize;

use super::find;
use crate::exit::Exit;
use crate::ui::{FileProgress, print};

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
    /// All existing files: `found`, `parts` and those of `ignored`.
    files: u64,
    /// Files that may hold sessions; a folder that is one session counts as one.
    found: u64,
    /// Further files of sessions that consist of several.
    parts: u64,
    /// Of them those with a session.
    read: u64,
    sessions: u64,
    /// Files that were read, by format.
    formats: BTreeMap<SessionFormat, u64>,
    refused: Vec<Refused>,
    /// Files that cannot hold sessions, by reason.
    ignored: Vec<Refused>,
    /// Files that were read, of which a part was lost.
    damaged: u64,
    /// Records that cannot be parsed.
    bad_records: u64,
    /// Records that are no part of a conversation, or of a kind that is not known.
    ignored_records: u64,
    /// Sessions of agents that are newer than the newest verified version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    newer: Vec<NewerAgent>,
    #[serde(skip_serializing_if = "UnknownBlocks::is_empty")]
    unknown_blocks: UnknownBlocks,
}

/// Files that hold no session or are ignored, for one reason.
#[derive(Debug, Serialize)]
struct Refused {
    reason: String,
    count: u64,
    /// The first of them.
    files: Vec<String>,
}

/// Sessions of an agent that is newer than the newest verified version.
#[derive(Debug, Serialize)]
struct NewerAgent {
    agent: String,
    /// The newest version that was found.
    version: String,
    /// The newest version whose files were verified.
    verified: VerifiedVersion,
    sessions: u64,
}

/// Takes sessions and keeps only the versions of newer agents.
#[derive(Default)]
struct Versions(Vec<NewerAgent>);

impl SessionSink for Versions {
    fn event(&mut self, _: Event<'_>) {}
    fn end(&mut self, head: SessionHead) {
        let Some(version) = head.agent_version else { return };
        let Some(verified) = newer_than_verified(&head.agent, &version) else { return };
        // One line per agent with its newest version: the reader is behind in any case.
        let at = self.0.iter().position(|known| known.agent == head.agent);
        if let Some(known) = at.map(|at| &mut self.0[at]) {
            known.sessions += 1;
            if is_newer(&version, &known.version) {
                known.version = version;
            }
        } else {
            let agent = head.agent;
            self.0.push(NewerAgent { agent, version, verified, sessions: 1 });
        }
    }
    fn restart(&mut self) {}
    // Only the heads are used, and outputs are most of a session.
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
    // All places are searched before the first file is read, because the bar needs the total.
    let progress = FileProgress::new(project, found.iter().map(Vec::len).sum());
    let places: Vec<Place> = roots
        .iter()
        .zip(found)
        .map(|(root, found)| examine(root, agent(root), found, redactor, &progress))
        .collect();
    progress.finish();
    if as_json {
        let mut json = serde_json::json!(places);
        // Paths and reasons quote the files, which may hold secrets.
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
        files: 0,
        found: 0,
        parts: 0,
        read: 0,
        sessions: 0,
        formats: BTreeMap::new(),
        refused: Vec::new(),
        ignored: Vec::new(),
        damaged: 0,
        bad_records: 0,
        ignored_records: 0,
        newer: Vec::new(),
        unknown_blocks: UnknownBlocks::default(),
    };
    let audit = audit_files(root, &found);
    (place.files, place.parts) = (audit.files, audit.parts);
    place.ignored = audit
        .ignored
        .into_iter()
        .map(|ignored| Refused {
            reason: ignored.reason,
            count: ignored.count,
            files: ignored.files.iter().map(|file| file.display().to_string()).collect(),
        })
        .collect();
    let mut versions = Versions::default();
    for found in found {
        place.found += 1;
        progress.step();
        match selftest_sessions::read(&found.source, &mut versions) {
            Ok(reading) => {
                place.read += 1;
                place.sessions += reading.sessions;
                *place.formats.entry(reading.format).or_default() += 1;
                // A torn file counts as read and damaged: its sessions are shown up to the tear.
                place.damaged += u64::from(reading.notes.describe_losses().is_some());
                place.bad_records += reading.notes.bad_records;
                place.ignored_records += reading.notes.ignored_records;
                place.unknown_blocks.add(&reading.notes.unknown_blocks);
            }
            Err(error) => {
                let reason = one_line(&redactor.apply(&error.to_string()), MAX_REASON);
                place.refuse(reason, found.source.path());
            }
        }
    }
    place.refused.sort_by(|a, b| (b.count, &a.reason).cmp(&(a.count, &b.reason)));
    place.newer = versions.0;
    place
}

impl Place {
    fn refuse(&mut self, reason: String, file: &Path) {
        let at = self.refused.iter().position(|refused| refused.reason == reason);
        let at = at.unwrap_or_else(|| {
            if self.refused.len() < MAX_REASONS {
                self.refused.push(Refused { reason, count: 0, files: Vec::new() });
            } else {
                // The last entry collects the rest, so the counts still add up.
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
            "{:<14} {:>6} {:>6} {:>6} {:>8} {:>7} {:>7}  {}\n",
            "AGENT", "FILES", "FOUND", "READ", "SESSIONS", "REFUSED", "IGNORED", "PLACE"
        );
    }
    for place in places {
        let count = |files: &[Refused]| files.iter().map(|files| files.count).sum::<u64>();
        let (refused, ignored) = (count(&place.refused), count(&place.ignored));
        text += &format!(
            "{:<14} {:>6} {:>6} {:>6} {:>8} {refused:>7} {ignored:>7}  {}\n",
            place.agent.unwrap_or("-"),
            place.files,
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
        if place.parts > 0 {
            text +=
                &format!("  {} belong to sessions of several files\n", plural(place.parts, "file"));
        }
        for newer in &place.newer {
            text += &format!(
                "  {} of {} up to {}: newer than {}, the newest verified version (by {})\n",
                plural(newer.sessions, "session"),
                terminal(&newer.agent, 40),
                terminal(&newer.version, 40),
                newer.verified.version,
                newer.verified.basis,
            );
        }
        if place.bad_records + place.ignored_records > 0 {
            text += &format!(
                "  {} cannot be parsed, {} are no part of a conversation or of an unknown kind\n",
                plural(place.bad_records, "record"),
                place.ignored_records,
            );
        }
        if place.damaged > 0 {
            text += &format!("  a part is lost of {}\n", plural(place.damaged, "file"));
        }
        if let Some(words) = place.unknown_blocks.describe() {
            text += &format!("  {}\n", terminal(&words, MAX_REASON));
        }
        let refused = place.refused.iter().map(|files| ("refused", files));
        let ignored = place.ignored.iter().map(|files| ("ignored", files));
        for (what, refused) in refused.chain(ignored) {
            text += &format!(
                "  {what}: {} × {}, such as {}\n",
                refused.count,
                terminal(&refused.reason, MAX_REASON),
                refused.files.first().map(|file| terminal(file, 400)).unwrap_or_default(),
            );
        }
    }
    if !absent.is_empty() {
        text += &format!("no sessions found of: {}\n", absent.join(", "));
    }
    text
}
