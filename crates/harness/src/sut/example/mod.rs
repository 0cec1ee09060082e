//! The `example` adapter: a small agent inside the program, so that a first run has something to
//! test. It needs no model: it searches the project's files, quotes them with file and line, and
//! asks back if it cannot know what is meant.
//!
//! Two faults are planted in it, each marked by `FAULT`, so that there is something to find:
//! `docs/example-agent.md`.

mod search;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::json;

use super::answer::SeenAnswer;
use super::project::ProjectFile;
use super::skill::{Skill, agent_names};
use super::{Isolation, SutError, SutEvidence, SutReply, SutSession, SutTask, SystemUnderTest};
use crate::prose::normalise_spaces;
use search::{FoundSentence, Library, SearchedFile, nearest};
use selftest_checks::check::{FileChanges, ObservedToolCall};
use selftest_checks::scenario::TaskStatus;
use selftest_text::redact::Redactor;
use selftest_text::wording::plural;
use selftest_text::words::fold;

/// The example agent.
pub struct ExampleSut {
    library: Arc<Library>,
}

impl ExampleSut {
    /// Creates the agent, which knows these files of the project.
    pub fn new(files: &[ProjectFile]) -> Self {
        Self { library: Arc::new(Library::new(files)) }
    }
}

impl SystemUnderTest for ExampleSut {
    fn describe(&self) -> String {
        let files = plural(self.library.len() as u64, "project file");
        format!("the example agent, which searches {files}")
    }

    fn isolation(&self) -> Isolation {
        Isolation {
            enforced: vec![
                "the example agent is a part of this program: it reads, and changes nothing"
                    .to_owned(),
                "it is shown project files without reports, prompts and configuration".to_owned(),
            ],
            not_enforced: Vec::new(),
        }
    }

    fn can_reach_project(&self) -> bool {
        false
    }

    fn check(&self) -> BoxFuture<'_, Result<(), SutError>> {
        Box::pin(async { Ok(()) })
    }

    fn with_skill(&self, _: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError> {
        Err(SutError::NotStarted {
            what: "the example agent takes no skills".to_owned(),
            hint: Some(format!(
                "name your agent under `sut`, or set `sut.chat`; agents that take skills: {}",
                agent_names()
            )),
        })
    }

    fn open<'a>(&'a self, _: &'a SutTask) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>> {
        let library = Arc::clone(&self.library);
        Box::pin(async move {
            Ok(Box::new(ExampleSession { library, asked: Vec::new() }) as Box<dyn SutSession>)
        })
    }
}

/// A conversation with the agent.
struct ExampleSession {
    library: Arc<Library>,
    /// What was said to it so far.
    asked: Vec<String>,
}

impl ExampleSession {
    fn say(&mut self, said: &str) -> Result<SutReply, SutError> {
        self.asked.push(said.to_owned());
        let ExampleAnswer { status, output, read } = answer(&self.library, &self.asked);
        let call = |path: String| ObservedToolCall {
            name: "read_file".to_owned(),
            arguments: json!({ "path": path }),
            failed: false,
        };
        let tool_calls = Some(read.into_iter().map(call).collect());
        // The project's files were redacted when they were read.
        let reply = SeenAnswer::of(&output, &[]).into_reply(status, &Redactor::default())?;
        Ok(SutReply { tool_calls, ..reply })
    }
}

impl SutSession for ExampleSession {
    fn submit<'a>(&'a mut self, prompt: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        let reply = self.say(prompt);
        Box::pin(async { reply })
    }

    fn reply<'a>(&'a mut self, reply: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        let reply = self.say(reply);
        Box::pin(async { reply })
    }

    /// The agent cannot change any files.
    fn files<'a>(&'a mut self, _named: &'a [String]) -> BoxFuture<'a, Option<FileChanges>> {
        Box::pin(async { Some(FileChanges::default()) })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, SutEvidence> {
        Box::pin(async { SutEvidence::default() })
    }
}

/// Number of sentences of an answer, if the request does not say.
const SENTENCES: usize = 3;
/// Number of files that a question back names.
const NAMED_FILES: usize = 3;
/// What separates a text in the request from the request.
const ATTACHED: &str = "\n\nText:\n";

/// An answer and the files that were read for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ExampleAnswer {
    status: TaskStatus,
    output: String,
    read: Vec<String>,
}

impl ExampleAnswer {
    fn complete(output: impl Into<String>) -> Self {
        Self { status: TaskStatus::Complete, output: output.into(), read: Vec::new() }
    }

    fn question(output: impl Into<String>) -> Self {
        Self { status: TaskStatus::AwaitingResponse, ..Self::complete(output) }
    }
}

/// What a request is about.
struct RequestSubject<'a> {
    file: &'a SearchedFile,
    /// The sentences of the named section, or of the whole file.
    sentences: Vec<FoundSentence>,
    /// The section as prose, with its file.
    place: String,
}

/// Answers the last of these messages.
fn answer(library: &Library, said: &[String]) -> ExampleAnswer {
    let Some((first, replies)) = said.split_first() else {
        return ExampleAnswer::question("What would you like to know?");
    };
    // The reply states the structure that the agent asked for.
    if !replies.is_empty() && is_about_structure(first) {
        return restructured(library, first);
    }
    // A reply says what the first message left open.
    let request = said.join(" ");
    let (request, attached) = match request.split_once(ATTACHED) {
        Some((request, text)) => (request.to_owned(), Some(SearchedFile::attached(text))),
        None => (request.clone(), None),
    };
    if is_about_contradictions(&request) {
        return contradictions(&request);
    }
    let named = backticked(&request).into_iter().find_map(|name| library.file(name));
    let Some(file) = attached.as_ref().or(named) else {
        return without_file(library, &request);
    };
    let answer = about_file(file, &request);
    let read = if attached.is_some() { Vec::new() } else { vec![file.path.clone()] };
    ExampleAnswer { read, ..answer }
}

/// Answers a request that names no file: by a search, or by a question back.
fn without_file(library: &Library, request: &str) -> ExampleAnswer {
    let looks_like_file =
        |name: &&&str| name.contains('.') && !name.contains(' ') && !name.ends_with('.');
    let names = backticked(request);
    if let Some(missing) = names.iter().find(looks_like_file) {
        let output = format!("I cannot do that: there is no file `{missing}`.");
        return ExampleAnswer { status: TaskStatus::Error, ..ExampleAnswer::complete(output) };
    }
    if let Some(found) = library.best(request).filter(|_| !is_vague(request)) {
        let read = vec![found.path.clone()];
        return ExampleAnswer { read, ..ExampleAnswer::complete(found.cited()) };
    }
    let names = library.some_paths(NAMED_FILES).join(", ");
    let more = match library.len().saturating_sub(NAMED_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let known = if names.is_empty() { String::new() } else { format!(" I know {names}{more}.") };
    ExampleAnswer::question(format!("Which file or section do you mean?{known}"))
}

/// Returns true for a request that points at something without a name.
fn is_vague(request: &str) -> bool {
    const POINTERS: &[&str] = &[
        "that section",
        "that part",
        "this section",
        "this part",
        "the other",
        "the one",
        "before",
        " it ",
        " it.",
        " it?",
        "this file",
        "that file",
        "the same",
    ];
    let request = format!(" {} ", fold(request));
    POINTERS.iter().any(|pointer| request.contains(pointer))
}

fn about_file(file: &SearchedFile, request: &str) -> ExampleAnswer {
    let subject = subject(file, request);
    if is_about_structure(request) {
        return ExampleAnswer::question(format!(
            "Which structure do you prefer for {}: a flat list, or nested parts?",
            subject.place
        ));
    }
    let quoted = quoted(request);
    if let Some((before, after)) = quoted.iter().find_map(|text| text.split_once('…'))
        && let Some(number) = number_in_gap(file.flat(), before, after)
    {
        return ExampleAnswer::complete(number);
    }
    if let Some(statement) = quoted.first().filter(|_| request.contains("say this")) {
        return said_or_not(file, statement);
    }
    if let Some(start) = quoted.first().filter(|_| request.contains("go on")) {
        let begins = |sentence: &&FoundSentence| sentence.text.starts_with(*start);
        if let Some(sentence) = subject.file.sentences().iter().find(begins) {
            return ExampleAnswer::complete(sentence.text.clone());
        }
    }
    if subject.sentences.is_empty() {
        let output = format!("{} holds no sentence that I could quote.", subject.place);
        return ExampleAnswer::complete(output);
    }
    let folded = fold(&instruction(request));
    let is_open = ["summar", "sum up", "things that", "what does", "quote", "in exactly"]
        .iter()
        .any(|sign| folded.contains(sign));
    if !is_open && let Some(found) = nearest(subject.sentences.clone(), request) {
        return ExampleAnswer::complete(found.cited());
    }
    listed(&folded, &subject.sentences)
}

/// Finds the section that a request names.
fn subject<'a>(file: &'a SearchedFile, request: &str) -> RequestSubject<'a> {
    let after = |mark: &str| {
        let rest = request.split_once(mark)?.1;
        rest.split_once('”').map(|(name, _)| name.to_owned())
    };
    let named =
        after("section “").map(|name| (file.section(&name), format!("the section “{name}” of ")));
    let named = named.or_else(|| {
        let words = after("that begins with “")?;
        let found = file.starting_with(&words);
        (!found.is_empty()).then(|| (found, "that part of ".to_owned()))
    });
    let (sentences, part) = named.unwrap_or_else(|| (file.sentences(), String::new()));
    let place = match sentences.first() {
        Some(first) => format!("{part}{}", first.place()),
        None => format!("{part}{}", file.path),
    };
    RequestSubject { file, sentences, place }
}

/// Quotes as many sentences as were asked for, in the form that was asked for.
fn listed(request: &str, sentences: &[FoundSentence]) -> ExampleAnswer {
    let count = ["one", "two", "three", "four", "five"]
        .iter()
        .zip(1..)
        .find(|(word, number)| {
            let forms = ["lines", "items", "things", "sentences"];
            forms.iter().any(|form| {
                request.contains(&format!("{word} {form}"))
                    || request.contains(&format!("{number} {form}"))
            })
        })
        .map_or(SENTENCES, |(_, number)| number);
    let chosen = sentences.iter().take(count);
    let lines: Vec<String> = if request.contains("a table") {
        let head = ["| Number | Statement |".to_owned(), "|---|---|".to_owned()];
        let rows = chosen.zip(1..).map(|(sentence, number)| {
            format!("| {number} | {} ({}) |", sentence.text.replace('|', "/"), sentence.place())
        });
        head.into_iter().chain(rows).collect()
    } else if request.contains("bullet") || request.contains("list of") {
        chosen.map(|sentence| format!("- {}", sentence.cited())).collect()
    } else {
        chosen.map(FoundSentence::cited).collect()
    };
    ExampleAnswer::complete(lines.join("\n"))
}

/// Says whether a file holds a statement, and what it says instead.
fn said_or_not(file: &SearchedFile, statement: &str) -> ExampleAnswer {
    let found = nearest(file.sentences(), statement);
    let output = match (file.says(statement), found) {
        (true, Some(found)) => format!("Yes, {} says so.", found.place()),
        (true, None) => format!("Yes, {} says so.", file.path),
        (false, Some(found)) => format!("No, {} says: “{}”", found.place(), found.text),
        (false, None) => format!("No, {} says nothing like it.", file.path),
    };
    ExampleAnswer::complete(output)
}

/// Returns the number between two parts of a sentence.
fn number_in_gap(text: &str, before: &str, after: &str) -> Option<String> {
    let (before, after) = (normalise_spaces(before), normalise_spaces(after));
    let mut from = 0;
    while let Some(at) = text[from..].find(|c: char| c.is_ascii_digit()) {
        let start = from + at;
        let rest = &text[start..];
        let end = start + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let fits = text[..start].trim_end().ends_with(&before)
            && text[end..].trim_start().starts_with(&after);
        if fits {
            return Some(text[start..end].to_owned());
        }
        from = end;
    }
    None
}

fn is_about_contradictions(request: &str) -> bool {
    fold(&instruction(request)).contains("contradict")
}

/// Looks for contradictions between numbered statements.
///
/// FAULT: it looks for words that deny (`not`, `never`), and is blind to two values of one thing.
fn contradictions(request: &str) -> ExampleAnswer {
    const DENIALS: &[&str] = &["not", "no", "never", "cannot", "nothing", "none"];
    let statements: Vec<&str> = request
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(". "))
        .collect();
    let denies = |statement: &str| {
        let folded = fold(statement);
        folded.split(|c: char| !c.is_alphanumeric()).any(|word| DENIALS.contains(&word))
    };
    let like = |one: &str, two: &str| {
        let words = |text: &str| {
            let folded = fold(text);
            folded.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let (one, two) = (words(one), words(two));
        2 * one.iter().filter(|word| two.contains(word)).count() > one.len()
    };
    for (at, one) in statements.iter().enumerate() {
        let pair =
            statements[at + 1..].iter().find(|two| like(one, two) && denies(one) != denies(two));
        if let Some(two) = pair {
            return ExampleAnswer::complete(format!("One denies the other:\n{one}\n{two}"));
        }
    }
    let count = statements.len();
    ExampleAnswer::complete(format!(
        "None of the {count} statements denies another one: I find no contradiction."
    ))
}

fn is_about_structure(request: &str) -> bool {
    let request = fold(&instruction(request));
    ["reorganis", "reorganiz", "restructur", "better structure", "propose how to split"]
        .iter()
        .any(|sign| request.contains(sign))
}

/// Proposes a structure after the reply to its question.
///
/// FAULT: it does not read the reply, and proposes nested parts whatever was preferred.
fn restructured(library: &Library, request: &str) -> ExampleAnswer {
    let (request, attached) = match request.split_once(ATTACHED) {
        Some((request, text)) => (request, Some(SearchedFile::attached(text))),
        None => (request, None),
    };
    let named = backticked(request).into_iter().find_map(|name| library.file(name));
    let Some(file) = attached.as_ref().or(named) else {
        return ExampleAnswer::question("Which file or section do you mean?");
    };
    let subject = subject(file, request);
    let half = subject.sentences.len().min(4).div_ceil(2);
    let part = |title: &str, sentences: &[FoundSentence]| {
        let lines = sentences.iter().map(|sentence| format!("\n  - {}", sentence.cited()));
        format!("- {title}{}", lines.collect::<String>())
    };
    let (first, rest) = subject.sentences.split_at(half);
    let rest = &rest[..rest.len().min(half)];
    let parts = [("What it is", first), ("How to use it", rest)];
    let parts = parts.into_iter().filter(|(_, sentences)| !sentences.is_empty());
    let parts = parts.map(|(title, sentences)| format!("\n{}", part(title, sentences)));
    let output = format!(
        "A proposal for {}; all files stay as they are:{}",
        subject.place,
        parts.collect::<String>()
    );
    let read = if attached.is_some() { Vec::new() } else { vec![file.path.clone()] };
    ExampleAnswer { read, ..ExampleAnswer::complete(output) }
}

/// Returns what stands between backticks.
fn backticked(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns a request without what stands between quotation marks: what is to be done.
fn instruction(request: &str) -> String {
    let mut parts = request.split('“');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once('”').map_or("", |(_, rest)| rest))
}

/// Returns what stands between quotation marks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('“').skip(1).filter_map(|rest| Some(rest.split_once('”')?.0)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scenario::ground::{ExcerptSources, SourceFile};
    use crate::scenario::{ScenarioKind, SeededDraw, settled};
    use crate::sut::project::ProjectFile;
    use selftest_checks::check::{CheckObservation, CheckOutcome, decide_all};

    const PAGE: &str = "# Ferry\n\nA timetable for small harbours, in one file.\n\n## Ports\n\n\
        The server listens on port 7700 of this machine.\nAt most 20 clients are served at once.\n\
        Each of them waits for 30 seconds at most.\n\n## Files\n\nTimes are kept in `times.csv` by \
        the server.\nTickets are kept in `paid/tickets` by the till.\nA lock keeps two servers apart.\n";

    fn library() -> Library {
        let file =
            ProjectFile { path: "docs/usage.md".to_owned(), text: PAGE.to_owned(), cut: false };
        Library::new(&[file])
    }

    fn sources() -> ExcerptSources {
        let source = SourceFile { path: "docs/usage.md".to_owned(), text: PAGE.to_owned() };
        ExcerptSources::new([source])
    }

    fn say(said: &[&str]) -> ExampleAnswer {
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        answer(&library(), &said)
    }

    #[test]
    fn cases_that_checks_settle_are_answered_well_but_for_contradictions() {
        for (kind, is_right) in [
            (ScenarioKind::Ambiguous, true),
            (ScenarioKind::Summary, true),
            (ScenarioKind::Evidence, true),
            (ScenarioKind::Contradiction, false),
        ] {
            for seed in 0..80 {
                for sources in [sources(), ExcerptSources::default()] {
                    let mut draw = SeededDraw::new(seed);
                    let case = settled::case(kind, &sources, &mut draw, |_| true).unwrap();
                    let answer = say(&[&case.prompt]);
                    let asks = answer.status == TaskStatus::AwaitingResponse;
                    assert_eq!(asks, kind == ScenarioKind::Ambiguous, "{} {answer:?}", case.prompt);
                    let seen =
                        CheckObservation { output: &answer.output, ..CheckObservation::default() };
                    let findings = decide_all(&case.grounds.checks, &seen).findings;
                    let held = findings.iter().all(|found| found.outcome == CheckOutcome::Held);
                    assert_eq!(held, is_right, "{}\n{answer:?}\n{findings:#?}", case.prompt);
                }
            }
        }
    }

    #[test]
    fn it_quotes_with_file_and_line_and_asks_back() {
        let found = say(&["On which port does the server listen?"]);
        assert_eq!(
            found.output,
            "“The server listens on port 7700 of this machine.” (docs/usage.md:7)"
        );
        assert_eq!(found.read, ["docs/usage.md"]);
        let asked = say(&["Please change it to the other one."]);
        assert_eq!(asked.output, "Which file or section do you mean? I know docs/usage.md.");
        let missing = say(&["Summarise `docs/none.md` in exactly three lines."]);
        assert_eq!(missing.status, TaskStatus::Error);
    }

    #[test]
    fn its_second_fault_is_to_forget_the_reply() {
        let request = "How would you reorganise the section “Ports” of `docs/usage.md`?";
        assert_eq!(say(&[request]).status, TaskStatus::AwaitingResponse);
        let proposal = say(&[request, "Please use flat structure"]);
        assert_eq!(proposal.status, TaskStatus::Complete);
        assert!(proposal.output.contains("\n  - "), "{}", proposal.output);
    }

    proptest! {
        #[test]
        fn any_request_about_any_text_is_answered(
            page in "([#`|-]{0,2} ?[A-Za-z `0-9.%…é“”]{0,50}\n){0,20}",
            section in "[A-Za-z `0-9…“”]{0,20}",
            asks in "(Does it say this|Which gap|go on|contradict|reorganise|a table|\\PC{0,20})",
        ) {
            let file = ProjectFile { path: "a.md".to_owned(), text: page, cut: false };
            let library = Library::new(&[file]);
            let request = format!("{asks} the section “{section}” of `a.md`: “{section}…{section}”?");
            let said = [request, "flat".to_owned()];
            prop_assert!(!answer(&library, &said[..1]).output.is_empty());
            prop_assert!(!answer(&library, &said).output.is_empty());
        }
    }

    #[test]
    fn denials_are_all_that_it_sees_in_contradictions() {
        let list = "Find the contradiction:\n1. The port is never open.\n2. The port is open.";
        assert!(say(&[list]).output.starts_with("One denies the other"));
        let list = "Find the contradiction:\n1. The port is 7700.\n2. The port is 11553.";
        assert!(say(&[list]).output.contains("no contradiction"));
    }
}
