//! What can be seen of an answer without a model: whether numbers, names, directions and negations
//! agree with what is known, what is missing, and what is added. Each finding is one reading among
//! others, and none decides alone. Pure.

mod calendar;
mod edit;
mod number_words;
mod plain;
mod polarity;
mod quantity;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::probability::ReadingKind;
use super::prompt::JudgeEvidence;
use edit::{Change, Clause, Statement, clauses, coverage, share, stems};
pub use plain::{PlainComparison, compare_plainly};
use quantity::{Quantity, quantities};
use selftest_text::words::fold;

/// Minimum likeness of a statement that counts as a changed copy of another one.
const COPY: f64 = 0.7;

/// Minimum number of words of such a statement.
const SHORTEST_COPY: usize = 3;

/// Maximum number of words of a text that is compared as a whole.
const MAX_COMPARED: usize = 300;

/// Maximum number of statements that each part of an answer is compared with.
const MAX_STATEMENTS: usize = 400;

/// Maximum number of pairs of words that are compared in one answer. Texts that repeat themselves are
/// all alike, and would take minutes.
const MAX_PAIRS: usize = 20_000_000;

/// Words on each side of a number that say what it counts.
const WINDOW: usize = 5;

/// A finding about an answer: 0 for none, up to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleFinding {
    /// The value, 0 to 1.
    pub value: f64,
    /// What was found, such as a number with the one that it replaces.
    pub detail: Option<String>,
}

/// The findings about an answer by kind. All kinds are present that could be looked at.
pub type RuleFindings = BTreeMap<ReadingKind, RuleFinding>;

/// The texts that an answer is compared with.
struct Known<'a> {
    /// What a good answer says: reference, facts and expectations, one text each.
    truths: Vec<&'a str>,
    /// Everything else that it may say.
    others: Vec<&'a str>,
    request: &'a str,
}

impl<'a> Known<'a> {
    fn of(evidence: &'a JudgeEvidence) -> Self {
        let grounds = &evidence.case.grounds;
        let reference = grounds.reference.iter().map(String::as_str);
        let truths = reference
            .chain(grounds.facts.iter().map(String::as_str))
            .chain(grounds.expectations.iter().map(String::as_str))
            .collect();
        let exchanges = evidence.conversation.iter();
        let others = grounds
            .excerpts
            .iter()
            .map(|excerpt| excerpt.text.as_str())
            .chain([evidence.case.hints.as_str()])
            .chain(exchanges.flat_map(|exchange| [&*exchange.said, &*exchange.answered]))
            .chain(evidence.reply.as_deref())
            .collect();
        Self { truths, others, request: &evidence.case.prompt }
    }

    fn all(&self) -> impl Iterator<Item = &'a str> {
        self.truths.iter().chain(&self.others).copied().chain([self.request])
    }
}

/// Returns all that the system under test said and did, as one text: its answer, the files that it
/// wrote, and its calls.
fn everything_said(evidence: &JudgeEvidence) -> String {
    let mut said = evidence.output.clone();
    for file in &evidence.files {
        said += &format!("\n{}", file.text);
    }
    for call in &evidence.tool_calls {
        said += &format!("\n{} {}", call.name, call.arguments);
    }
    said
}

/// Returns the findings about the answer in the evidence.
pub fn findings(evidence: &JudgeEvidence) -> RuleFindings {
    let known = Known::of(evidence);
    let said = everything_said(evidence);
    let mut found = RuleFindings::new();
    find_numbers(&known, &said, &mut found);
    find_names(&known, &said, &mut found);
    find_edits(evidence, &known, &said, &mut found);
    find_gaps(evidence, &known, &said, &mut found);
    found
}

fn put(found: &mut RuleFindings, kind: ReadingKind, value: f64, detail: Option<String>) {
    let detail = detail.map(|detail| selftest_text::one_line(&detail, 120));
    found.insert(kind, RuleFinding { value, detail });
}

fn in_all(one: &Quantity, all: &[Quantity]) -> bool {
    all.iter().any(|other| one.equals(other))
}

/// A number of a text, with the stems of the words around it.
struct PlacedNumber {
    quantity: Quantity,
    around: HashSet<String>,
}

fn placed_numbers(texts: &[&str]) -> Vec<PlacedNumber> {
    let each = texts.iter().flat_map(|text| {
        quantities(text).into_iter().map(|quantity| {
            let around = around(text, &quantity);
            PlacedNumber { quantity, around }
        })
    });
    each.collect()
}

fn find_numbers(known: &Known<'_>, said: &str, found: &mut RuleFindings) {
    let placed = placed_numbers(&[said]);
    let answer: Vec<Quantity> = placed.iter().map(|one| one.quantity.clone()).collect();
    let requested = quantities(known.request);
    let (demanded, others) = (placed_numbers(&known.truths), placed_numbers(&known.others));
    let written = |one: &Quantity, text: &str| text.get(one.range.clone()).map(ToOwned::to_owned);
    // The first truth is the reference, if there is one. Facts and expectations repeat its numbers.
    // What the request says itself need not be repeated.
    let first = known.truths.first().copied().unwrap_or_default();
    let mut wanted = without_weekdays_of_dates(&quantities(first));
    wanted.retain(|one| !in_all(one, &requested));
    let missing: Vec<&Quantity> = wanted.iter().filter(|one| !in_all(one, &answer)).collect();
    let detail = missing.first().and_then(|one| written(one, first));
    put(found, ReadingKind::NumbersMissing, share(missing.len(), wanted.len()), detail);
    let is_given = |one: &Quantity| {
        let mut all = demanded.iter().chain(&others);
        in_all(one, &requested) || all.any(|other| one.equals(&other.quantity))
    };
    let unknown = answer.iter().find(|one| !is_given(one) && !one.may_be_counted());
    let detail = unknown.and_then(|one| written(one, said));
    put(found, ReadingKind::NumberUnknown, f64::from(u8::from(unknown.is_some())), detail);
    let is_missing =
        |one: &&PlacedNumber| !in_all(&one.quantity, &answer) && !in_all(&one.quantity, &requested);
    let missing: Vec<&PlacedNumber> = demanded.iter().filter(is_missing).collect();
    let (value, one) = replaced(&placed, &demanded, &missing);
    let detail = one.and_then(|one| written(&one.quantity, said));
    put(found, ReadingKind::NumberReplaced, value, detail);
    let places: Vec<&PlacedNumber> = demanded.iter().chain(&others).collect();
    put(found, ReadingKind::NumberMisplaced, misplaced(&places, &placed), None);
}

/// Returns how surely a number of the same kind stands in place of a demanded one that is missing, 0
/// to 1, and that number. Beside a demanded one, another may be additional information.
fn replaced<'a>(
    answer: &'a [PlacedNumber],
    demanded: &[PlacedNumber],
    missing: &[&PlacedNumber],
) -> (f64, Option<&'a PlacedNumber>) {
    let mut surest = (0.0, None);
    for one in answer {
        if demanded.iter().any(|other| one.quantity.equals(&other.quantity)) {
            continue;
        }
        for other in missing.iter().filter(|other| one.quantity.is_comparable(&other.quantity)) {
            // A number without a unit may count something else: `two things`.
            let is_sure = one.quantity.has_unit() || !one.around.is_disjoint(&other.around);
            let value = if is_sure { 1.0 } else { 0.5 };
            if value > surest.0 {
                surest = (value, Some(one));
            }
        }
    }
    surest
}

/// Returns the quantities without the weekdays that a date beside them implies: `Thursday, 14 May`.
fn without_weekdays_of_dates(quantities: &[Quantity]) -> Vec<Quantity> {
    let is_implied = |(at, one): (usize, &Quantity)| {
        let after = &quantities[at + 1..];
        let is_near = after.first().is_some_and(|next| next.range.start <= one.range.end + 4);
        one.is_weekday() && is_near && after.iter().take(2).any(Quantity::is_month)
    };
    let all = quantities.iter().enumerate();
    all.filter(|one| !is_implied(*one)).map(|(_, one)| one.clone()).collect()
}

/// Returns the stems around a position.
fn around(text: &str, quantity: &Quantity) -> HashSet<String> {
    let boundary = |c: char| matches!(c, '\n' | ';' | '。' | '|');
    let before = &text[..text.floor_char_boundary(quantity.range.start)];
    let start = before.rfind(boundary).map_or(0, |at| at + 1);
    let after = &text[text.floor_char_boundary(quantity.range.end)..];
    let end = after.find(boundary).unwrap_or(after.len());
    let left = stems(&fold(&before[text.floor_char_boundary(start)..]));
    let right = stems(&fold(&after[..end]));
    let left = left.iter().rev().take(WINDOW);
    left.chain(right.iter().take(WINDOW))
        .filter(|stem| !stem.starts_with(|c: char| c.is_ascii_digit()))
        .cloned()
        .collect()
}

/// Returns how much better another number than its own fits the words around a number, 0 to 1.
fn misplaced(places: &[&PlacedNumber], answer: &[PlacedNumber]) -> f64 {
    let mut worst = 0.0_f64;
    for PlacedNumber { quantity: one, around: here } in answer {
        // One word fits too many places to say anything.
        if here.len() < 2 {
            continue;
        }
        let fit =
            |place: &PlacedNumber| share(here.intersection(&place.around).count(), here.len());
        let own = places.iter().filter(|other| other.quantity.equals(one));
        // A number that no known text has is in no known place either.
        let Some(own) = own.map(|place| fit(place)).reduce(f64::max) else { continue };
        let rival = places
            .iter()
            .filter(|other| !other.quantity.equals(one) && other.quantity.is_comparable(one))
            .map(|place| fit(place))
            .fold(0.0, f64::max);
        // One exchanged number makes an answer wrong, however many others are in place.
        worst = worst.max(rival - own);
    }
    worst.clamp(0.0, 1.0)
}

fn find_names(known: &Known<'_>, said: &str, found: &mut RuleFindings) {
    let folded = fold(said);
    let request = fold(known.request);
    // Joined once: every name is searched in all of it.
    let all_known: String = known.all().map(|text| fold(text) + "\n").collect();
    let truth: String = known.truths.iter().map(|text| fold(text) + "\n").collect();
    let mut demanded: Vec<String> = known.truths.iter().flat_map(|text| code_names(text)).collect();
    demanded.retain(|one| !holds(&request, one));
    demanded.sort();
    demanded.dedup();
    let missing: Vec<&String> = demanded.iter().filter(|one| !holds(&folded, one)).collect();
    let detail = missing.first().map(|name| (*name).clone());
    put(found, ReadingKind::NamesMissing, share(missing.len(), demanded.len()), detail);
    let mut own = code_names(said);
    own.extend(proper_names(said));
    let unknown: Vec<&String> =
        own.iter().filter(|one| !all_known.contains(one.as_str())).collect();
    let detail = unknown.first().map(|name| (*name).clone());
    put(found, ReadingKind::NamesUnknown, share(unknown.len(), own.len()), detail);
    let elsewhere = own
        .iter()
        .find(|one| !holds(&truth, one) && holds(&all_known, one) && !holds(&request, one));
    let value = f64::from(u8::from(elsewhere.is_some()));
    put(found, ReadingKind::NameElsewhere, value, elsewhere.cloned());
}

/// Matches how an expectation begins to report what the answer says.
static REPORTING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^(?:the (?:answer|reply|response|file|summary|report|assistant|agent) \w+(?: (?:out|clear))? that |die antwort \w+,? dass |la r[ée]ponse \w+ qu(?:e |['’])|la respuesta \w+ que |odpowied[źz] \w+,? że )",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

/// Returns the statements that parts of an answer may be copies of.
fn statements(evidence: &JudgeEvidence, known: &Known<'_>) -> Vec<Statement> {
    let mut all = Vec::new();
    let mut add = |text: &str| {
        let statement = Statement::new(text);
        let fits = (SHORTEST_COPY..=MAX_COMPARED).contains(&statement.len());
        if fits && all.len() < MAX_STATEMENTS {
            all.push(statement);
        }
    };
    // A whole text too: a list or an object is one statement.
    if let Some(reference) = &evidence.case.grounds.reference {
        add(reference);
    }
    for text in known.truths.iter().chain(&known.others) {
        let text = REPORTING.replace(text, "");
        for clause in clauses(&text) {
            add(&clause.text);
        }
        for sentence in sentences(&text) {
            add(sentence);
        }
    }
    all
}

fn find_edits(evidence: &JudgeEvidence, known: &Known<'_>, said: &str, found: &mut RuleFindings) {
    let statements = statements(evidence, known);
    let mut parts: Vec<String> = clauses(said).into_iter().map(|clause| clause.text).collect();
    parts.extend(sentences(said).map(ToOwned::to_owned));
    parts.push(evidence.output.clone());
    let parts: Vec<Statement> = parts
        .iter()
        .map(|part| Statement::new(part))
        .filter(|part| (SHORTEST_COPY..=MAX_COMPARED).contains(&part.len()))
        .take(MAX_STATEMENTS)
        .collect();
    let mut values = BTreeMap::<ReadingKind, (f64, Option<String>)>::new();
    let mut pairs = 0_usize;
    for part in &parts {
        let best = statements
            .iter()
            // A cheap test by lengths and words first: the comparison takes the product of both
            // lengths.
            .filter(|known| known.may_be_like(part, COPY))
            .take_while(|known| {
                pairs = pairs.saturating_add(known.len() * part.len());
                pairs <= MAX_PAIRS
            })
            .map(|known| edit::compare(known, part))
            .filter(|(likeness, _)| *likeness >= COPY)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((likeness, edits)) = best else { continue };
        let change = edit::change(&edits);
        let detail = edits.first().map(edit::Edit::describe);
        for (kind, is) in kinds(change) {
            let entry = values.entry(kind).or_default();
            // The more a part is like the known statement, the surer is the difference between
            // them.
            if is && likeness > entry.0 {
                *entry = (likeness, detail.clone());
            }
        }
    }
    // Every kind is reported, with 0 if it was looked for and not found.
    for (kind, _) in kinds(Change::default()) {
        let (value, detail) = values.remove(&kind).unwrap_or_default();
        put(found, kind, value, detail);
    }
    put(found, ReadingKind::Agreement, agreement(evidence, &statements), None);
}

const fn kinds(change: Change) -> [(ReadingKind, bool); 8] {
    [
        (ReadingKind::NumberChanged, change.number),
        (ReadingKind::NegationChanged, change.negation),
        (ReadingKind::DirectionChanged, change.direction),
        (ReadingKind::NameChanged, change.name),
        (ReadingKind::PlacesChanged, change.swap),
        (ReadingKind::WordChanged, change.word),
        (ReadingKind::PartRemoved, change.removed),
        (ReadingKind::PartAdded, change.added),
    ]
}

/// Returns how far the answer is the reference in nearly the same words, 0 to 1: the least likeness of
/// a sentence of either to one of the other that says the same. It is 0 if a sentence of the reference
/// is missing, or if the answer holds one that nothing known says.
fn agreement(evidence: &JudgeEvidence, statements: &[Statement]) -> f64 {
    let Some(reference) = &evidence.case.grounds.reference else { return 0.0 };
    let (output, limit) = (&evidence.output, 8 * reference.len().max(MAX_COMPARED));
    if output.len() > limit || Statement::new(output).len() > MAX_COMPARED {
        // Much more than the reference is not the reference.
        return 0.0;
    }
    // A list and a paragraph with the same sentences are not interchangeable if a form was asked
    // for.
    if form_of(reference) != form_of(&evidence.output) {
        return 0.0;
    }
    let all = |text: &str| -> Vec<Statement> { sentences(text).map(Statement::new).collect() };
    let (reference, said) = (all(reference), all(&evidence.output));
    let likeness = |one: &Statement, others: &[Statement]| {
        let each = others.iter().filter(|other| other.may_be_like(one, COPY)).map(|other| {
            let (likeness, edits) = edit::compare(other, one);
            let says_the_same = likeness >= COPY && edit::keeps_content(&edits);
            if says_the_same { likeness } else { 0.0 }
        });
        each.fold(0.0, f64::max)
    };
    let covered = reference.iter().map(|one| likeness(one, &said));
    let known = said.iter().map(|one| likeness(one, &reference).max(likeness(one, statements)));
    let least = covered.chain(known).fold(1.0, f64::min);
    // The texts as wholes count as well: sentences may be split or joined.
    let whole = |text: &str| Statement::new(text);
    let (reference, said) = (
        whole(evidence.case.grounds.reference.as_deref().unwrap_or_default()),
        whole(&evidence.output),
    );
    least.max(likeness(&said, &[reference]))
}

/// Returns the marks of a text's form: fences, table rows, list items, and how it begins.
fn form_of(text: &str) -> (bool, usize, usize, bool) {
    let lines = || text.lines().map(str::trim_start);
    let is_item = |line: &&str| {
        line.starts_with(['-', '*', '•', '+'])
            || line.split_once(['.', ')']).is_some_and(|(number, _)| {
                !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
            })
    };
    (
        text.contains("```"),
        lines().filter(|line| line.starts_with('|')).count(),
        lines().filter(is_item).count(),
        text.trim_start().starts_with(['{', '[']),
    )
}

/// Splits a text into lines and sentences. Unlike a clause, a date such as `3. May` is not torn.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    static END: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"[^\d\n][.!?](?:\s+)|[\n。！？]+")
            .expect("the pattern is a constant, and a test compiles it")
    });
    let mut start = 0;
    let ends: Vec<usize> = END.find_iter(text).map(|end| end.end()).chain([text.len()]).collect();
    ends.into_iter().filter_map(move |end| {
        let sentence = text[start..end].trim();
        start = end;
        (!sentence.is_empty()).then_some(sentence)
    })
}

fn find_gaps(evidence: &JudgeEvidence, known: &Known<'_>, said: &str, found: &mut RuleFindings) {
    let said_stems = stems(&fold(said));
    let said_set: HashSet<&str> = said_stems.iter().map(String::as_str).collect();
    let all_stems: Vec<String> = known.all().flat_map(|text| stems(&fold(text))).collect();
    let all_set: HashSet<&str> = all_stems.iter().map(String::as_str).collect();
    let request_stems = stems(&fold(known.request));
    let request_set: HashSet<&str> = request_stems.iter().map(String::as_str).collect();
    let supports: Vec<f64> = clauses(said)
        .iter()
        // Shorter clauses, such as `Sure:`, are supported by chance or not at all.
        .filter(|clause| clause.stems.len() >= 3)
        .map(|clause| coverage(&clause.stems, &all_set))
        .collect();
    let value = 1.0 - selftest_stats::mean(&supports).unwrap_or(1.0);
    put(found, ReadingKind::Unsupported, value, None);
    let needed = |texts: Vec<&str>| -> f64 {
        let all: Vec<f64> = texts
            .into_iter()
            .map(|text| stems(&fold(&REPORTING.replace(text, ""))))
            .map(|mut stems| {
                // Repeating the request covers nothing.
                stems.retain(|stem| !request_set.contains(stem.as_str()));
                stems
            })
            .filter(|stems| !stems.is_empty())
            .map(|stems| coverage(&stems, &said_set))
            .collect();
        1.0 - selftest_stats::mean(&all).unwrap_or(1.0)
    };
    let grounds = &evidence.case.grounds;
    let expectations = grounds.expectations.iter().map(String::as_str).collect();
    put(found, ReadingKind::ExpectationsUncovered, needed(expectations), None);
    if let Some(reference) = &grounds.reference {
        let clauses: Vec<Clause> = clauses(reference);
        let texts = clauses.iter().map(|clause| clause.text.as_str()).collect();
        put(found, ReadingKind::ReferenceUncovered, needed(texts), None);
    }
}

/// Returns the overlap of an answer's words with the reference, 0 to 1 (F1): what a judge has to
/// beat. Without a reference, that with the expectations.
pub fn word_overlap(evidence: &JudgeEvidence) -> f64 {
    let grounds = &evidence.case.grounds;
    let truth = grounds.reference.clone().unwrap_or_else(|| grounds.expectations.join("\n"));
    let (truth, said) = (stems(&fold(&truth)), stems(&fold(&everything_said(evidence))));
    let truth: HashSet<&str> = truth.iter().map(String::as_str).collect();
    let said: HashSet<&str> = said.iter().map(String::as_str).collect();
    2.0 * share(truth.intersection(&said).count(), truth.len() + said.len())
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

/// Matches code in backticks or quotes, options, identifiers, paths and file names.
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"`([^`\n]{1,80})`|"([\w.\-/]{2,60})"|(?:^|[\s(])(--?[a-zA-Z][\w-]*)|\b([A-Za-z]\w*(?:_\w+|::\w+|/[\w.]+)+)|\b([a-z]+[A-Z]\w+)|\b([A-Z][a-z]+(?:[A-Z][a-z]*)+)|\b([\w-]+\.(?:json|ya?ml|toml|py|rs|js|ts|md|txt|csv|sql|sh|log|xml|html|ini|cfg|conf|lock))\b|\b([A-Z][A-Z0-9_]{2,})\b"#,
    )
});

/// Matches a capitalised word inside of a sentence.
static PROPER: LazyLock<Regex> =
    LazyLock::new(|| regex(r"[\p{L}\d,;)]\s+(\p{Lu}[\p{Ll}]{2,}(?:\s\p{Lu}\p{Ll}{2,})*)"));

/// Returns the names of code in a text, in lower case, without the marks around them.
fn code_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for found in CODE.captures_iter(text) {
        let Some(name) = found.iter().skip(1).flatten().next() else { continue };
        // A call or a command in backticks is several names.
        for part in
            name.as_str().split(|c: char| c.is_whitespace() || "(),:={}[]<>;\"'".contains(c))
        {
            let part = part.trim_matches(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
            let has_letter = part.chars().any(char::is_alphabetic);
            if part.chars().count() > 1 && has_letter {
                names.insert(part.to_lowercase());
            }
        }
    }
    names
}

/// Returns the proper names of a text in a language that does not capitalise nouns.
fn proper_names(text: &str) -> BTreeSet<String> {
    let found = PROPER.captures_iter(text).filter_map(|found| found.get(1));
    found.map(|name| name.as_str().to_lowercase()).collect()
}

/// Returns true if a text in lower case holds a name as a whole.
fn holds(folded: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    folded.match_indices(name).any(|(at, _)| {
        let before = folded[..at].chars().next_back();
        let after = folded[at + name.len()..].chars().next();
        !is_part(before) && !is_part(after)
    })
}
