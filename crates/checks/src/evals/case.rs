//! Parses one case of a case file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::assertion::{self, ParsedAssertions};
use super::dialect::{DEMAND_KEYS, FLOW_KEYS, OTHER_SKILL_KEYS, PROMPT_KEYS, is_no_skill};
use super::source::{Fields, SourceText, member};
use super::wording::is_negative;
use super::{
    CaseDemand, DemandDecider, EvalCase, EvalFile, EvalsFile, FileLocation, FileLookup,
    RoutingCase, ShellLine, ShellUse,
};
use crate::check::{self, Check};
use crate::scenario::path_error;
use crate::sentence::SentenceContext;
use selftest_text::escape::terminal;
use selftest_text::one_line;
use selftest_text::wording::plural;

/// Keys of a reference answer.
const REFERENCE_KEYS: [&str; 7] = [
    "expected_output",
    "ground_truth",
    "expected",
    "reference",
    "expected_result",
    "target",
    "expected_answer",
];
/// Keys of input files.
const FILE_KEYS: [&str; 3] = ["files", "input_files", "fixtures"];
/// Keys of what a prompt is about and does not say itself.
const MATERIAL_KEYS: [&str; 4] = ["context", "source_text", "input_text", "fixture"];
/// Demands that are no sentences under these keys may be texts of the answer or names of faults.
const SENTENCE_ONLY: [&str; 3] = ["forbidden", "failure_modes", "must_avoid"];
/// Keys of shell lines.
const SHELL_KEYS: [&str; 5] = ["setup", "cmd", "setup_commands", "teardown", "cleanup"];
/// Words of a list item that is a sentence rather than one of several answers.
const MIN_WORDS: usize = 4;
/// Prefix of a demand made from a reference answer, if the case has no other demands.
const AS_EXPECTED: &str = "The answer is as expected: ";

static PLACEHOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{\{[^{}\n]{1,60}\}\}").expect("a constant that a test uses"));
static HOME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:/home|/Users)/[A-Za-z0-9_.<>-]+").expect("a constant that a test uses")
});

/// Adds parsed cases to a file, one after the other.
pub(super) struct CaseReader<'a> {
    pub(super) file: &'a mut EvalsFile,
    pub(super) lookup: &'a dyn FileLookup,
    /// Each ID with the highest suffix used for it.
    ids: BTreeMap<String, usize>,
    integers: usize,
    strings: usize,
    missing: usize,
    /// Number of cases whose system message became part of the request.
    pub(super) with_system_message: usize,
    /// Texts of single lines, whose unread keys are reported together.
    pub(super) unread: Vec<SourceText>,
}

impl<'a> CaseReader<'a> {
    pub(super) fn new(file: &'a mut EvalsFile, lookup: &'a dyn FileLookup) -> Self {
        let ids = BTreeMap::new();
        Self {
            file,
            lookup,
            ids,
            integers: 0,
            strings: 0,
            missing: 0,
            with_system_message: 0,
            unread: Vec::new(),
        }
    }

    /// Refuses a case with its reason.
    pub(super) fn refuse(&mut self, id: &str, why: &str) {
        self.file.refused.push(format!("case {}: {}", terminal(id, 60), one_line(why, 500)));
    }

    /// Reports the keys of single lines that were not read, those of one name together.
    pub(super) fn report_unread(&mut self) {
        let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for warning in self.unread.drain(..).flat_map(|source| source.unread_warnings()) {
            let (words, line) = warning.split_once(" (line ").unwrap_or((&warning, ""));
            let line = line.trim_end_matches(')').to_owned();
            lines.entry(words.to_owned()).or_default().push(line);
        }
        for (words, lines) in lines {
            let shown = lines.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
            let more = match lines.len().saturating_sub(3) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let noun = if lines.len() == 1 { "line" } else { "lines" };
            self.file.warnings.push(format!("{words} ({noun} {shown}{more})"));
        }
    }

    /// Parses one case; `position` counts from 1.
    pub(super) fn case(&mut self, members: &Fields<'_>, position: usize) {
        let (mut prompt, replies) = prompts(members);
        let mut refused = None;
        if is_text_file(&prompt) {
            if let Some(text) = self.file_text(&prompt) {
                prompt = text;
            } else {
                let shown = terminal(&prompt, 100);
                refused = Some(format!("its prompt is the file `{shown}`, which is not there"));
            }
        }
        let routing = routing(members, &prompt);
        let mut texts = Vec::new();
        // A file that is named anywhere in the case may be what a sentence is about.
        for value in members.members().values() {
            collect_texts(value, 0, &mut texts);
        }
        let skill = self.file.skill.as_deref();
        // What is asked last is what the answer is about.
        let asked = if replies.is_empty() { prompt.as_str() } else { "" };
        let mut context = SentenceContext::of(asked, texts.iter().map(String::as_str), skill);
        context.others = skills_of(members);
        let mut found = ParsedAssertions { context, ..ParsedAssertions::default() };
        demands(members, &mut found);
        // What `expected_skill` says is asked by prompts of their own.
        if routing.is_empty() {
            activations(members, &mut found);
        }
        let reference = self.reference(members, &mut found);
        members.describes(&["description", "category", "tags", "notes", "note"]);
        // A case that only checks the loading of a skill becomes no case of its own.
        let only_routing = !routing.is_empty() && found.demands.is_empty() && reference.is_none();
        if prompt.trim().is_empty() {
            let id = self.id(members, position).0;
            let shell = if shell_lines(members).is_empty() {
                ""
            } else {
                ", only a shell line, which is not run"
            };
            self.file.refused.push(format!("case {} has no prompt{shell}", terminal(&id, 60)));
            return;
        }
        if let Some(why) = refused {
            let id = self.id(members, position).0;
            return self.refuse(&id, &why);
        }
        self.file.routing.extend(routing);
        if only_routing {
            // A prompt needs no name of its own.
            members.describes(&["id", "eval_id", "case_id", "name", "eval_name", "title"]);
            return;
        }
        let (id, number) = self.id(members, position);
        if let Some(key) = material(members, &prompt) {
            let why = format!(
                "`{key}` is not part of its prompt, and how the agent gets it is not known"
            );
            return self.refuse(&id, &why);
        }
        if found.demands.is_empty()
            && let Some(reference) = &reference
        {
            let text = format!("{AS_EXPECTED}{reference}");
            found.demands.push(CaseDemand { text, decider: DemandDecider::Judge });
        }
        let mut shell = shell_lines(members);
        shell.extend(found.shell);
        let mut case = EvalCase {
            name: members.first(&["name", "eval_name", "title"]).and_then(|(_, name)| text(name)),
            reference,
            replies,
            shell,
            demands: deduplicate(found.demands),
            timeout_seconds: members.get("timeout_seconds").and_then(Value::as_f64),
            id,
            number,
            prompt,
            ..EvalCase::default()
        };
        self.files(members, &mut case);
        let warnings = found
            .warnings
            .into_iter()
            .map(|words| format!("case {}: {words}", terminal(&case.id, 60)));
        self.file.warnings.extend(warnings);
        self.add(case);
    }

    /// Returns the reference answer. A list of sentences under its key states demands.
    fn reference(&self, members: &Fields<'_>, found: &mut ParsedAssertions) -> Option<String> {
        let (key, value) = members.first(&REFERENCE_KEYS)?;
        match value {
            Value::Array(items) if items.is_empty() => None,
            Value::Array(items) if items.iter().all(is_sentence) => {
                found.pointer = crate::yaml::join(members.pointer(), key);
                assertion::read(value, true, found);
                None
            }
            Value::Array(_) | Value::Object(_) | Value::Bool(_) => {
                let shown = one_line(&value.to_string(), 200);
                let why = "whether it is an answer, several or a demand is not known";
                found.demands.push(CaseDemand::unknown(&format!("{key}: {shown}"), why));
                None
            }
            other => {
                let text = text(other)?;
                Some(self.file_text(&text).unwrap_or(text))
            }
        }
    }

    /// Returns the text of the file beside the suite that a prompt or an answer names instead of
    /// stating it.
    fn file_text(&self, path: &str) -> Option<String> {
        if !is_text_file(path) || path_error(path).is_some() {
            return None;
        }
        let text = self.lookup.text(path, self.lookup.find(path)?)?.ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Adds a complete case, and warns about what may be unintended in it.
    pub(super) fn add(&mut self, case: EvalCase) {
        let id = terminal(&case.id, 60);
        let warnings = &mut self.file.warnings;
        for prompt in std::iter::once(&case.prompt).chain(&case.replies) {
            for (pattern, what) in
                [(&PLACEHOLDER, "a placeholder"), (&HOME, "a path of somebody's computer")]
            {
                if let Some(left) = pattern.find(prompt) {
                    warnings.push(format!(
                        "case {id}: {what} is left in the prompt: `{}`",
                        terminal(left.as_str(), 80)
                    ));
                }
            }
        }
        if case.demands.is_empty() {
            warnings.push(format!("case {id} has no check: it can never pass"));
        }
        for demand in &case.demands {
            if let DemandDecider::Unknown { why } = &demand.decider {
                warnings.push(format!(
                    "case {id}: \"{}\" cannot be decided: {why}",
                    terminal(&demand.text, 80)
                ));
            }
        }
        let checks: Vec<Check> =
            case.demands.iter().filter_map(|demand| demand.decider.check()).cloned().collect();
        warnings.extend(
            check::warnings(&checks).into_iter().map(|words| format!("case {id}: {words}")),
        );
        for line in &case.shell {
            warnings.push(line.not_run_warning(&case.id));
        }
        self.file.cases.push(case);
    }

    /// Returns a unique ID, and the number if the ID is an integer.
    fn id(&mut self, members: &Fields<'_>, position: usize) -> (String, Option<i64>) {
        let given = members.first(&["id", "eval_id", "case_id"]).map(|(_, id)| id);
        let (wanted, number) = match given {
            Some(Value::Number(number)) => {
                self.integers += 1;
                (number.to_string(), number.as_i64())
            }
            Some(Value::String(text)) if !text.trim().is_empty() => {
                self.strings += 1;
                (text.trim().to_owned(), None)
            }
            _ => {
                self.missing += 1;
                (format!("case-{position}"), None)
            }
        };
        let id = self.unique(&wanted);
        // A duplicate has lost its number to the renaming.
        let number = number.filter(|_| id == wanted);
        (id, number)
    }

    /// Returns the wanted ID, with a numeric suffix if it is taken.
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        if !self.ids.contains_key(wanted) {
            self.ids.insert(wanted.to_owned(), 1);
            return wanted.to_owned();
        }
        // Start after the last suffix used for this ID.
        let mut count = self.ids[wanted];
        let id = loop {
            count += 1;
            let id = format!("{wanted}-{count}");
            if !self.ids.contains_key(&id) {
                break id;
            }
        };
        self.file.warnings.push(format!(
            "the id {} is there twice: the second is `{}`",
            terminal(wanted, 60),
            terminal(&id, 60)
        ));
        self.ids.insert(wanted.to_owned(), count);
        self.ids.insert(id.clone(), 1);
        id
    }

    /// Warns about what concerns many cases at once, such as irregular IDs.
    pub(super) fn warn_about_all(&mut self) {
        if self.with_system_message > 0 {
            let words = plural(self.with_system_message as u64, "case");
            self.file
                .warnings
                .push(format!("the system message is asked as part of the request: {words}"));
        }
        if self.integers > 0 && self.strings > 0 {
            let (integers, texts) =
                (plural(self.integers as u64, "integer"), plural(self.strings as u64, "text"));
            self.file.warnings.push(format!("ids are mixed: {integers}, {texts}"));
        }
        if self.missing > 0 {
            let words = plural(self.missing as u64, "case");
            self.file.warnings.push(format!("{words} without an id, named by position"));
        }
    }

    /// Adds an input file of a case: inline, or from a path that is looked up.
    pub(super) fn file_of(
        &mut self,
        case: &mut EvalCase,
        path: &str,
        from: Option<&str>,
        content: Option<&str>,
    ) {
        let from = from.unwrap_or(path);
        if !self.is_usable(case, path) || content.is_none() && !self.is_usable(case, from) {
            return;
        }
        // What stands in the file itself needs no file on disk.
        let place = match content {
            Some(_) => Some(FileLocation::Inline),
            None => self.lookup.find(from),
        };
        self.push_file(case, path, from, place, content);
    }

    /// Adds an input file that lies at this place.
    pub(super) fn file_at(
        &mut self,
        case: &mut EvalCase,
        path: &str,
        from: &str,
        place: FileLocation,
    ) {
        if self.is_usable(case, path) && self.is_usable(case, from) {
            self.push_file(case, path, from, Some(place), None);
        }
    }

    fn is_usable(&mut self, case: &EvalCase, path: &str) -> bool {
        let Some(why) = fixture_path_error(path) else { return true };
        let (id, shown) = (terminal(&case.id, 60), terminal(path, 100));
        self.file.refused.push(format!("case {id}: `{shown}`: {why}"));
        false
    }

    fn push_file(
        &mut self,
        case: &mut EvalCase,
        path: &str,
        from: &str,
        place: Option<FileLocation>,
        content: Option<&str>,
    ) {
        if place.is_none() && !self.file.missing_files.iter().any(|missing| missing == from) {
            self.file.missing_files.push(from.to_owned());
        }
        let source = (from != path && content.is_none()).then(|| from.to_owned());
        let (path, content) = (path.to_owned(), content.map(ToOwned::to_owned));
        case.files.push(EvalFile { path, source, place, content });
    }

    /// Adds what lies in the folder that a case begins with.
    fn fixture(&mut self, members: &Fields<'_>, case: &mut EvalCase) {
        let path = members.members().get("fixture").and_then(Value::as_str).unwrap_or_default();
        // A remark is no path.
        if path.is_empty() || path.contains(char::is_whitespace) {
            return;
        }
        let _ = members.get("fixture");
        let folder = path.trim_end_matches('/');
        let place = self.lookup.find(folder).filter(|_| path_error(folder).is_none());
        let names = place.map(|place| (place, self.lookup.list(folder, place)));
        let Some((place, names)) = names.filter(|(_, names)| !names.is_empty()) else {
            return self.file_of(case, folder, None, None);
        };
        for name in names {
            let name = name.trim_end_matches('/');
            self.file_at(case, name, &format!("{folder}/{name}"), place);
        }
    }

    fn files(&mut self, members: &Fields<'_>, case: &mut EvalCase) {
        self.fixture(members, case);
        let listed = FILE_KEYS.iter().filter_map(|key| members.get(key));
        let mut files: Vec<(String, Option<String>)> = Vec::new();
        for value in listed {
            match value {
                Value::Array(items) => files.extend(items.iter().filter_map(|item| match item {
                    Value::Object(file) => {
                        let path = ["path", "name", "file"]
                            .iter()
                            .find_map(|key| text(file.get(*key)?))?;
                        Some((path, file.get("content").and_then(text)))
                    }
                    other => Some((text(other)?, None)),
                })),
                Value::String(path) => files.push((path.clone(), None)),
                // `{path: content}`
                Value::Object(contents) => files
                    .extend(contents.iter().map(|(path, content)| (path.clone(), text(content)))),
                _ => {}
            }
        }
        for (path, content) in files {
            self.file_of(case, &path, None, content.as_deref());
        }
    }
}

/// Returns why an untrusted path is not looked up.
fn fixture_path_error(path: &str) -> Option<String> {
    // A drive letter or backslashes would mean different things on different systems.
    let windows = path.as_bytes().get(1) == Some(&b':') || path.contains('\\');
    // A shell expands `~`; a file system has a folder of that name.
    if windows || path.starts_with('~') {
        return Some("not a relative path with `/`".to_owned());
    }
    if path.contains('\0') || path.len() > 1000 {
        return Some("not a path".to_owned());
    }
    path_error(path).map(|fault| fault.to_string())
}

/// Returns true for a path of a text file that stands where a text should.
fn is_text_file(text: &str) -> bool {
    let is_path = text.contains('/') && !text.contains(char::is_whitespace);
    is_path && [".md", ".txt"].iter().any(|end| text.ends_with(end)) && !text.contains("://")
}

/// Returns true for a text of several words, or of a language that may have no blanks.
fn is_sentence(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.split_whitespace().count() >= MIN_WORDS || !text.is_ascii())
}

/// Returns text, or a number as text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the first prompt and the messages that follow it.
fn prompts(members: &Fields<'_>) -> (String, Vec<String>) {
    let keys = PROMPT_KEYS.iter().chain(&FLOW_KEYS);
    for value in keys.filter_map(|key| members.get(key)) {
        let mut messages = match value {
            Value::Array(items) => items.iter().filter_map(message).collect(),
            other => text(other).into_iter().collect::<Vec<_>>(),
        };
        if !messages.is_empty() {
            let prompt = messages.remove(0);
            // A prompt next to a flow is the flow's first message.
            let flow = FLOW_KEYS.iter().find_map(|key| members.get(key)?.as_array());
            if messages.is_empty()
                && let Some(flow) = flow
            {
                messages =
                    flow.iter().filter_map(message).filter(|message| *message != prompt).collect();
            }
            return (prompt, messages);
        }
    }
    (String::new(), Vec::new())
}

/// Returns the text of a user message.
pub(super) fn message(value: &Value) -> Option<String> {
    match value {
        Value::Object(message) => {
            let role = message.get("role").and_then(Value::as_str).unwrap_or("user");
            let content = ["content", "prompt", "query", "text"]
                .iter()
                .find_map(|key| text(message.get(*key)?));
            // Messages of other roles are part of a recorded conversation and cannot be replayed.
            content.filter(|_| role == "user")
        }
        other => text(other),
    }
}

/// Maximum nesting depth of texts that are looked at.
const MAX_DEPTH: usize = 6;

/// Collects the texts of a case.
fn collect_texts(value: &Value, depth: usize, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) if depth < MAX_DEPTH => {
            for item in items {
                collect_texts(item, depth + 1, texts);
            }
        }
        Value::Object(members) if depth < MAX_DEPTH => {
            for member in members.values() {
                collect_texts(member, depth + 1, texts);
            }
        }
        _ => {}
    }
}

/// Returns which skills the prompt should load and which not, if the case says so.
fn routing(members: &Fields<'_>, prompt: &str) -> Vec<RoutingCase> {
    let of = |should_trigger: bool, skills: Vec<String>| RoutingCase {
        query: prompt.to_owned(),
        should_trigger,
        skills,
    };
    if let Some(should_trigger) = members.get("should_trigger").and_then(Value::as_bool) {
        return vec![of(should_trigger, Vec::new())];
    }
    // Null is an answer too: no skill.
    let Some(expected) = members.get_or_null("expected_skill") else { return Vec::new() };
    let named = expected.as_str().filter(|name| !is_no_skill(name));
    let mut skills: Vec<String> = named.map(ToOwned::to_owned).into_iter().collect();
    let should_trigger = !skills.is_empty();
    let others = members.get("acceptable_skills").and_then(Value::as_array).into_iter().flatten();
    skills.extend(others.filter_map(Value::as_str).map(ToOwned::to_owned));
    let mut found = vec![of(should_trigger, skills)];
    let others: Vec<String> =
        OTHER_SKILL_KEYS.iter().flat_map(|key| members.texts(key)).map(ToOwned::to_owned).collect();
    if !others.is_empty() {
        found.push(of(false, others));
    }
    found
}

/// Returns the names of skills in a case.
fn skills_of(members: &Fields<'_>) -> Vec<String> {
    let keys =
        ["expected_skill", "acceptable_skills", "skills_expected_to_activate", "expected_skills"];
    let keys = keys.iter().chain(&OTHER_SKILL_KEYS);
    let values = keys.filter_map(|key| Some(member(members.members(), key)?.1));
    let names = values.flat_map(|value| match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect::<Vec<_>>(),
    });
    names.map(ToOwned::to_owned).collect()
}

/// Reads the skills that should be loaded beside whatever else is demanded.
fn activations(members: &Fields<'_>, found: &mut ParsedAssertions) {
    for skill in OTHER_SKILL_KEYS.iter().flat_map(|key| members.texts(key)) {
        let words = format!("does not load the skill {skill}");
        let check = json!({"name": words, "not": {"skill_loaded": skill}});
        assertion::read(&check, true, found);
    }
    let keys =
        ["skills_expected_to_activate", "expected_skills", "skills_expected", "expect_selected"];
    let Some((key, value)) = members.first(&keys) else { return };
    // No name at all may stand for no skill, or for nothing that was filled in.
    if value.as_array().is_some_and(Vec::is_empty) {
        found.warnings.push(format!("not carried over: {key}: it names no skill"));
    }
    let names = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    for name in names {
        match name.as_str().filter(|name| !name.trim().is_empty()) {
            Some(name) => {
                let words = format!("loads the skill {name}");
                assertion::read(&json!({"name": words, "skill_loaded": name}), true, found);
            }
            None if name.is_null() => {}
            None => found.warnings.push(format!("not carried over: {key}: it names no skill")),
        }
    }
}

/// Returns the key of what a prompt is about and does not say itself.
fn material<'k>(members: &Fields<'_>, prompt: &str) -> Option<&'k str> {
    MATERIAL_KEYS.into_iter().find(|key| match members.members().get(*key) {
        // A folder of files is laid, a remark is not.
        Some(Value::String(_)) if *key == "fixture" => false,
        Some(Value::String(text)) => {
            let _ = members.get(key);
            !text.trim().is_empty() && !prompt.contains(text.trim())
        }
        Some(Value::Object(parts)) => !parts.is_empty(),
        _ => false,
    })
}

fn demands(members: &Fields<'_>, found: &mut ParsedAssertions) {
    for key in DEMAND_KEYS {
        let Some(value) = members.get(key) else { continue };
        found.pointer = crate::yaml::join(members.pointer(), key);
        match key {
            "must_have" => patterns(value, "regex", found),
            "must_not_have" => patterns(value, "not_regex", found),
            "expected_calls" => calls(value, found),
            "expected_script" => {
                let scripts = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                for script in scripts.iter().filter_map(Value::as_str) {
                    // A script is recognised by its name in a command.
                    let check = serde_json::json!({"name": format!("runs {script}"), "command_run": regex::escape(script)});
                    assertion::read(&check, true, found);
                }
            }
            "required_output_sections" => {
                for section in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    let words = format!("The output has the section \"{section}\"");
                    assertion::read(&json!(words), true, found);
                }
            }
            _ if SENTENCE_ONLY.contains(&key) => {
                found.is_failure = key.starts_with("fail");
                for item in value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice) {
                    if is_sentence(item) {
                        assertion::read(item, false, found);
                    } else {
                        let shown = format!("{key}: {}", one_line(&item.to_string(), 200));
                        let why = "whether it is a text of the answer or a fault is not known";
                        found.demands.push(CaseDemand::unknown(&shown, why));
                    }
                }
                found.is_failure = false;
            }
            _ => {
                found.is_failure = key.starts_with("fail");
                assertion::read(value, !is_negative(key), found);
                found.is_failure = false;
            }
        }
    }
    for pointer in found.unread.drain(..) {
        members.source().leave_out(&pointer);
    }
}

/// Adds patterns from a bare list.
fn patterns(value: &Value, kind: &str, found: &mut ParsedAssertions) {
    let patterns = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    for pattern in patterns {
        assertion::read(&serde_json::json!({"type": kind, "pattern": pattern}), true, found);
    }
}

/// Adds expected tool calls: names, or objects with arguments.
fn calls(value: &Value, found: &mut ParsedAssertions) {
    let calls = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    for call in calls {
        let name = match call {
            Value::String(name) => Some(name.as_str()),
            _ => ["name", "tool", "function"].iter().find_map(|key| call.get(*key)?.as_str()),
        };
        let Some(name) = name else {
            assertion::read(call, true, found);
            continue;
        };
        let given = call.as_object().and_then(assertion::stated_arguments);
        let check = match given.map(assertion::arguments_of) {
            Some(Some(arguments)) => {
                serde_json::json!({"tool_called": {"name": name, "arguments": arguments}})
            }
            // Without them the call would be less than what is expected.
            Some(None) => {
                let (text, why) = (format!("calls {name}"), "its arguments are no mapping");
                found.demands.push(CaseDemand::unknown(&text, why));
                continue;
            }
            None => serde_json::json!({ "tool_called": name }),
        };
        assertion::read(&check, true, found);
    }
}

fn shell_lines(members: &Fields<'_>) -> Vec<ShellLine> {
    let mut lines = Vec::new();
    for key in SHELL_KEYS {
        let values = members.get(key).into_iter().flat_map(|value| match value {
            Value::Array(items) => items.iter().collect(),
            other => vec![other],
        });
        let line = |value: &Value| {
            let line =
                value.as_str().or_else(|| value.get("cmd").or(value.get("run"))?.as_str())?;
            // Each case has a fresh folder, so there is nothing to clean up afterwards.
            let purpose =
                if key.starts_with("setup") { ShellUse::SetUp } else { ShellUse::NeverRun };
            Some(ShellLine::new(purpose, key, line))
        };
        lines.extend(values.filter_map(line));
    }
    lines
}

/// Removes duplicates, since many files repeat the same demand under two keys. A sentence that is
/// also stated as a check becomes that check; distinct checks with the same text are both kept.
pub(super) fn deduplicate(demands: Vec<CaseDemand>) -> Vec<CaseDemand> {
    let mut kept: Vec<CaseDemand> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for mut demand in demands {
        let words = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ").trim_end_matches('.').to_owned()
        };
        let mut number = 1;
        loop {
            match places.get(&words(&demand.text)) {
                None => {
                    places.insert(words(&demand.text), kept.len());
                    kept.push(demand);
                    break;
                }
                // The same words again: keep the more precise of the two, or both if they are
                // distinct checks.
                Some(&at) => match (&kept[at].decider, &demand.decider) {
                    (earlier, later) if earlier == later => break,
                    // A typed check says exactly what its author means, where a sentence has to be
                    // interpreted.
                    (DemandDecider::Judge | DemandDecider::Rule(_), DemandDecider::Typed(_)) => {
                        kept[at].decider = demand.decider;
                        break;
                    }
                    (DemandDecider::Typed(_), DemandDecider::Judge | DemandDecider::Rule(_)) => {
                        break;
                    }
                    _ => {
                        let bare = demand.text.strip_suffix(&format!(" ({number})"));
                        number += 1;
                        demand.text = format!("{} ({number})", bare.unwrap_or(&demand.text));
                    }
                },
            }
        }
    }
    kept
}
