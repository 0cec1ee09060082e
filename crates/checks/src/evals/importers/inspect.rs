//! Inspect samples, one JSON object per line. Scoring is defined by the program that uses a sample,
//! not by the sample itself, so its target goes to the judge.

use serde_json::Value;

use super::DialectEntry;
use crate::evals::case::{CaseReader, message};
use crate::evals::dialect::EvalsDialect;
use crate::evals::source::{Fields, SourceText};
use crate::evals::{
    CaseDemand, DemandDecider, EvalCase, EvalFile, FileLocation, MAX_CASES, ShellLine, ShellUse,
};
use selftest_text::escape::terminal;
use selftest_text::one_line;
use selftest_text::wording::plural;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::Inspect,
    title: "Inspect",
    files: "`*.jsonl`: samples with `input` and `target`",
    yaml: None,
    carries: "inputs, choices, targets, files, `setup`",
    refuses: "conversations with answers of the assistant or of tools",
    is_file_name: |name| name == "samples.jsonl",
    marks: &[],
    recognises: |source| source.is_lines,
    read: |source, reader| {
        let form = SampleForm { answer: "target", prefix: None, demands: &agrees };
        read_lines(source.whole, &form, reader);
    },
};

/// What distinguishes the samples of one program from those of another.
pub(super) struct SampleForm<'a> {
    /// Key of the good answers.
    pub(super) answer: &'static str,
    /// Beginning of the ids of samples that have none.
    pub(super) prefix: Option<&'a str>,
    /// Returns what is demanded, given the good answers.
    pub(super) demands: &'a dyn Fn(&[String]) -> Vec<CaseDemand>,
}

/// Leaves it to the judge whether an answer agrees with a good one.
pub(super) fn agrees(targets: &[String]) -> Vec<CaseDemand> {
    let text = match targets {
        [] => return Vec::new(),
        [one] => format!("The answer agrees with this: {one}"),
        several => format!("The answer agrees with one of these: {}", several.join("; ")),
    };
    vec![CaseDemand { text, decider: DemandDecider::Judge }]
}

/// Reads samples, one on each line.
pub(super) fn read_lines(whole: &str, form: &SampleForm<'_>, reader: &mut CaseReader<'_>) {
    let lines = whole.lines().zip(1usize..).filter(|(line, _)| !line.trim().is_empty());
    for (at, (line, number)) in lines.enumerate() {
        if at == MAX_CASES {
            reader.file.refused.push(format!("more than {MAX_CASES} cases are not read"));
            break;
        }
        let value = match serde_json::from_str::<Value>(line) {
            Ok(value) => value,
            Err(error) => {
                let words = one_line(&error.to_string(), 100);
                reader.file.refused.push(format!("line {number} is not JSON: {words}"));
                continue;
            }
        };
        let source = SourceText::on_line(value, number);
        match source.root() {
            Some(sample) if sample.members().contains_key("input") => {
                read_sample(&sample, number, form, reader);
            }
            // Other programs also write their cases one per line.
            Some(case) => reader.case(&case, number),
            None => reader.file.refused.push(format!("line {number} is not an object")),
        }
        reader.unread.push(source);
    }
    reader.report_unread();
}

fn read_sample(
    sample: &Fields<'_>,
    number: usize,
    form: &SampleForm<'_>,
    reader: &mut CaseReader<'_>,
) {
    let get = |key: &str| sample.get(key).unwrap_or(&Value::Null);
    sample.describes(&["metadata", "name"]);
    let id = match get("id") {
        Value::String(id) => id.clone(),
        Value::Number(id) => id.to_string(),
        _ => format!("{}-{number}", form.prefix.unwrap_or("line")),
    };
    let id = reader.unique(&id);
    let shown = terminal(&id, 60);
    if let Value::Array(messages) = get("input")
        && let Some(why) = unplayable(messages)
    {
        reader.file.refused.push(format!("case {shown}: {why}"));
        return;
    }
    // A system under test has instructions of its own, so these become part of the request.
    let instructions = instructions(get("input"));
    if instructions.is_some() {
        reader.with_system_message += 1;
    }
    let mut messages: Vec<String> = match get("input") {
        Value::Array(messages) => messages.iter().filter_map(message).collect(),
        other => message(other).into_iter().collect(),
    };
    let mut prompt = match (instructions, messages.is_empty()) {
        (None, true) => {
            reader.file.refused.push(format!("case {shown} has no prompt"));
            return;
        }
        (Some(instructions), true) => instructions,
        (None, false) => messages.remove(0),
        (Some(instructions), false) => format!("{instructions}\n\n{}", messages.remove(0)),
    };
    let choices: Vec<&str> = strings(get("choices"));
    // Inspect presents choices by letter, which the target may refer to.
    let letter = |at: usize| char::from(b'A' + u8::try_from(at % 26).unwrap_or_default());
    for (at, choice) in choices.iter().enumerate() {
        prompt.push_str(&format!("\n{}) {choice}", letter(at)));
    }
    // A target may name a choice by its letter.
    let chosen = |target: &str| {
        let at = (0..choices.len()).find(|&at| target.len() == 1 && target.starts_with(letter(at)));
        at.map_or_else(|| target.to_owned(), |at| format!("{target}) {}", choices[at]))
    };
    let targets: Vec<String> = strings(get(form.answer)).into_iter().map(chosen).collect();
    let targets: Vec<String> =
        targets.into_iter().filter(|target| !target.trim().is_empty()).collect();
    let demands = (form.demands)(&targets);
    let mut case = EvalCase {
        id,
        number: get("id").as_i64(),
        prompt,
        replies: messages,
        reference: targets.first().cloned(),
        demands,
        ..EvalCase::default()
    };
    for (path, content) in get("files").as_object().into_iter().flatten() {
        // The paths are untrusted and will be created in the case's folder.
        if crate::scenario::path_error(path).is_some() {
            reader
                .file
                .refused
                .push(format!("case {shown}: `{}` is not a path within", terminal(path, 80)));
        } else if let Some(content) = content.as_str() {
            let (place, content) = (Some(FileLocation::Inline), Some(content.to_owned()));
            case.files.push(EvalFile { path: path.clone(), source: None, place, content });
        }
    }
    if let Some(line) = get("setup").as_str() {
        case.shell.push(ShellLine::new(ShellUse::SetUp, "setup", line));
    }
    reader.add(case);
}

/// Returns the system messages of a conversation. Some of them are examples, recognised by their
/// names.
fn instructions(input: &Value) -> Option<String> {
    let text = |message: &Value| {
        let text =
            (message["role"].as_str() == Some("system")).then(|| message["content"].as_str())??;
        Some(match message["name"].as_str() {
            Some("example_user") => format!("Example of a request:\n{text}"),
            Some("example_assistant") => format!("Answer to this example:\n{text}"),
            _ => text.to_owned(),
        })
    };
    let texts: Vec<String> = input.as_array()?.iter().filter_map(text).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Returns why a list of messages cannot be played: the target is about the answer to the last one,
/// and a system under test cannot be made to have said what stands before it.
fn unplayable(messages: &[Value]) -> Option<String> {
    let is_of = |message: &Value, wanted: &str| message["role"].as_str() == Some(wanted);
    let of_others = |message: &&Value| is_of(message, "assistant") || is_of(message, "tool");
    let answers = messages.iter().filter(of_others).count();
    let answers = (answers > 0).then(|| plural(answers as u64, "message"))?;
    Some(format!(
        "its input is a conversation with {answers} of the assistant or of tools, which the system \
         under test did not give; only the last request could be asked, without them"
    ))
}

/// Returns a string, or a list of strings, as a list.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    }
}
