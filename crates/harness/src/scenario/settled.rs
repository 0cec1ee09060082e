//! Cases that checks alone can settle: the harness knows what is right, asks for it in a form that
//! can be checked, and writes checks that demand all of it. Pure.
//!
//! They serve a run without a generator model. A judge is asked too; its scores stand beside the
//! verdict of the checks.

use super::ground::{ExcerptSources, SourcePassage};
use super::template::{
    self, QuoteEdit, attach_text, changed_quote, contradiction, new_case, number_in,
    passage_wording, source_wording, vague, with_excerpt,
};
use super::{AnswerForm, ScenarioKind, SeededDraw};
use selftest_checks::check::{Check, CheckKind, CheckPattern, CheckText, CountBounds};
use selftest_checks::scenario::{GeneratedCase, JudgeRole};

/// Number of sentences in a summary.
const SUMMARY_LINES: usize = 3;

/// Builds a case of this kind. A kind whose right answer no check can know is built by
/// [`template::case`]. `is_new` returns true if a prompt may be used; after too many repeated ones,
/// the last is used anyway.
pub fn case(
    kind: ScenarioKind,
    sources: &ExcerptSources,
    draw: &mut SeededDraw,
    is_new: impl Fn(&str) -> bool,
) -> Option<GeneratedCase> {
    let can_be_settled = match kind {
        ScenarioKind::Ambiguous
        | ScenarioKind::Summary
        | ScenarioKind::Evidence
        | ScenarioKind::Contradiction => true,
        ScenarioKind::Reorganization | ScenarioKind::Other(_) => false,
    };
    if !can_be_settled {
        return template::case(kind, sources, draw, is_new);
    }
    // A project whose files have no sentence of the needed form still gets a case that checks can
    // settle.
    let built_in = ExcerptSources::of_built_in_text();
    let found = [sources, &built_in]
        .into_iter()
        .find_map(|sources| template::first_new(&is_new, || settled(kind, sources, draw)));
    found.or_else(|| template::case(kind, sources, draw, is_new))
}

fn settled(
    kind: ScenarioKind,
    sources: &ExcerptSources,
    draw: &mut SeededDraw,
) -> Option<GeneratedCase> {
    let sentences = if kind == ScenarioKind::Summary { SUMMARY_LINES } else { 1 };
    let passage = sources.section(sentences, draw)?;
    let mut case = match kind {
        ScenarioKind::Ambiguous => asked_back(vague(&passage, draw)?),
        ScenarioKind::Summary => quoted_summary(&passage, draw)?,
        ScenarioKind::Evidence => evidence(&passage, sources, draw)?,
        ScenarioKind::Contradiction => both_sides(contradiction(&passage, draw)?)?,
        ScenarioKind::Reorganization | ScenarioKind::Other(_) => return None,
    };
    if kind.must_be_clear() {
        attach_text(&mut case.prompt, &passage);
    }
    // The checks settle the case, so that scores only stand beside them.
    case.grounds.judge = JudgeRole::Advises;
    with_excerpt(case, &passage)
}

fn named(name: impl Into<String>, kind: CheckKind) -> Check {
    Check { name: Some(name.into()), ..Check::new(kind) }
}

fn contains(name: impl Into<String>, text: &str) -> Option<Check> {
    Some(named(name, CheckKind::Contains(CheckText::new(text).ok()?)))
}

fn matches(name: impl Into<String>, pattern: &str) -> Option<Check> {
    Some(named(name, CheckKind::Regex(CheckPattern::new(pattern).ok()?)))
}

/// Adds what makes an answer to a vague request right: a question for what is meant.
fn asked_back(mut case: GeneratedCase) -> GeneratedCase {
    let asks = named("The answer asks back.", CheckKind::Questions(CountBounds::at_least(1)));
    let about = matches(
        "The question is what is meant.",
        r"(?is)\b(?:which|what|where|mean|clarify|specify)\b[^.!]*\?",
    );
    case.grounds.checks = [Some(asks), about].into_iter().flatten().collect();
    case
}

/// Asks for a summary in sentences of the text, so that each line can be looked up.
fn quoted_summary(passage: &SourcePassage, draw: &mut SeededDraw) -> Option<GeneratedCase> {
    let place = passage_wording(passage);
    let shapes = [
        format!(
            "Summarise {place} in exactly three lines, each of them a sentence quoted from it."
        ),
        format!("Which three sentences sum up {place}? Quote them in exactly three lines."),
        format!("Put {place} in exactly three lines: quote a sentence of it in each line."),
    ];
    let prompt = draw.pick(&shapes)?.clone();
    let quotes: Vec<String> = passage.quotes.iter().map(|quote| regex::escape(quote)).collect();
    // A bullet before a sentence, quotation marks around it and its place behind it are free.
    let line = format!(
        r#"[ \t]*(?:[-*•]|\d+[.)])?[ \t]*["“]?(?:{})["”]?[ \t]*(?:\([^()\n]{{1,200}}\))?"#,
        quotes.join("|")
    );
    let quoted = matches(
        format!("Each line is a sentence of {place}."),
        &format!(r"\A\s*(?:{line}[ \t]*(?:\n\s*|\z)){{{SUMMARY_LINES}}}\z"),
    )?;
    let facts = passage.quotes.get(..SUMMARY_LINES)?.to_vec();
    let expectations = vec![format!("The answer says what {place} is about.")];
    let hints = format!("Three sentences of {place}, such as: {}", facts[0]);
    let reference = Some(facts.join("\n"));
    let mut case = new_case(prompt, hints, expectations, facts, reference);
    case.grounds.checks = AnswerForm::ThreeLines.check().into_iter().chain([quoted]).collect();
    Some(case)
}

/// Asks for something that one place of the file says.
fn evidence(
    passage: &SourcePassage,
    sources: &ExcerptSources,
    draw: &mut SeededDraw,
) -> Option<GeneratedCase> {
    let source = source_wording(passage);
    // All sentences of the file count, and not only the excerpt's: an agent reads the whole file.
    let others: Vec<&str> = if passage.is_built_in() {
        passage.quotes.iter().map(String::as_str).collect()
    } else {
        sources.quotes_of(&passage.excerpt.path).collect()
    };
    // Either form may come first, so that a run has cases of both.
    let mut case = if draw.below(2) == 0 {
        number(passage, &source, &others, draw).or_else(|| yes_no(passage, &source, &others, draw))
    } else {
        yes_no(passage, &source, &others, draw).or_else(|| number(passage, &source, &others, draw))
    }?;
    case.prompt = format!("Use no other source than {source}. {}", case.prompt);
    Some(case)
}

fn number(
    passage: &SourcePassage,
    source: &str,
    others: &[&str],
    draw: &mut SeededDraw,
) -> Option<GeneratedCase> {
    let form = AnswerForm::Number;
    let numbered: Vec<&String> =
        passage.quotes.iter().filter(|quote| number_in(quote).is_some()).collect();
    let fact = *draw.pick(&numbered)?;
    let at = number_in(fact)?;
    let (before, number, after) = (&fact[..at.start], &fact[at.clone()], &fact[at.end..]);
    // Another sentence with another number in the same gap would be as right.
    let fits = |quote: &&&str| quote.starts_with(before) && quote.ends_with(after);
    if others.iter().filter(fits).any(|quote| *quote != fact) {
        return None;
    }
    let prompt = format!(
        "Which number of {source} belongs in the gap of “{before}…{after}”? {}",
        form.instruction()
    );
    // `1,000`, `1.000` and `1'000` are the same number.
    let digits: Vec<String> = number.chars().map(String::from).collect();
    let value = matches(
        format!("The answer is {number}."),
        &format!(r"\A\D*{}\D*\z", digits.join("[,.' ]?")),
    )?;
    let hints = format!("The number is {number}: {fact}");
    let expectations = vec![format!("The answer is {number}.")];
    let reference = Some(number.to_owned());
    let mut case = new_case(prompt, hints, expectations, vec![fact.clone()], reference);
    case.grounds.checks = form.check().into_iter().chain([value]).collect();
    Some(case)
}

fn yes_no(
    passage: &SourcePassage,
    source: &str,
    others: &[&str],
    draw: &mut SeededDraw,
) -> Option<GeneratedCase> {
    let (fact, change) = changed_quote(passage, draw)?;
    // The file says the changed sentence as well, so that `yes` would be right.
    if others.contains(&change.text.as_str()) {
        return None;
    }
    let form = AnswerForm::YesNo;
    let prompt = format!("Does {source} say this: “{}”? {}", change.text, form.instruction());
    let no = matches("The answer says no.", r"(?i)\A\W*no\b")?;
    // An answer may leave out the backticks around a name.
    let was = change.was.trim_matches('`');
    let says = contains(format!("The reason names {was}, which the text says."), was)?;
    let hints = format!("No: it says {}, as in: {fact}", change.was);
    let expectations = vec![
        "The answer says no.".to_owned(),
        format!("The reason names {} as what the text says.", change.was),
    ];
    let reference = Some(format!("No. The text says: {fact}"));
    let mut case = new_case(prompt, hints, expectations, vec![fact], reference);
    case.grounds.checks = vec![no, says];
    Some(case)
}

/// Adds what makes an answer about a contradiction right: it names the two values.
fn both_sides((mut case, change): (GeneratedCase, QuoteEdit)) -> Option<GeneratedCase> {
    let [was, becomes] = [&change.was, &change.becomes].map(|side| side.trim_matches('`'));
    let says =
        |side: &str| CheckText::new(side).ok().map(|side| Check::new(CheckKind::Contains(side)));
    let name = format!("The answer names both sides of the contradiction, {was} and {becomes}.");
    case.grounds.checks = vec![named(name, CheckKind::All(vec![says(was)?, says(becomes)?]))];
    Some(case)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ground::SourceFile;
    use selftest_checks::check::{CheckObservation, CheckOutcome, decide_all};

    const PAGE: &str = "# Ferry\n\n## Ports\n\nThe server listens on port 7700 of this machine.\n\
        At most 20 clients are served at once.\nEach of them waits for 30 seconds at most.\n\n\
        ## Names\n\nThe program is called `ferry` by all who use it.\n";

    fn page() -> ExcerptSources {
        ExcerptSources::new([SourceFile {
            path: "docs/usage.md".to_owned(),
            text: PAGE.to_owned(),
        }])
    }

    fn holds(case: &GeneratedCase, output: &str) -> bool {
        let seen = CheckObservation { output, ..CheckObservation::default() };
        let findings = decide_all(&case.grounds.checks, &seen).findings;
        !findings.is_empty() && findings.iter().all(|found| found.outcome == CheckOutcome::Held)
    }

    #[test]
    fn the_reference_holds_every_check_and_another_answer_does_not() {
        for kind in [
            ScenarioKind::Ambiguous,
            ScenarioKind::Summary,
            ScenarioKind::Evidence,
            ScenarioKind::Contradiction,
        ] {
            for seed in 0..60 {
                for sources in [page(), ExcerptSources::default()] {
                    let case = case(kind, &sources, &mut SeededDraw::new(seed), |_| true).unwrap();
                    assert_eq!(case.grounds.judge, JudgeRole::Advises);
                    let reference = case.grounds.reference.clone().unwrap();
                    let right = match kind {
                        ScenarioKind::Contradiction => case.hints.clone(),
                        _ => reference,
                    };
                    assert!(holds(&case, &right), "{kind:?} {case:#?}");
                    assert!(!holds(&case, "I have done it."), "{kind:?} {case:#?}");
                }
            }
        }
    }

    #[test]
    fn a_summary_may_cite_and_must_quote() {
        let case = case(ScenarioKind::Summary, &page(), &mut SeededDraw::new(1), |_| true).unwrap();
        assert!(holds(
            &case,
            "- “The server listens on port 7700 of this machine.” (docs/usage.md:5)\n\
             - At most 20 clients are served at once.\n\n3. Each of them waits for 30 seconds at most.\n"
        ));
        assert!(!holds(&case, "It listens.\nIt serves 20 clients.\nThey wait."));
    }

    #[test]
    fn a_built_in_text_is_attached() {
        let case = case(
            ScenarioKind::Summary,
            &ExcerptSources::default(),
            &mut SeededDraw::new(1),
            |_| true,
        );
        let case = case.unwrap();
        assert!(case.prompt.contains("\n\nText:\n"), "{}", case.prompt);
    }
}
