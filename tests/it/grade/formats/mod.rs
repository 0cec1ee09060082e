//! Every format goes through every command: from its file, and from where its agent keeps it.

mod databases;
mod texts;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use selftest_sessions::SessionFormat;
use serde_json::{Value, json};
use strum::VariantArray as _;

use crate::mcp::conversation::Conversation;
use crate::require;
use crate::server::site::Site;
use crate::workspace::Workspace;

/// What every request is about, so that a search finds all of them.
const REQUEST: &str = "mend the lighthouse";

/// A recorded session of one format.
struct FormatCase {
    /// Name of the format.
    format: &'static str,
    agent: &'static str,
    /// Its id; where the file has none, the beginning of a made-up one, which ends with `-`.
    id: &'static str,
    /// Where the agent keeps it, below the home folder; empty where no agent does.
    home: &'static str,
    /// Its name below a folder of its own.
    file: &'static str,
    contents: Contents,
    /// A file beside it, by name and text.
    beside: Option<(&'static str, &'static str)>,
    /// The file has no request, so there is nothing to grade.
    is_gradable: bool,
}

/// What the file of a session holds.
enum Contents {
    Text(String),
    /// Statements that make a database.
    Database(Vec<String>),
}

impl FormatCase {
    fn text(
        format: &'static str,
        agent: &'static str,
        id: &'static str,
        [home, file]: [&'static str; 2],
        text: impl Into<String>,
    ) -> Self {
        let contents = Contents::Text(text.into());
        Self { format, agent, id, home, file, contents, beside: None, is_gradable: true }
    }

    fn without_request(self) -> Self {
        Self { is_gradable: false, ..self }
    }

    fn with_file_beside(self, name: &'static str, text: &'static str) -> Self {
        Self { beside: Some((name, text)), ..self }
    }

    fn write(&self, workspace: Workspace, folder: &str) -> Workspace {
        let path = format!("{folder}/{}", self.file);
        let workspace = match self.beside {
            Some((name, text)) => {
                let parent = Path::new(&path).parent().unwrap().join(name);
                workspace.file(parent.to_str().unwrap(), text)
            }
            None => workspace,
        };
        match &self.contents {
            Contents::Text(text) => workspace.file(&path, text),
            Contents::Database(statements) => {
                let workspace = workspace.file(&path, "");
                for statement in statements {
                    let _ = workspace.sql_in(&path, statement);
                }
                workspace
            }
        }
    }
}

fn cases() -> Vec<FormatCase> {
    let mut cases = texts::cases();
    cases.extend(databases::cases());
    cases
}

/// The ids of the sessions in the order of the cases, as the list has them.
fn ids_of(cases: &[FormatCase], workspace: &Workspace) -> Vec<String> {
    let words = ["sessions", "list", "--json", "--limit=0", "--source", "sessions"];
    let listed = workspace.clone().args(words).run().exit(0).json();
    let rows = listed.as_array().unwrap();
    assert_eq!(rows.len(), cases.len(), "{listed:#}");
    let id = |case: &FormatCase| {
        let folder = format!("/sessions/{}/", case.format);
        let row = rows.iter().find(|row| row["file"].as_str().unwrap().contains(&folder));
        let row = row.unwrap_or_else(|| panic!("{} is not listed", case.format));
        let id = row["id"].as_str().unwrap();
        let is_own = if case.id.ends_with('-') { id.starts_with(case.id) } else { id == case.id };
        assert!(is_own && row["agent"] == case.agent, "{}: {row:#}", case.format);
        id.to_owned()
    };
    cases.iter().map(id).collect()
}

/// Writes an id as a part of an address.
fn escaped(id: &str) -> String {
    id.replace('%', "%25").replace('/', "%2F").replace('#', "%23")
}

/// Each in a folder of its own, since names repeat.
fn recorded(cases: &[FormatCase]) -> Workspace {
    cases.iter().fold(Workspace::new(), |workspace, case| {
        case.write(workspace, &format!("sessions/{}", case.format))
    })
}

fn strings(items: &Value, name: &str) -> BTreeSet<String> {
    let items = items.as_array().unwrap_or_else(|| panic!("{items:#}"));
    items.iter().map(|item| item[name].as_str().unwrap_or_default().to_owned()).collect()
}

/// Compares ids with numbers of calls and of failed ones.
#[track_caller]
fn same_rows(found: &BTreeSet<(String, u64, u64)>, expected: &BTreeSet<(String, u64, u64)>) {
    let differ: Vec<_> = found.symmetric_difference(expected).collect();
    assert!(differ.is_empty(), "{differ:?}");
}

#[track_caller]
fn same(found: &BTreeSet<String>, expected: &BTreeSet<String>, what: &str) {
    let missing: Vec<_> = expected.difference(found).collect();
    let more: Vec<_> = found.difference(expected).collect();
    assert!(missing.is_empty() && more.is_empty(), "{what}: missing {missing:?}, more {more:?}");
}

#[test]
fn from_the_file_through_every_command() {
    let cases = cases();
    let formats: BTreeSet<String> = cases.iter().map(|case| case.format.to_owned()).collect();
    let known = SessionFormat::VARIANTS.iter().map(ToString::to_string).collect();
    same(&formats, &known, "formats in the table");
    let workspace = recorded(&cases);
    let ids = ids_of(&cases, &workspace);
    let of_graded = cases.iter().zip(&ids).filter(|(case, _)| case.is_gradable);
    let graded: BTreeSet<String> = of_graded.map(|(_, id)| id.clone()).collect();
    let sessions = |words: &[&str]| {
        let words = [&["sessions"], words, &["--source", "sessions"]].concat();
        workspace.clone().args(words)
    };

    let json = workspace.clone().args(["grade", "file", "sessions", "--json"]).run().json();
    same(&strings(&json["grades"], "session_id"), &graded, "grade");
    for (case, id) in cases.iter().zip(&ids) {
        let run = sessions(&["show", id]).run().exit(0);
        assert!(run.stdout.contains("lighthouse"), "{}: {}", case.format, run.stdout);
    }
    let found = sessions(&["search", "lighthouse", "--json", "--limit=500"]).run().exit(0).json();
    let items = found["items"].as_array().unwrap();
    let found = items.iter().map(|item| item["session_id"].as_str().unwrap().to_owned());
    same(&found.collect(), &graded, "search");

    let doctor = sessions(&["doctor", "--format=json"]).run().exit(0).json();
    let place = &doctor[0];
    let formats: BTreeSet<String> = place["formats"].as_object().unwrap().keys().cloned().collect();
    same(&formats, &cases.iter().map(|case| case.format.to_owned()).collect(), "doctor");
    assert_eq!(place["refused"].as_array().unwrap().len(), 0, "{place:#}");
    let number = |name: &str| place[name].as_u64().unwrap();
    let ignored = place["ignored"].as_array().unwrap().iter();
    let ignored: u64 = ignored.map(|files| files["count"].as_u64().unwrap()).sum();
    assert_eq!(number("files"), number("found") + number("parts") + ignored, "{place:#}");

    let asked = Conversation::begin(workspace.clone(), "2025-11-25");
    let read = |asked: Conversation, id: &String| {
        asked.calls("read_session", &json!({ "session_id": id }))
    };
    let heard = graded.iter().fold(asked, read).heard();
    for (number, id) in (1..).zip(&graded) {
        let events = heard.answered(number)["events_in_all"].as_u64().unwrap();
        assert!(events >= 2, "{id}");
    }

    let site = Site::start(workspace.clone());
    for id in &graded {
        let page = site.get(&format!("/sessions/{}", escaped(id))).status(200).text();
        assert!(page.contains("lighthouse"), "{id}");
        let _ = site.get(&format!("/api/sessions/{}", escaped(id))).status(200).json();
    }
}

#[test]
fn from_the_home_of_the_agent() {
    let cases: Vec<FormatCase> = cases().into_iter().filter(|case| !case.home.is_empty()).collect();
    let workspace = cases.iter().fold(Workspace::new(), |workspace, case| {
        case.write(workspace, &format!("../home/{}", case.home))
    });
    let home = workspace.path("../home");
    let workspace = workspace
        .env("XDG_CONFIG_HOME", home.join(".config"))
        .env("XDG_DATA_HOME", home.join(".local/share"));
    let json = workspace.clone().args(["grade", "latest", "500", "--json"]).run().exit(0).json();
    let ids: BTreeSet<String> = cases.iter().map(|case| case.id.to_owned()).collect();
    same(&strings(&json["grades"], "session_id"), &ids, "grade latest");
}

/// Exports sessions in all forms. Harbor's own model accepts the trajectories, and they are read
/// back with the same calls.
#[test]
fn every_export_is_valid_and_read_back() {
    let cases = cases();
    let workspace = recorded(&cases);
    let ids = ids_of(&cases, &workspace);
    let export = |form: &str| {
        let mut words = vec!["sessions", "export", "--source", "sessions", "--output", form];
        let format = format!("--format={form}");
        words.push(&format);
        words.extend(ids.iter().map(String::as_str));
        workspace.clone().args(words).run().exit(0).stdout.lines().count()
    };
    for form in ["atif", "markdown", "html", "jsonl"] {
        assert_eq!(export(form), cases.len(), "{form}");
        for file in crate::workspace::files(&workspace.path(form)) {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains("lighthouse"), "{}", file.display());
        }
    }
    let list = |source: &str| {
        let words = ["sessions", "list", "--json", "--limit=0", "--source", source];
        let json = workspace.clone().args(words).run().exit(0).json();
        let calls = |row: &Value| {
            let id = row["id"].as_str().unwrap().to_owned();
            (id, row["tool_calls"].as_u64().unwrap(), row["tool_errors"].as_u64().unwrap())
        };
        json.as_array().unwrap().iter().map(calls).collect::<BTreeSet<_>>()
    };
    same_rows(&list("atif"), &list("sessions"));
    let Some(python) = require::harbor() else { return };
    let script = "import json, sys\n\
                  from harbor.models.trajectories import Trajectory\n\
                  for path in sys.argv[1:]:\n    Trajectory.model_validate(json.load(open(path)))\n";
    let files = crate::workspace::files(&workspace.path("atif"));
    let output = Command::new(python).args(["-c", script]).args(&files).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

#[test]
fn docs_name_the_verified_versions() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recorded-sessions.md");
    let docs = fs::read_to_string(docs).unwrap();
    let (_, table) = docs.split_once("| Agent | Newest verified version | By |\n").unwrap();
    let rows: Vec<&str> = table.lines().skip(1).take_while(|row| row.starts_with('|')).collect();
    let known: Vec<String> = selftest_sessions::verified_versions()
        .map(|known| format!("| `{}` | {} | {} |", known.agent, known.version, known.basis))
        .collect();
    assert_eq!(rows, known);
}

#[test]
fn doctor_names_agents_that_are_newer_than_the_verified_version() {
    let record = |kind: &str, message: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"sessionId\":\"s-1\",\"version\":\"99.1.0\",\"uuid\":\"{kind}\",\
             \"timestamp\":\"2026-07-01T10:00:00Z\",\"message\":{message}}}\n"
        )
    };
    let user = record("user", r#"{"role":"user","content":"Fix the cart"}"#);
    let answer = r#"{"role":"assistant","id":"m1","content":[{"type":"text","text":"Done."}]}"#;
    let text = [user, record("assistant", answer)].concat();
    let workspace = Workspace::new().file("in/s-1.jsonl", text);
    let run = workspace.args(["sessions", "doctor", "--source", "in"]).run().exit(0);
    assert!(run.stdout.contains("99.1.0") && run.stdout.contains("2.1.220"), "{}", run.stdout);
}
