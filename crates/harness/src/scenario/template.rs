//! Builds cases without a model: requests assembled from an excerpt together with the right answer.
//! Used if the harness has to know the right answer (vague requests, contradicting statements), and
//! if a generator returned nothing usable. Pure.

use super::ground::{ExcerptSources, SourcePassage, built_in, first_words};
use super::{AnswerForm, ScenarioKind, SeededDraw, rejection};
use selftest_checks::scenario::{CaseGrounds, GeneratedCase, TaskStatus};

/// Number of passages to try before the built-in text is used.
const MAX_TRIES: usize = 30;

/// Makes cases until one is new. After too many repeated ones, the last is returned; `None` if no
/// passage made a case.
pub(super) fn first_new(
    is_new: &impl Fn(&str) -> bool,
    mut make: impl FnMut() -> Option<GeneratedCase>,
) -> Option<GeneratedCase> {
    let mut repeated = None;
    for case in (0..MAX_TRIES).filter_map(|_| make()) {
        if is_new(&case.prompt) {
            return Some(case);
        }
        repeated = Some(case);
    }
    repeated
}

/// Builds a case of this kind. `is_new` returns true if a prompt may be used; after too many
/// repeated ones, the last is used anyway. The built-in text always yields a case, because each
/// part of it fits some form of each kind.
pub fn case(
    kind: ScenarioKind,
    sources: &ExcerptSources,
    draw: &mut SeededDraw,
    is_new: impl Fn(&str) -> bool,
) -> Option<GeneratedCase> {
    let found = first_new(&is_new, || {
        let passage = sources.passage(draw);
        fill(kind, &passage, draw)
    });
    let mut fallback = || {
        let passage = built_in(draw);
        fill(kind, &passage, draw)
    };
    found.or_else(|| (0..MAX_TRIES).find_map(|_| fallback()))
}

/// Builds a case about this passage. Returns `None` if it does not fit the kind, or contains unsafe
/// text.
fn fill(
    kind: ScenarioKind,
    passage: &SourcePassage,
    draw: &mut SeededDraw,
) -> Option<GeneratedCase> {
    let form = kind.form(passage, draw);
    let mut case = match (kind, form) {
        (ScenarioKind::Summary, _) => summary(passage, draw)?,
        (ScenarioKind::Evidence, Some(form)) => {
            let mut case = question(passage, form, draw)?;
            let source = source_wording(passage);
            case.prompt = format!("Use no other source than {source}. {}", case.prompt);
            case.grounds.expectations.push(format!("The answer keeps to what {source} says."));
            case
        }
        (ScenarioKind::Other(TaskStatus::Complete), Some(form)) => question(passage, form, draw)?,
        (ScenarioKind::Reorganization, _) => reorganization(passage, draw)?,
        (ScenarioKind::Contradiction, _) => contradiction(passage, draw)?.0,
        (ScenarioKind::Other(TaskStatus::Error), _) => absent_file(passage),
        (ScenarioKind::Ambiguous | ScenarioKind::Other(TaskStatus::AwaitingResponse), _) => {
            vague(passage, draw)?
        }
        (ScenarioKind::Evidence | ScenarioKind::Other(TaskStatus::Complete), None) => return None,
    };
    if kind.must_be_clear() || kind == ScenarioKind::Reorganization {
        attach_text(&mut case.prompt, passage);
    }
    with_excerpt(case, passage)
}

/// Adds the passage that a request is about. An excerpt may contain unsafe text, which must not get
/// into a request: then there is no case.
pub(super) fn with_excerpt(
    mut case: GeneratedCase,
    passage: &SourcePassage,
) -> Option<GeneratedCase> {
    case.grounds.excerpts.push(passage.excerpt.clone());
    rejection::violations(&case.prompt).is_empty().then_some(case)
}

/// Appends the text itself to a request about the built-in text, which is in no file.
pub fn attach_text(prompt: &mut String, passage: &SourcePassage) {
    if passage.is_built_in() {
        *prompt += &format!("\n\nText:\n{}", passage.excerpt.text);
    }
}

/// Returns the wording for the file in a request.
pub fn source_wording(passage: &SourcePassage) -> String {
    if passage.is_built_in() {
        return "the attached text".to_owned();
    }
    format!("`{}`", passage.excerpt.path)
}

/// Returns the wording for the passage in a request.
pub fn passage_wording(passage: &SourcePassage) -> String {
    let source = source_wording(passage);
    if let Some(heading) = &passage.heading {
        return format!("the section “{heading}” of {source}");
    }
    let words = first_words(&passage.excerpt.text);
    format!("the part of {source} that begins with “{words}”")
}

/// Converts the form of a case to a check, if counting can decide it.
fn with_form_check(form: AnswerForm, mut case: GeneratedCase) -> GeneratedCase {
    form.replace_with_check(&mut case.grounds);
    case
}

pub(super) fn new_case(
    prompt: String,
    hints: String,
    expectations: Vec<String>,
    facts: Vec<String>,
    reference: Option<String>,
) -> GeneratedCase {
    let grounds = CaseGrounds { expectations, facts, reference, ..CaseGrounds::default() };
    GeneratedCase { prompt, hints, grounds }
}

fn summary(passage: &SourcePassage, draw: &mut SeededDraw) -> Option<GeneratedCase> {
    let (form, place) = (AnswerForm::ThreeLines.phrase(), passage_wording(passage));
    let shapes = [
        format!("Summarise {place} {form}."),
        format!("What does {place} say? Put it {form}."),
        format!("Please give me {place} {form}, each one about something else."),
        format!("I have no time to read {place}. Tell me what it says {form}."),
    ];
    let prompt = draw.pick(&shapes)?.clone();
    let facts = draw.sample(&passage.quotes, 2);
    let fact = facts.first()?;
    let expectations = vec![
        AnswerForm::ThreeLines.expectation(),
        format!("The answer says what {place} is about."),
        format!("The answer agrees with this line of the text: “{fact}”"),
    ];
    let hints = format!("Three lines that say what is in {place}, such as: {fact}");
    let reference = passage.quotes.get(..3).map(|quotes| quotes.join("\n"));
    Some(with_form_check(
        AnswerForm::ThreeLines,
        new_case(prompt, hints, expectations, facts, reference),
    ))
}

/// Builds a question in this form that the passage answers.
fn question(
    passage: &SourcePassage,
    form: AnswerForm,
    draw: &mut SeededDraw,
) -> Option<GeneratedCase> {
    let (source, place) = (source_wording(passage), passage_wording(passage));
    match form {
        AnswerForm::Number => {
            let quotes: Vec<&String> =
                passage.quotes.iter().filter(|quote| number_in(quote).is_some()).collect();
            let fact = *draw.pick(&quotes)?;
            let number = number_in(fact)?;
            let gap = format!("{}…{}", &fact[..number.start], &fact[number.end..]);
            let number = &fact[number];
            let prompt = format!(
                "Which number of {source} belongs in the gap of “{gap}”? {}",
                form.instruction()
            );
            let expectations = vec![form.expectation(), format!("The answer is {number}.")];
            let hints = format!("The number is {number}: {fact}");
            let reference = Some(number.to_owned());
            Some(with_form_check(
                form,
                new_case(prompt, hints, expectations, vec![fact.clone()], reference),
            ))
        }
        AnswerForm::YesNo => {
            let (fact, change) = changed_quote(passage, draw)?;
            let prompt =
                format!("Does {source} say this: “{}”? {}", change.text, form.instruction());
            let expectations = vec![
                "The answer says no.".to_owned(),
                format!("The reason names {} as what the text says.", change.was),
            ];
            let hints = format!("No: it says {}, as in: {fact}", change.was);
            let reference = Some(format!("No. The text says: {fact}"));
            Some(with_form_check(
                form,
                new_case(prompt, hints, expectations, vec![fact], reference),
            ))
        }
        AnswerForm::Sentence => {
            let long: Vec<&String> =
                passage.quotes.iter().filter(|quote| quote.split(' ').count() >= 7).collect();
            let fact = *draw.pick(&long)?;
            let words: Vec<&str> = fact.split(' ').collect();
            let half = words[..words.len().div_ceil(2)].join(" ");
            let prompt = format!(
                "How does the sentence of {source} that begins with “{half}” go on? {}",
                form.instruction()
            );
            let expectations = vec![
                form.expectation(),
                format!("The answer has the same meaning as this: “{fact}”"),
            ];
            let hints = format!("The whole sentence is: {fact}");
            Some(with_form_check(
                form,
                new_case(prompt, hints, expectations, vec![fact.clone()], Some(fact.clone())),
            ))
        }
        AnswerForm::ThreeLines | AnswerForm::Bullets(_) | AnswerForm::Table => {
            let count = if let AnswerForm::Bullets(count) = form { count } else { 3 };
            let facts = passage.quotes.get(..count)?.to_vec();
            let rows = if form == AnswerForm::Table { ", with a row for each" } else { "" };
            let prompt = format!("Name {count} things that {place} says, {}{rows}.", form.phrase());
            let mut expectations = vec![
                form.expectation(),
                format!("The answer names {count} things that {place} says."),
            ];
            let fact = facts.first()?;
            expectations.push(format!("The answer agrees with this line of the text: “{fact}”"));
            let hints = format!("Such things are: {}", facts.join(" "));
            let reference = reference_list(form, &facts);
            Some(with_form_check(
                form,
                new_case(prompt, hints, expectations, facts, Some(reference)),
            ))
        }
    }
}

fn reference_list(form: AnswerForm, facts: &[String]) -> String {
    let rows = facts.iter().zip(1..);
    match form {
        AnswerForm::Bullets(_) => {
            rows.map(|(fact, _)| format!("- {fact}")).collect::<Vec<_>>().join("\n")
        }
        AnswerForm::Table => {
            // A bar within a statement would begin another column.
            let row =
                |(fact, at): (&String, usize)| format!("| {at} | {} |", fact.replace('|', "/"));
            let rows = rows.map(row).collect::<Vec<_>>().join("\n");
            format!("| Number | Statement |\n|---|---|\n{rows}")
        }
        _ => facts.join("\n"),
    }
}

fn reorganization(passage: &SourcePassage, draw: &mut SeededDraw) -> Option<GeneratedCase> {
    let place = passage_wording(passage);
    let shapes = [
        format!("How would you reorganise {place}? A proposal only; all files stay as they are."),
        format!(
            "{place} is hard to find one's way in. Propose a better structure, and change nothing."
        ),
        format!(
            "Propose how to split {place} so that readers find things faster. Change nothing yet."
        ),
    ];
    let prompt = capitalised(draw.pick(&shapes)?);
    let fact = draw.pick(&passage.quotes)?.clone();
    let expectations = vec![
        "The answer asks which structure is preferred.".to_owned(),
        "The answer leaves all files as they are.".to_owned(),
    ];
    let hints = format!(
        "It is open which structure is wanted, flat or nested, by task or by component: a good \
         answer asks. The part holds things such as: {fact}"
    );
    let reference =
        Some("Which structure do you prefer: a flat one, or one with nested sections?".to_owned());
    Some(new_case(prompt, hints, expectations, vec![fact], reference))
}

/// Builds a request to find the contradiction between statements, one of them a changed quote.
pub(super) fn contradiction(
    passage: &SourcePassage,
    draw: &mut SeededDraw,
) -> Option<(GeneratedCase, QuoteEdit)> {
    let (fact, change) = contradicted_quote(passage, draw)?;
    let others: Vec<String> =
        passage.quotes.iter().filter(|quote| **quote != fact).cloned().collect();
    // One statement that contradicts nothing, so that there is something to find.
    let mut statements = draw.sample(&others, 1);
    statements.extend([fact.clone(), change.text.clone()]);
    let count = statements.len();
    // Shuffles: a sample of all of them.
    let statements = draw.sample(&statements, count);
    let at = |wanted: &String| statements.iter().position(|one| one == wanted).map(|at| at + 1);
    let (one, two) = (at(&fact)?, at(&change.text)?);
    let (first, second) = (one.min(two), one.max(two));
    let list = statements.iter().zip(1..).map(|(text, at)| format!("\n{at}. {text}"));
    let list = list.collect::<Vec<_>>().concat();
    // The built-in text has no path that a request could name.
    let topic = if passage.is_built_in() { "a ferry".to_owned() } else { source_wording(passage) };
    let shapes = [
        format!(
            "Which of these statements about {topic} contradict each other? Quote both sides.{list}"
        ),
        format!(
            "Find the contradiction between these statements about {topic}, and quote both sides.{list}"
        ),
    ];
    let prompt = draw.pick(&shapes)?.clone();
    let expectations = vec![
        format!("The answer says that statements {first} and {second} contradict each other."),
        format!("The answer names {} and {} as the two sides.", change.was, change.becomes),
    ];
    let hints = format!(
        "Statements {first} and {second} contradict each other: {} against {}.",
        change.was, change.becomes
    );
    let reference = format!(
        "Statements {first} and {second} contradict each other: one says “{fact}”, the other “{}”.",
        change.text
    );
    Some((new_case(prompt, hints, expectations, vec![fact], Some(reference)), change))
}

/// Builds a request without the details that would make it clear.
pub(super) fn vague(passage: &SourcePassage, draw: &mut SeededDraw) -> Option<GeneratedCase> {
    const CLEAR: &[(&str, &str)] = &[
        ("Summarise ", " for me."),
        ("Can you explain ", " a bit better?"),
        ("Correct the number in ", "."),
        ("Make ", " shorter."),
        ("Is ", " still right?"),
        ("What should ", " say instead?"),
        ("Put ", " into a table."),
        ("Compare ", " with the other one."),
    ];
    const WITHOUT: &[&str] =
        &["that section", "that part", "the part from before", "the other page", "the one there"];
    let (before, after) = draw.pick(CLEAR)?;
    let left = draw.pick(WITHOUT)?;
    let place = passage_wording(passage);
    let expectations = vec![
        "The answer asks which file or section is meant.".to_owned(),
        "The answer waits for a reply before it does anything.".to_owned(),
    ];
    let hints = format!(
        "The request was “{before}{place}{after}” before the file and the section were taken out: \
         nobody can know what is meant, so a good answer asks."
    );
    let reference = Some("Which file or section do you mean?".to_owned());
    Some(new_case(format!("{before}{left}{after}"), hints, expectations, Vec::new(), reference))
}

/// Builds a request about a file that does not exist.
fn absent_file(passage: &SourcePassage) -> GeneratedCase {
    let path = if passage.is_built_in() { "notes.md" } else { &passage.excerpt.path };
    let (stem, end) = path.rsplit_once('.').unwrap_or((path, "md"));
    // A name that hardly any project has, so that the file is really missing.
    let absent = format!("{stem}-1987.{end}");
    let expectations = vec![format!("The answer says that `{absent}` is missing.")];
    let hints = format!("There is no `{absent}`, and a good answer says so.");
    let reference = Some(format!("I cannot do that: there is no file `{absent}`."));
    let prompt = format!("Summarise `{absent}` in exactly three lines.");
    new_case(prompt, hints, expectations, Vec::new(), reference)
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |c| c.to_uppercase().chain(characters).collect())
}

/// A quote in which one detail was changed.
pub(super) struct QuoteEdit {
    pub(super) text: String,
    pub(super) was: String,
    pub(super) becomes: String,
}

/// Returns a quote, and what it says with another number or name.
pub(super) fn changed_quote(
    passage: &SourcePassage,
    draw: &mut SeededDraw,
) -> Option<(String, QuoteEdit)> {
    let names = names(passage);
    let quotes = draw.sample(&passage.quotes, passage.quotes.len());
    let change = |quote: String| {
        let change = changed_number(&quote, draw).or_else(|| changed_name(&quote, &names))?;
        Some((quote, change))
    };
    quotes.into_iter().find_map(change)
}

/// Returns a quote, and the same statement with another value, which cannot be true beside it.
///
/// A number or a date that says how many, how long or when is such a value. One that only numbers
/// things (`section 3`) or is an example is not, and neither is a name: two programs may do the
/// same. Only where a sentence says what something *is*, another name contradicts it.
fn contradicted_quote(
    passage: &SourcePassage,
    draw: &mut SeededDraw,
) -> Option<(String, QuoteEdit)> {
    let names = names(passage);
    let quotes = draw.sample(&passage.quotes, passage.quotes.len());
    // Values first: a changed name contradicts a sentence far less often than a changed number.
    let values = quotes.iter().find_map(|quote| {
        let change = changed_date(quote, draw)
            .or_else(|| is_measured(quote).then(|| changed_number(quote, draw)).flatten())?;
        Some((quote.clone(), change))
    });
    values.or_else(|| {
        let identities = quotes.into_iter().filter(|quote| says_what_is(quote));
        identities.into_iter().find_map(|quote| {
            let change = changed_name(&quote, &names)?;
            Some((quote, change))
        })
    })
}

/// Words before a number that names one thing of many.
const NUMBERED: &[&str] = &[
    "section", "chapter", "step", "figure", "table", "issue", "page", "version", "code", "line",
    "example", "part", "point", "item", "rule", "row", "column", "level", "phase", "case", "as",
    "no", "number", "type", "class", "python", "rust", "node", "release",
];

/// Returns true if the first number of a statement measures something.
fn is_measured(quote: &str) -> bool {
    let Some(number) = number_in(quote) else { return false };
    let before = quote[..number.start].trim_end();
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let word = word.to_lowercase();
    // Plurals as well: `steps 3 and 4`.
    let is_label = NUMBERED.contains(&&*word) || NUMBERED.contains(&word.trim_end_matches('s'));
    !word.is_empty() && !is_label
}

/// Returns true if a statement says what its one subject is called or where it is.
fn says_what_is(quote: &str) -> bool {
    const SIGNS: &[&str] = &[
        " is called ",
        " is named ",
        " is written in ",
        " is written to ",
        " is stored in ",
        " is kept in ",
        " is read from ",
        " lives in ",
        " defaults to ",
        " default is ",
        " is the default",
        " listens on ",
        " is located in ",
    ];
    SIGNS.iter().any(|sign| quote.contains(sign)) && quote.matches('`').count() == 2
}

/// Changes the day of a date such as 2026-02-06.
fn changed_date(quote: &str, draw: &mut SeededDraw) -> Option<QuoteEdit> {
    let is_date = |word: &&str| {
        let bytes = word.as_bytes();
        word.len() == 10
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            })
    };
    let words = quote.split(|c: char| !c.is_ascii_digit() && c != '-');
    let was = words.into_iter().find(is_date)?;
    let year: usize = was[..4].parse().ok()?;
    // Another year is a valid date whatever the month and the day are.
    let becomes = format!("{:04}{}", year + 1 + draw.below(5), &was[4..]);
    let text = quote.replacen(was, &becomes, 1);
    Some(QuoteEdit { text, was: was.to_owned(), becomes })
}

fn changed_number(quote: &str, draw: &mut SeededDraw) -> Option<QuoteEdit> {
    let at = number_in(quote)?;
    let was = quote[at.clone()].to_owned();
    let number: u64 = was.parse().ok()?;
    // Always larger than the original number.
    let becomes = (number + number / 2 + 1 + draw.below(5) as u64).to_string();
    let text = format!("{}{becomes}{}", &quote[..at.start], &quote[at.end..]);
    Some(QuoteEdit { text, was, becomes })
}

fn changed_name(quote: &str, names: &[String]) -> Option<QuoteEdit> {
    let own = names.iter().filter(|name| quote.contains(name.as_str()));
    let other = |was: &String| {
        let fits = |name: &&String| !quote.contains(name.as_str()) && is_other_thing(was, name);
        names.iter().find(fits)
    };
    let (was, becomes) = own.into_iter().find_map(|was| Some((was, other(was)?)))?;
    let text = quote.replacen(was.as_str(), becomes, 1);
    Some(QuoteEdit { text, was: was.clone(), becomes: becomes.clone() })
}

/// Returns true if two names stand for different things of one kind, and are not two spellings or
/// forms of one name, such as `tool` and `tool-*`.
fn is_other_thing(one: &str, two: &str) -> bool {
    // An option stays an option, a path a path, a call a call and a setting a setting, so that the
    // changed sentence still reads well.
    let kind = |name: &str| {
        let name = name.trim_matches('`');
        (name.starts_with('-'), name.contains('/'), name.contains('('), name.contains('='))
    };
    let plain = |name: &str| {
        let letters = name.chars().filter(|c| c.is_alphanumeric());
        letters.collect::<String>().to_lowercase()
    };
    let (a, b) = (plain(one), plain(two));
    let shared = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let shorter = a.chars().count().min(b.chars().count());
    // Names that share half of the shorter one, such as `run` and `runs`, may be forms of one name.
    kind(one) == kind(two) && !a.contains(&b) && !b.contains(&a) && 2 * shared < shorter
}

/// Returns the code spans of the quotes.
fn names(passage: &SourcePassage) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for quote in &passage.quotes {
        // Every other piece stands between two backticks.
        for span in quote.split('`').skip(1).step_by(2) {
            let name = format!("`{span}`");
            let is_name = span.chars().count() >= 2 && !span.contains(' ');
            if is_name && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Finds a standalone whole number: not a version, a date, a decimal or part of a name.
pub(super) fn number_in(quote: &str) -> Option<std::ops::Range<usize>> {
    let mut from = 0;
    while let Some(at) = quote[from..].find(|c: char| c.is_ascii_digit()) {
        let start = from + at;
        let rest = &quote[start..];
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let end = start + length;
        let mut after = quote[end..].chars();
        let ends = match after.next() {
            None | Some(' ' | '%' | ')' | ':' | ';') => true,
            // With a digit behind it, this would be a decimal or a version.
            Some('.' | ',' | '?' | '!') => after.next().is_none_or(|next| next == ' '),
            Some(_) => false,
        };
        let begins = quote[..start].chars().next_back().is_none_or(|c| matches!(c, ' ' | '('));
        // Nine digits fit the arithmetic of `changed_number`.
        if begins && ends && length <= 9 {
            return Some(start..end);
        }
        from = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scenario::ground::{SourceFile, find_quote};
    use crate::scenario::rejection;
    use selftest_checks::check::{self, CheckObservation, CheckOutcome};

    const KINDS: [ScenarioKind; 8] = [
        ScenarioKind::Ambiguous,
        ScenarioKind::Summary,
        ScenarioKind::Evidence,
        ScenarioKind::Reorganization,
        ScenarioKind::Contradiction,
        ScenarioKind::Other(TaskStatus::Complete),
        ScenarioKind::Other(TaskStatus::AwaitingResponse),
        ScenarioKind::Other(TaskStatus::Error),
    ];

    fn page() -> ExcerptSources {
        let text = "# Server\n\n## Ports\n\nThe server listens on port 7700 of this machine only.\n\
                    It is changed by `serve --port` or by `PORT`. At most 20 clients are served.\n\
                    Each of them waits for `30s` at most.\n";
        ExcerptSources::new([SourceFile {
            path: "docs/usage.md".to_owned(),
            text: text.to_owned(),
        }])
    }

    fn check(kind: ScenarioKind, case: &GeneratedCase, named: Option<&str>) {
        let grounds = &case.grounds;
        assert!((1..=4).contains(&grounds.expectations.len()), "{case:?}");
        for expectation in &grounds.expectations {
            assert_eq!(rejection::truncation_reason(expectation), None, "{expectation}");
        }
        if let Some(reference) = &grounds.reference {
            let seen = CheckObservation { output: reference, ..CheckObservation::default() };
            let findings = check::decide_all(&grounds.checks, &seen).findings;
            let failed = findings.iter().find(|found| found.outcome == CheckOutcome::Failed);
            assert_eq!(failed, None, "{reference}");
        }
        for fact in &grounds.facts {
            assert_eq!(find_quote(&grounds.excerpts[0].text, fact).as_ref(), Some(fact));
        }
        let asks = matches!(
            kind,
            ScenarioKind::Ambiguous
                | ScenarioKind::Other(TaskStatus::AwaitingResponse | TaskStatus::Error)
        );
        assert_eq!(grounds.facts.is_empty(), asks, "{kind:?} {case:?}");
        if let Some(path) = named {
            let is_named = case.prompt.contains(path);
            let vague = matches!(
                kind,
                ScenarioKind::Ambiguous
                    | ScenarioKind::Other(TaskStatus::AwaitingResponse | TaskStatus::Error)
            );
            assert_eq!(is_named, !vague, "{kind:?} {}", case.prompt);
            let first = case.prompt.lines().next().unwrap();
            let shown = rejection::PromptMaterial { instructions: "", examples: &[] };
            assert_eq!(rejection::rejection_reason(first, &shown), None, "{first}");
        }
        assert!(!case.hints.is_empty());
        assert_eq!(super::super::rejection::violations(&case.prompt), Vec::<&str>::new());
    }

    #[test]
    fn every_kind_has_cases_about_a_file_and_about_the_built_in_text() {
        for kind in KINDS {
            for seed in 0..60 {
                let of = |sources: &ExcerptSources| {
                    case(kind, sources, &mut SeededDraw::new(seed), |_| true).unwrap()
                };
                check(kind, &of(&page()), Some("docs/usage.md"));
                let built_in = of(&ExcerptSources::default());
                check(kind, &built_in, None);
                assert_eq!(
                    built_in,
                    of(&ExcerptSources::default()),
                    "the same seed, the same case"
                );
            }
        }
    }

    #[test]
    fn every_form_has_a_question() {
        let passage = page().passage(&mut SeededDraw::new(0));
        for form in AnswerForm::OPEN {
            let case =
                (0..20).find_map(|seed| question(&passage, *form, &mut SeededDraw::new(seed)));
            let case = case.unwrap_or_else(|| panic!("no question for {form:?}"));
            assert!(form.is_requested_in(&case.prompt), "{form:?} {}", case.prompt);
            assert!(case.grounds.reference.is_some());
        }
        let case = question(&passage, AnswerForm::Number, &mut SeededDraw::new(0)).unwrap();
        assert!(
            !rejection::contains_quote(&case.prompt, &case.grounds.facts[0]),
            "{}",
            case.prompt
        );
    }

    #[test]
    fn a_contradiction_is_known_by_construction() {
        let case =
            case(ScenarioKind::Contradiction, &page(), &mut SeededDraw::new(4), |_| true).unwrap();
        let statements: Vec<&str> = case.prompt.lines().skip(1).collect();
        assert_eq!(statements.len(), 3, "{}", case.prompt);
        let fact = &case.grounds.facts[0];
        assert_eq!(statements.iter().filter(|one| one.ends_with(fact.as_str())).count(), 1);
        let named: Vec<&str> = case.grounds.expectations[0]
            .split(' ')
            .filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
            .collect();
        let of_fact = statements.iter().position(|one| one.ends_with(fact.as_str())).unwrap() + 1;
        assert!(named.len() == 2 && named.contains(&of_fact.to_string().as_str()), "{case:?}");
    }

    #[test]
    fn numbers_by_themselves_are_found() {
        for (text, expected) in [
            ("It costs 12 crowns.", Some("12")),
            ("The port is 7700.", Some("7700")),
            ("Version 1.2 of (3) files", Some("3")),
            ("v2, a-7, 1,800 and 0.5 and 2026-02-06", None),
            ("None at all.", None),
        ] {
            assert_eq!(number_in(text).map(|at| &text[at]), expected, "{text}");
        }
    }

    #[test]
    fn what_was_asked_before_is_asked_again_only_in_need() {
        let of = |is_new: &dyn Fn(&str) -> bool| {
            case(ScenarioKind::Summary, &page(), &mut SeededDraw::new(1), is_new).unwrap()
        };
        let first = of(&|_| true);
        let second = of(&|prompt| prompt != first.prompt);
        assert_ne!(first.prompt, second.prompt);
        let none = of(&|_| false);
        check(ScenarioKind::Summary, &none, Some("docs/usage.md"));
    }

    #[test]
    fn code_that_goes_on_over_lines_gives_a_safe_case() {
        let text = "`A 0.A\n.%aaAA0a A.`. %\n".to_owned();
        let sources = ExcerptSources::new([SourceFile { path: "a.md".to_owned(), text }]);
        for kind in KINDS {
            let case = case(kind, &sources, &mut SeededDraw::new(0), |_| true).unwrap();
            check(kind, &case, None);
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_safe_case(text in "([#`|-]{0,2} ?[A-Za-z `0-9.%…é]{0,50}\n){0,30}", seed in 0_u64..500) {
            let sources = ExcerptSources::new([SourceFile { path: "a.md".to_owned(), text }]);
            for kind in KINDS {
                let case = case(kind, &sources, &mut SeededDraw::new(seed), |_| true).unwrap();
                check(kind, &case, None);
                prop_assert!(!case.prompt.is_empty());
            }
        }
    }
}
