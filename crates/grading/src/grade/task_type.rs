//! Type of work in a session (docs/spec/session-grades.md#task-types), inferred from its first
//! request, or from the kinds of files changed and commands run if the request is not informative.
//!
//! A word from the specification's table decides if it is near the start of the request and no other
//! row matches. Otherwise cues are weighed. Their weights were set by hand on half of the labelled
//! requests in `tests/it/task_types.rs` and measured on the other half.
//!
//! The work is collected from every call, so for speed only the start of the arguments is scanned,
//! and no JSON is parsed.

use std::sync::LazyLock;

use memchr::memmem;
use regex::{Regex, RegexSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::outcome::{is_editor, is_shell, strip_mcp_server};
use crate::english;
use selftest_sessions::Event;

/// The specified task types.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum TaskType {
    /// Reviewing others' code.
    CodeReview,
    /// Finding and fixing bugs.
    Debugging,
    /// Adding new behaviour.
    FeatureImpl,
    /// Restructuring code without changing its behaviour.
    Refactoring,
    /// Writing documentation.
    Documentation,
    /// Writing or running tests.
    Testing,
    /// Finding information.
    Research,
    /// Releasing and deploying.
    Deployment,
    /// Processing data.
    DataAnalysis,
    /// Setting up machines and services.
    Infrastructure,
    /// Anything else.
    General,
}

selftest_text::named!(TaskType);

/// The specified words with their inflections, on word boundaries. `PR` must be in capitals, since
/// `pr` is part of too many names.
const PATTERNS: [(TaskType, &str); 10] = [
    (TaskType::CodeReview, r"(?i:\breview(s|ed|ing|ers?)?\b)|\bPRs?\b"),
    (TaskType::Debugging, r"(?i)\b(debug(s|ged|ging|ger)?|fix(es|ed|ing)?|troubleshoot(s|ing)?)\b"),
    (
        TaskType::FeatureImpl,
        r"(?i)\b(implement(s|ed|ing|ation)?|add(s|ed|ing)?( \w+){0,3} features?|build(s|ing)?|built)\b",
    ),
    (
        TaskType::Refactoring,
        r"(?i)\b(refactor(s|ed|ing)?|clean(s|ed|ing)?[ -]?up|reorgani[sz](e[sd]?|ing))\b",
    ),
    (TaskType::Documentation, r"(?i)\b(document(s|ed|ing|ation)?|readme|docstrings?)\b"),
    (TaskType::Testing, r"(?i)\b(tests?|tested|testing|pytest|unit[ -]tests?)\b"),
    (
        TaskType::Research,
        r"(?i)\b(research(es|ed|ing)?|investigat(e[sd]?|ing|ion)|look(s|ed|ing)? up)\b",
    ),
    (
        TaskType::Deployment,
        r"(?i)\b(deploy(s|ed|ing|ments?)?|releas(e[sd]?|ing)|publish(es|ed|ing)?)\b",
    ),
    (
        TaskType::DataAnalysis,
        r"(?i)\b(analy[sz](e[sd]?|ing)( \w+){0,3} data|data analysis|process(es|ed|ing)?( \w+){0,2} files?|pars(e[sd]?|ing))\b",
    ),
    (TaskType::Infrastructure, r"(?i)\b(servers?|docker|kubernetes)\b"),
];

impl TaskType {
    /// Infers the type from a request alone.
    pub fn from_request(request: &str) -> Self {
        Self::from_task(request, &TaskWork::default())
    }

    /// Infers the type of a task.
    ///
    /// The words of the request decide. The work done decides if they are not informative, and
    /// corrects the type if they match only cues outside the specification's table.
    pub fn from_task(request: &str, work: &TaskWork) -> Self {
        match classify_request(request) {
            RequestHint::TableWord(task_type) => task_type,
            // The cues are about software development, so they say nothing about other work.
            RequestHint::Cues(_) if work.is_non_developer() => TaskType::General,
            // A cue is a guess that what was done can overrule; a word of the specification's table
            // is not.
            RequestHint::Cues(task_type) => work.correct_type(task_type),
            RequestHint::Unclear => work.task_type(),
        }
    }
}

/// Maximum number of bytes of a request to examine.
const MAX_REQUEST: usize = 2000;

/// Maximum number of characters of the user's own text to examine. After that, people explain and
/// paste.
const MAX_OWN_WORDS: usize = 300;

/// Number of bytes at the start within which a request states the task.
const MAX_BEGINNING: usize = 80;

/// Minimum number of points for a decision.
const MIN_POINTS: i32 = 2;

/// Points for a word from the table: near the start, and further on.
const TABLE: [i32; 2] = [3, 2];

/// Courtesies and similar phrases before the actual request.
const OPENING: &str = r"^\W*((okay|ok|yes|sure|great|now|so|also|please|can|could|would|you|let'?s|us|help|me|to|i|want|need|we|should|'d|like|just|then|and|have|a|the|hello|hi|claude|it'd|be|nice|if|go|ahead)\b[\s,.!:;-]*)*";

/// Parts of a request that the user did not write: code, harness markers, images, addresses and
/// paths.
const FOREIGN: &str = r"(?s)```.*?(```|$)|<command-(message|name)>.*?</command-(message|name)>|\[image [^\]]*\]|\[Image #\d+\]|https?://\S+|\S*[/@]\S+";

/// File names and code within a line.
const NAME: &str =
    r"(?i)\b[\w-]+\.(py|js|ts|tsx|txt|html|css|json|rs|ipynb|yml|yaml|toml)\b|`[^`\n]*`";

/// Headings that benchmarks put before the task.
const HEADING: &str = r"(?im)^\W*(general task|problem statement|issue|github issue)\b:?";

/// Signs of a pasted log or terminal.
const LOG: &str = r"\b\d\d:\d\d:\d\d\b|❯|(?m:^\$ )|npm (ERR|error)|Traceback";

/// A question within a text.
const QUESTION: &str = r"(?im)(^|[.!?:,]\s+)(how|what|which|where|who|when)\b[^.\n]*\?";

/// Cues in addition to the table: type, points, true if it must follow the opening, and pattern.
const CUES: [(TaskType, i32, bool, &str); 16] = [
    (
        TaskType::CodeReview,
        3,
        false,
        r"\baudit(s|ed|ing)?\b|\bis everything (ok|fine)\b|\bcode quality\b",
    ),
    (
        TaskType::Debugging,
        3,
        false,
        r"\binvestigat\w* (the |these |two |three |\w+ )?(issues?|problems?|bugs?|why)\b",
    ),
    (TaskType::Debugging, 1, false, r"\bissues?\b|\bproblems?\b|\bmissing\b"),
    (
        TaskType::Debugging,
        2,
        false,
        r"(does|do|did|is|are|was|were|can)(n['’]t| not) (\w+ )?(work|load|show|compile|build|start|run|sound|supported|appear)|\bnot (working|loading|showing|seeing|appearing)|\bstill (not|no|fails|broken|doesn)|\bbroken\b|\bbugs?\b|\berrors?\b|\bexceptions?\b|\btraceback\b|\bfail(s|ed|ing|ures?)?\b|\bcrash(es|ed|ing)?\b|\bwrong\b|\bunhappy\b|\bannoying\b|\bmysterious\b|\bno \w+( or \w+)? (are|is) |\bblocked\b|\ball \w+( \w+)* (now )?(sound|look) the same",
    ),
    (
        TaskType::FeatureImpl,
        2,
        true,
        r"(add|create|make|write|implement|build|change|update|support|give|move|set up|new feature|plan)\b",
    ),
    (
        TaskType::FeatureImpl,
        1,
        false,
        r"\bnew (feature|page|command|button|option)\b|\bshould (be|also|show|support|change|have)\b|\bsupport\b|\bpages?\b|\bbutton\b",
    ),
    (
        TaskType::Refactoring,
        3,
        false,
        r"\brenam(e|es|ed|ing)\b|\bmigrat(e|es|ed|ing|ion)\b|\bport (this|the|it)\b|\brewrit(e|ing|ten)\b|\brestructur(e|ing)\b|\bsimplif(y|ies|ied)\b|\bdeduplicat|\bin a better way\b|\bsplit\b.*\binto\b|\bmove (these|this|the|those)\b.*\b(into|submodule|module|files?)\b|\bmoderni[sz](e|ing)\b",
    ),
    (
        TaskType::Documentation,
        3,
        false,
        r"\bCLAUDE\.md\b|\bAGENTS\.md\b|\bchangelog\b|\bdocs\b|\blicen[cs]e\b|\bcomments\b.*\bcode\b|/init\b",
    ),
    (
        TaskType::Testing,
        2,
        false,
        r"\bcoverage\b|\btest suite\b|\brun (the )?(lint|tests?)\b|\btests? (for|of)\b",
    ),
    (
        TaskType::Research,
        2,
        true,
        r"(how|what|which|where|who|whom|when|why|explain|understand|find|search|explore|compare|evaluate|examine|tell|show me how|list|read|look at|check|summari[sz]e)\b",
    ),
    (TaskType::Research, 1, false, r"\?"),
    (
        TaskType::Research,
        1,
        false,
        r"\bunderstand\b|\btell me\b|\bhow (to|does|do|can|would|hard)\b|\bfind out\b|\bcollect information\b",
    ),
    (
        TaskType::Deployment,
        3,
        false,
        r"\bpush(es|ed|ing)?\b|\bpull requests?\b|\bmerg(e|es|ed|ing)\b|\bship\b|\bCI\b",
    ),
    (TaskType::Deployment, 1, false, r"\bcommit\b"),
    (
        TaskType::DataAnalysis,
        3,
        false,
        r"\bspreadsheets?\b|\bdata ?sets?\b|\bstatistics\b|\bhow likely\b|\bcsv\b|\bpercentage\b|\bcorrelation\b",
    ),
    (
        TaskType::Infrastructure,
        2,
        false,
        r"\bcontainers?\b|\binstall(s|ed|ing|able|ation)?\b|\breinstall|\bpnpm\b|\bvite\b|\bwebpack\b|\bpyproject\b|\bpackage\.json\b|\bpipelines?\b|\bterraform\b|\bnginx\b|\bconfigur(e|ation)\b|\bconfig\b|\benvironment variables?\b",
    ),
];

struct RequestPatterns {
    table: Vec<Regex>,
    cues: RegexSet,
    foreign: Regex,
    name: Regex,
    heading: Regex,
    log: Regex,
    question: Regex,
}

static PATTERNS_OF_WORDS: LazyLock<RequestPatterns> = LazyLock::new(|| {
    let cues = CUES.map(|(_, _, follows_opening, pattern)| {
        if follows_opening { format!("(?i){OPENING}{pattern}") } else { format!("(?i){pattern}") }
    });
    RequestPatterns {
        table: PATTERNS.iter().map(|(_, pattern)| english::regex(pattern)).collect(),
        cues: english::regex_set(cues.iter().map(String::as_str)),
        foreign: english::regex(FOREIGN),
        name: english::regex(NAME),
        heading: english::regex(HEADING),
        log: english::regex(LOG),
        question: english::regex(QUESTION),
    }
});

/// The type that a request's words suggest, and the kind of evidence for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestHint {
    /// A word from the specification's table is near the start, and only one row matches.
    TableWord(TaskType),
    /// The cues have the most points for this type.
    Cues(TaskType),
    /// The words are not informative.
    Unclear,
}

/// Returns the type suggested by the words of a request.
fn classify_request(request: &str) -> RequestHint {
    let patterns = &*PATTERNS_OF_WORDS;
    let text = &request[..request.floor_char_boundary(MAX_REQUEST)];
    let own = own_words(text, patterns);
    let rows: Vec<(TaskType, usize)> = PATTERNS
        .iter()
        .zip(&patterns.table)
        .filter_map(|((row, _), pattern)| Some((*row, pattern.find(&own)?.start())))
        .collect();
    if let [(row, at)] = rows[..]
        && at < MAX_BEGINNING
    {
        return RequestHint::TableWord(row);
    }
    let mut points = [0; TaskType::ALL.len()];
    for (row, at) in rows {
        // Two rows match, or one of them late in the text, so the table only adds its points.
        points[row as usize] += TABLE[usize::from(at >= MAX_BEGINNING)];
    }
    for at in &patterns.cues.matches(&own) {
        let (cued, worth, ..) = CUES[at];
        points[cued as usize] += worth;
    }
    // Logs and questions are looked for in the whole text: the user's own words leave pasted parts
    // out.
    points[TaskType::Debugging as usize] += 2 * i32::from(patterns.log.is_match(text));
    points[TaskType::Research as usize] += i32::from(patterns.question.is_match(text));
    // A request to open a PR is not a request for a review.
    if points[TaskType::Deployment as usize] >= 3 {
        points[TaskType::CodeReview as usize] -= 3;
    }
    let mut best = (TaskType::General, MIN_POINTS - 1);
    for &task_type in TaskType::ALL {
        // Of equal points the earlier type wins, in the order of the specification's table.
        if points[task_type as usize] > best.1 {
            best = (task_type, points[task_type as usize]);
        }
    }
    if best.0 == TaskType::General { RequestHint::Unclear } else { RequestHint::Cues(best.0) }
}

/// Returns the start of the user's own text, on one line.
fn own_words(text: &str, patterns: &RequestPatterns) -> String {
    // Benchmarks put the same frame around every task; the task itself follows this heading.
    let task = patterns.heading.find(text).map_or(text, |heading| &text[heading.end()..]);
    let own = patterns.foreign.replace_all(task, " ");
    // A file such as `test_parser.py` or `review.md` does not say what is to be done with it.
    let own = patterns.name.replace_all(&own, " file ");
    let words: Vec<&str> = own.split_whitespace().collect();
    let words = words.join(" ");
    // By characters: other scripts take several bytes for each.
    let end = words.char_indices().nth(MAX_OWN_WORDS).map_or(words.len(), |(at, _)| at);
    words[..end].to_owned()
}

/// Maximum number of calls to examine; more would not change the type.
const MAX_CALLS: u32 = 400;

/// Maximum number of bytes of arguments to examine.
const MAX_ARGUMENTS: usize = 1000;

/// Argument names that tools use for a file path.
const FILES: [&str; 7] =
    ["file_path", "filePath", "path", "notebook_path", "absolute_path", "target_file", "filename"];

/// Tools that search the web, and tools that read or search files, in lower case.
const WEB: [&str; 5] = ["websearch", "webfetch", "web_search", "web_fetch", "google_web_search"];
const READERS: [&str; 12] = [
    "read",
    "grep",
    "glob",
    "ls",
    "read_file",
    "list_directory",
    "open",
    "find_file",
    "search",
    "list_files",
    "search_files",
    "read_many_files",
];

/// Kinds of commands, in order: writing files, publishing work, checking, setting up machines,
/// reading.
static COMMANDS: LazyLock<RegexSet> = LazyLock::new(|| {
    english::regex_set([
        r"\bapply_patch\b|\bsed -i|\bcat >{1,2} ",
        r"\bgit push\b|\bgh pr (create|merge)\b|\b(npm|cargo) publish\b|\btwine upload\b|\bgh release\b",
        r"\b(pytest|cargo test|go test|npm (run )?test|jest|vitest|tox|mvn test|rspec)\b|\bcheck-types\b|\blint\b",
        r"\b(docker|podman|kubectl|terraform|helm|systemctl|ansible)\b|\b(npm|pnpm|yarn|pip3?|uv|cargo|apt(-get)?|brew) (tool )?(install|add|i|sync)\b",
        r"\b(ls|cat|head|tail|find|grep|rg|sed -n|nl|tree|pwd|git (status|log|diff|show))\b",
    ])
});

/// Work done for a task: counts of changed files and commands by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskWork {
    calls: u32,
    /// File changes by kind.
    code: u32,
    tests: u32,
    notes: u32,
    settings: u32,
    /// All commands, and among them those that publish work, run checks or set up machines.
    commands: u32,
    pushes: u32,
    checks: u32,
    machines: u32,
    /// Reads of files, and web searches.
    reads: u32,
    searches: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangedFileKind {
    Code,
    Test,
    Notes,
    Settings,
}

impl TaskWork {
    /// Counts the calls of an event.
    pub fn add(&mut self, event: &Event<'_>) {
        for call in &event.calls {
            if self.calls >= MAX_CALLS {
                return;
            }
            self.calls += 1;
            let name = strip_mcp_server(&call.name);
            let arguments = call.arguments.trim_start();
            let arguments = &arguments[..arguments.floor_char_boundary(MAX_ARGUMENTS)];
            if is_editor(name) {
                self.edit(name, arguments);
            // SWE-agent's calls have the command line as arguments, which repeats the name of the
            // command.
            } else if is_shell(name) || (!name.is_empty() && arguments.starts_with(name)) {
                self.command(arguments);
            } else if WEB.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                self.searches += 1;
            } else if READERS.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                self.reads += 1;
            }
        }
    }

    fn edit(&mut self, name: &str, arguments: &str) {
        let is_json = arguments.starts_with('{');
        let path = if is_json {
            // Anthropic's text editor tool reads and writes by one name.
            if json_string_value(arguments, "command") == Some("view") {
                self.reads += 1;
                return;
            }
            FILES.iter().find_map(|key| json_string_value(arguments, key))
        } else {
            // A command line such as `create src/x.py`.
            let mut words = arguments.split_whitespace();
            words.next().filter(|word| *word == name).and_then(|_| words.next())
        };
        let path = path.unwrap_or_default();
        // A plan that the agent writes for itself.
        if path.contains("/.claude/plans/") {
            return;
        }
        match file_kind(path) {
            ChangedFileKind::Code => self.code += 1,
            ChangedFileKind::Test => self.tests += 1,
            ChangedFileKind::Notes => self.notes += 1,
            ChangedFileKind::Settings => self.settings += 1,
        }
    }

    fn command(&mut self, arguments: &str) {
        self.commands += 1;
        let command = ["command", "cmd"].iter().find_map(|key| json_string_value(arguments, key));
        // Without JSON, the arguments are the command line itself.
        for kind in &COMMANDS.matches(command.unwrap_or(arguments)) {
            let count = match kind {
                0 => &mut self.code,
                1 => &mut self.pushes,
                2 => &mut self.checks,
                3 => &mut self.machines,
                _ => &mut self.reads,
            };
            *count += 1;
        }
    }

    /// Returns true if tools were called but none is a developer's tool.
    fn is_non_developer(&self) -> bool {
        // Every call was of a tool that is none of a developer, such as one that books a flight.
        self.calls > 0 && *self == Self { calls: self.calls, ..Self::default() }
    }

    fn changes(&self) -> u32 {
        self.code + self.tests + self.notes + self.settings
    }

    /// Infers the type from the work alone.
    fn task_type(&self) -> TaskType {
        let changes = self.changes();
        if changes > 0 {
            // Without a request, written code may as well be a fix; features are the most common.
            return self.single_kind().unwrap_or(TaskType::FeatureImpl);
        }
        match self {
            _ if self.pushes > 0 => TaskType::Deployment,
            _ if self.checks > 0 => TaskType::Testing,
            _ if self.machines > 0 => TaskType::Infrastructure,
            // One file is read in nearly any session.
            _ if self.searches > 0 || self.reads > 1 => TaskType::Research,
            _ => TaskType::General,
        }
    }

    /// Returns the type if all changes are of one kind other than code.
    fn single_kind(&self) -> Option<TaskType> {
        let kinds = [
            (self.notes, TaskType::Documentation),
            (self.tests, TaskType::Testing),
            (self.settings, TaskType::Infrastructure),
        ];
        let changes = self.changes();
        kinds.into_iter().find(|(count, _)| *count > 0 && *count == changes).map(|(_, kind)| kind)
    }

    /// Corrects a type suggested by cues. A question that led to code is a feature, and a feature
    /// that consists only of text or settings is documentation or infrastructure.
    fn correct_type(&self, said: TaskType) -> TaskType {
        match (said, self.single_kind()) {
            // "How would you …?" is often a polite request.
            (TaskType::Research, _) if self.code > 0 => TaskType::FeatureImpl,
            (TaskType::FeatureImpl | TaskType::Testing, Some(TaskType::Documentation)) => {
                TaskType::Documentation
            }
            (TaskType::FeatureImpl, Some(TaskType::Infrastructure)) => TaskType::Infrastructure,
            (said, _) => said,
        }
    }
}

/// Returns the raw text under a key of a JSON object.
fn json_string_value<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let mut rest = json;
    loop {
        let at = memmem::find(rest.as_bytes(), key.as_bytes())?;
        // The name of the key may also occur within a value.
        let is_key = rest[..at].ends_with('"') && rest[at + key.len()..].starts_with('"');
        rest = &rest[at + key.len()..];
        if !is_key {
            continue;
        }
        let text = rest[1..].trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        let bytes = text.as_bytes();
        // An escaped backslash at the end of a value is misread as an escaped quote, which only
        // makes the value longer. Parsing JSON would cost more than the rest of this function.
        let is_end = |at: &usize| bytes[*at] == b'"' && (*at == 0 || bytes[*at - 1] != b'\\');
        let end = (0..bytes.len()).find(is_end).unwrap_or(bytes.len());
        return Some(&text[..end]);
    }
}

fn file_kind(path: &str) -> ChangedFileKind {
    const NOTES: [&str; 5] = ["md", "mdx", "rst", "adoc", "txt"];
    const SETTINGS: [&str; 10] =
        ["yml", "yaml", "toml", "ini", "cfg", "conf", "tf", "lock", "env", "gitignore"];
    let path = path.to_ascii_lowercase();
    let mut parts = path.rsplit(['/', '\\']).filter(|part| !part.is_empty());
    let name = parts.next().unwrap_or_default();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_named = |names: &[&str]| names.iter().any(|beginning| name.starts_with(beginning));
    if NOTES.contains(&extension) || is_named(&["readme", "license", "changelog"]) {
        return ChangedFileKind::Notes;
    }
    // Only the next two folders: a checkout below `/home/me/tests/` is no test.
    let in_tests = parts
        .take(2)
        .any(|folder| matches!(folder, "test" | "tests" | "spec" | "specs" | "__tests__"));
    let is_test = name.starts_with("test_")
        || stem.ends_with("_test")
        || stem.rsplit_once('.').is_some_and(|(_, inner)| matches!(inner, "test" | "spec"));
    if in_tests || is_test {
        return ChangedFileKind::Test;
    }
    let is_settings = SETTINGS.contains(&extension)
        || matches!(
            name,
            "dockerfile" | "containerfile" | "makefile" | "justfile" | "package.json"
        )
        || is_named(&["tsconfig", ".env"])
        || name == "vercel.json"
        || (name.starts_with('.') && (name.ends_with("rc") || stem.ends_with("rc")))
        || path.contains(".github/");
    if is_settings { ChangedFileKind::Settings } else { ChangedFileKind::Code }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::ToolCall;

    #[test]
    fn every_specified_word() {
        for (words, expected) in [
            (&["review this", "a code review please", "look at my PR"][..], TaskType::CodeReview),
            (&["debug it", "fix the bug", "Troubleshoot this"], TaskType::Debugging),
            (&["implement X", "add feature Y", "build a page"], TaskType::FeatureImpl),
            (&["refactor it", "clean up the code", "reorganize files"], TaskType::Refactoring),
            (&["document it", "write a README", "a docstring"], TaskType::Documentation),
            (&["test it", "run pytest", "one unit test"], TaskType::Testing),
            (&["research this", "Investigate why", "look up the name"], TaskType::Research),
            (&["deploy it", "make a release", "publish it"], TaskType::Deployment),
            (&["analyze data", "process file x", "parse this"], TaskType::DataAnalysis),
            (&["the server", "use docker", "kubernetes"], TaskType::Infrastructure),
            (&["hello", "", "thank you"], TaskType::General),
        ] {
            for word in words {
                assert_eq!(TaskType::from_request(word), expected, "{word}");
            }
        }
    }

    #[test]
    fn words_are_whole_and_cues_weigh_rows() {
        for word in ["the latest contest", "prefix the path", "sprint", "rebuilding", "attest"] {
            assert_eq!(TaskType::from_request(word), TaskType::General, "{word}");
        }
        for (request, expected) in [
            ("fix the failing test on the server", TaskType::Debugging),
            ("what is the capital of France?", TaskType::Research),
            ("it still doesn't work", TaskType::Debugging),
            ("please add margin below the details", TaskType::FeatureImpl),
            ("commit the work, push the pr", TaskType::Deployment),
            ("/w/review/test.py @docs/fix.md `pytest`", TaskType::General),
            ("# Problem Statement\nWe can license this under MIT", TaskType::Documentation),
            ("```\nfix the bug\n``` rename it", TaskType::Refactoring),
        ] {
            assert_eq!(TaskType::from_request(request), expected, "{request}");
        }
        let long = format!("{} fix it", "word ".repeat(1000));
        assert_eq!(TaskType::from_request(&long), TaskType::General);
    }

    #[test]
    fn names_are_those_of_serde() {
        for &task_type in TaskType::ALL {
            assert_eq!(serde_json::to_value(task_type).unwrap(), task_type.name());
            assert_eq!(TaskType::from_name(task_type.name()), Some(task_type));
        }
    }

    fn work(calls: &[(&'static str, &'static str)]) -> TaskWork {
        let call = |&(name, arguments): &(&'static str, &'static str)| ToolCall {
            name: name.into(),
            arguments: arguments.into(),
            ..ToolCall::default()
        };
        let mut work = TaskWork::default();
        work.add(&Event { calls: calls.iter().map(call).collect(), ..Event::default() });
        work
    }

    #[test]
    fn what_was_done_has_a_type_by_itself() {
        for (calls, expected) in [
            (&[][..], TaskType::General),
            (&[("Edit", r#"{"file_path":"/Users/test/dev/app/src/x.rs"}"#)], TaskType::FeatureImpl),
            (
                &[("Write", r#"{"file_path":"/a/tests/x.rs","content":"\"path\""}"#)],
                TaskType::Testing,
            ),
            (
                &[("Write", r#"{"content":"a","file_path":"C:\\p\\README.md"}"#)],
                TaskType::Documentation,
            ),
            (&[("create", "create .github/workflows/ci.yml")], TaskType::Infrastructure),
            (&[("Bash", r#"{"command":"git push origin main"}"#)], TaskType::Deployment),
            (&[("shell", r#"{"command":["bash","-lc","pnpm run lint"]}"#)], TaskType::Testing),
            (&[("Bash", r#"{"command": "docker compose up"}"#)], TaskType::Infrastructure),
            (&[("WebSearch", "{}")], TaskType::Research),
            (&[("Read", "{}"), ("mcp__files__read", "{}")], TaskType::Research),
            (&[("Read", "{}")], TaskType::General),
            (&[("str_replace_editor", r#"{"command":"view","path":"a.rs"}"#)], TaskType::General),
            (&[("Write", r#"{"file_path":"/h/.claude/plans/p.md"}"#)], TaskType::General),
        ] {
            assert_eq!(work(calls).task_type(), expected, "{calls:?}");
        }
    }

    #[test]
    fn what_was_done_corrects_what_cues_say() {
        let code = work(&[("Edit", r#"{"file_path":"a.rs"}"#)]);
        assert_eq!(code.correct_type(TaskType::Research), TaskType::FeatureImpl);
        assert_eq!(code.correct_type(TaskType::Debugging), TaskType::Debugging);
        let notes = work(&[("Edit", r#"{"file_path":"a.md"}"#)]);
        assert_eq!(notes.correct_type(TaskType::FeatureImpl), TaskType::Documentation);
        assert_eq!(notes.correct_type(TaskType::Debugging), TaskType::Debugging);
    }

    #[test]
    fn tools_of_other_trades_are_foreign() {
        assert!(work(&[("get_user_details", "{}")]).is_non_developer());
        assert!(!work(&[("get_user_details", "{}"), ("Read", "{}")]).is_non_developer());
        assert!(!work(&[]).is_non_developer());
        let booked = work(&[("book_flight", "{}")]);
        assert_eq!(TaskType::from_task("I want to change my flight", &booked), TaskType::General);
    }

    #[test]
    fn values_are_found_as_they_are_written() {
        assert_eq!(json_string_value(r#"{"path" : "a\"b", "x": 1}"#, "path"), Some(r#"a\"b"#));
        assert_eq!(json_string_value(r#"{"xpath":"n","path":"y"#, "path"), Some("y"));
        assert_eq!(json_string_value(r#"{"path":["a"]}"#, "path"), None);
        assert_eq!(json_string_value(r#"{"a":"path"#, "path"), None);
        assert_eq!(json_string_value("", "path"), None);
    }
}
