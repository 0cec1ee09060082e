//! Scenarios of Tessl: a folder with `task.md`, `criteria.json` and often `scenario.json`.

use serde_json::Value;

use super::{DialectEntry, SuiteSource};
use crate::evals::case::{CaseReader, deduplicate};
use crate::evals::dialect::EvalsDialect;
use crate::evals::source::SourceText;
use crate::evals::{CaseDemand, EvalCase, FileLocation};
use crate::sentence::SentenceContext;
use selftest_text::escape::terminal;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::Tessl,
    title: "Tessl",
    files: "`criteria.json` beside `task.md`, with `scenario.json`",
    yaml: None,
    carries: "the task, included files, each criterion of the checklist",
    refuses: "other kinds of criteria, scenarios without a task",
    is_file_name: |name| name == "criteria.json",
    marks: &[],
    recognises: |source| {
        let document = source.text.value();
        source.name == "criteria.json" && document["checklist"].is_array()
    },
    read,
};

/// Files of the scenario itself, which the agent must not see.
const OWN_FILES: [&str; 4] = ["criteria.json", "scenario.json", "capability.txt", "task.md"];

/// Maximum depth of an included folder.
const MAX_DEPTH: usize = 4;

fn read(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let Some(root) = source.text.root() else { return };
    root.describes(&["context"]);
    let folder = reader.lookup.folder_name();
    let id = reader.unique(folder.as_deref().unwrap_or("scenario"));
    let kind = root.text("type").unwrap_or("weighted_checklist");
    if kind != "weighted_checklist" {
        root.reads_all();
        let why = format!("criteria of the type `{}` cannot be carried over", terminal(kind, 60));
        return reader.refuse(&id, &why);
    }
    let task = match reader.lookup.text("task.md", FileLocation::Evals) {
        Some(Ok(task)) if !task.trim().is_empty() => task,
        Some(Err(error)) => return reader.refuse(&id, &format!("task.md: {error}")),
        _ => return reader.refuse(&id, "there is no task.md beside it"),
    };
    let prompt = task.trim().to_owned();
    let mut case = EvalCase { id: id.clone(), prompt, ..EvalCase::default() };
    let mut sentences = Vec::new();
    for item in root.list("checklist") {
        let Some(item) = item else {
            case.demands.push(CaseDemand::unknown("checklist", "it is not a mapping"));
            continue;
        };
        match item.text("description").or_else(|| item.text("name")) {
            Some(sentence) => sentences.push(sentence),
            None => case.demands.push(CaseDemand::unknown("checklist", "it says nothing")),
        }
        item.describes(&["name"]);
    }
    let skill = reader.file.skill.clone();
    let context = SentenceContext::of(&case.prompt, sentences.iter().copied(), skill.as_deref());
    case.demands.extend(sentences.iter().map(|text| CaseDemand::sentence_in(text, &context)));
    case.demands = deduplicate(std::mem::take(&mut case.demands));
    if let Some(why) = read_scenario(&mut case, reader) {
        return reader.refuse(&id, &why);
    }
    reader.add(case);
}

/// Reads what is laid ready for a scenario. Returns why it cannot be run.
fn read_scenario(case: &mut EvalCase, reader: &mut CaseReader<'_>) -> Option<String> {
    let text = reader.lookup.text("scenario.json", FileLocation::Evals)?;
    let parsed = text.and_then(|text| {
        let value = serde_json::from_str::<Value>(&text)?;
        Ok(SourceText::parsed("scenario.json", value, &text))
    });
    let source = match parsed {
        Ok(source) => source,
        Err(error) => return Some(format!("scenario.json: {error}")),
    };
    if let Some(root) = source.root() {
        root.describes(&["description", "name"]);
        for path in root.texts("include") {
            let inner = path.trim_start_matches("./").trim_end_matches('/');
            // That is the scenario itself, with what the agent must not see.
            if matches!(inner, "" | ".") {
                return Some(format!("it includes its own folder: `{}`", terminal(path, 100)));
            }
            if let Err(why) = include(inner, 0, case, reader) {
                return Some(why);
            }
        }
    }
    reader.file.warnings.extend(source.unread_warnings());
    None
}

/// Adds a file, or all files of a folder, unless it is one of the scenario itself. Returns why it cannot.
fn include(
    path: &str,
    depth: usize,
    case: &mut EvalCase,
    reader: &mut CaseReader<'_>,
) -> Result<(), String> {
    // A path with `..` is refused by its form.
    let name = path.trim_start_matches(['.', '/']);
    if OWN_FILES.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    let names = reader.lookup.list(path, FileLocation::Evals);
    if names.is_empty() {
        reader.file_of(case, path, Some(path), None);
        return Ok(());
    }
    if depth > MAX_DEPTH {
        return Err(format!("the included folder `{}` is too deep", terminal(path, 100)));
    }
    for name in names {
        let inner = format!("{path}/{}", name.trim_end_matches('/'));
        if name.ends_with('/') {
            include(&inner, depth + 1, case, reader)?;
        } else {
            reader.file_at(case, &inner, &inner, FileLocation::Evals);
        }
    }
    Ok(())
}
