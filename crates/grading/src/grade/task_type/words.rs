//! Infers the type of a task from the words of its request.
//!
//! A word from the specification's table decides if it is near the start and no other row matches.
//! Otherwise cues are weighed.
//!
//! The weights were set by hand on half of the labelled requests in `tests/it/task_types.rs` and
//! measured on the other half.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::{PATTERNS, TaskType};
use crate::english;

/// Maximum number of bytes of a request to examine.
const MAX_LOOKED_AT: usize = 2000;

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
pub(super) enum RequestHint {
    /// A word from the specification's table is near the start, and only one row matches.
    TableWord(TaskType),
    /// The cues have the most points for this type.
    Cues(TaskType),
    /// The words are not informative.
    Unclear,
}

/// Returns the type suggested by the words of a request.
pub(super) fn classify_request(request: &str) -> RequestHint {
    let patterns = &*PATTERNS_OF_WORDS;
    let text = &request[..request.floor_char_boundary(MAX_LOOKED_AT)];
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
        points[row as usize] += TABLE[usize::from(at >= MAX_BEGINNING)];
    }
    for at in &patterns.cues.matches(&own) {
        let (cued, worth, ..) = CUES[at];
        points[cued as usize] += worth;
    }
    points[TaskType::Debugging as usize] += 2 * i32::from(patterns.log.is_match(text));
    points[TaskType::Research as usize] += i32::from(patterns.question.is_match(text));
    // A request to open a PR is not a request for a review.
    if points[TaskType::Deployment as usize] >= 3 {
        points[TaskType::CodeReview as usize] -= 3;
    }
    let mut best = (TaskType::General, MIN_POINTS - 1);
    for &task_type in TaskType::ALL {
        if points[task_type as usize] > best.1 {
            best = (task_type, points[task_type as usize]);
        }
    }
    if best.0 == TaskType::General { RequestHint::Unclear } else { RequestHint::Cues(best.0) }
}

/// Returns the start of the user's own text, on one line.
fn own_words(text: &str, patterns: &RequestPatterns) -> String {
    let task = patterns.heading.find(text).map_or(text, |heading| &text[heading.end()..]);
    let own = patterns.foreign.replace_all(task, " ");
    let own = patterns.name.replace_all(&own, " file ");
    let words: Vec<&str> = own.split_whitespace().collect();
    let words = words.join(" ");
    let end = words.char_indices().nth(MAX_OWN_WORDS).map_or(words.len(), |(at, _)| at);
    words[..end].to_owned()
}
