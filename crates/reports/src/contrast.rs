//! Marks the difference between what a failed case expected and what it got. Pure and bounded.

use similar::{ChangeTag, TextDiff};

use selftest_checks::check::{Check, CheckKind};
use selftest_harness::outcome::CaseResult;
use selftest_text::escape::block;

/// Maximum length of each side, in bytes.
const MAX_SIDE: usize = 4_000;
/// Minimum likeness, by words, from which marks in a text help more than both texts as they are.
const ALIKE: f64 = 0.4;
/// Maximum length of a line that is compared as a whole, in bytes; longer ones are split into
/// sentences.
const MAX_LINE: usize = 120;

/// Heading of a comparison with the reference.
const REFERENCE: &str = "Reference against answer";

/// A part of a contrast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// On both sides.
    Same,
    /// Expected, and not in the answer.
    Missing,
    /// In the answer, and not expected.
    Added,
    /// In the answer, which must not contain it.
    Forbidden,
}

/// A piece of text and its mark. Holds no characters that hide or reorder text, but markup has to be
/// escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The mark.
    pub kind: PieceKind,
    /// The text.
    pub text: String,
}

/// The difference between an expected text and an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contrast {
    /// What the answer is held against, as a heading.
    pub heading: &'static str,
    /// Both texts as one, with marks.
    pub pieces: Vec<Piece>,
    /// The expected text and the answer; `None` if nothing is missing from the answer.
    sides: Option<[String; 2]>,
}

impl Contrast {
    /// Compares the last answer of a failed case with what it had to equal, with what it must not
    /// contain, or with a reference that it resembles. `None` if there is nothing to mark.
    pub fn of(case: &CaseResult) -> Option<Self> {
        if case.status().0.pass() != Some(false) {
            return None;
        }
        let grounds = &case.case.as_ref()?.grounds;
        let answer = &case.steps.iter().rev().find_map(|step| step.reply.as_ref())?.output;
        let checks = flattened(&grounds.checks);
        let equal = checks.iter().find_map(|kind| match kind {
            CheckKind::Equals(text) if text.trim() != answer.trim() => Some(text.as_str()),
            _ => None,
        });
        // What a check demands comes first: it decided. A reference is only one good answer.
        if let Some(text) = equal {
            return Some(Self::between("Expected against got", text, answer));
        }
        let json = checks.iter().find_map(|kind| match kind {
            CheckKind::Json(check) => check.sides(answer),
            _ => None,
        });
        if let Some([expected, got]) = json {
            return Some(Self::between("Expected against got", &expected, &got));
        }
        if let Some(found) = forbidden(&checks, answer) {
            return Some(found);
        }
        let reference = grounds.reference.as_deref()?;
        // Unlike texts would be one piece missing and one added, which the report shows anyway.
        let found = Self::between(REFERENCE, reference, answer);
        // A single piece means that both texts are the same.
        (found.likeness() >= ALIKE && found.pieces.len() > 1).then_some(found)
    }

    fn between(heading: &'static str, expected: &str, answer: &str) -> Self {
        let [expected, answer] = [expected, answer].map(|text| block(text.trim(), MAX_SIDE));
        let pieces = by_words(&expected, &answer);
        Self { heading, pieces, sides: Some([expected, answer]) }
    }

    /// Returns true if it holds the whole reference, which then need not be shown again.
    pub fn has_reference(&self) -> bool {
        self.heading == REFERENCE
    }

    /// Returns the share of text that is on both sides, 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "texts are bounded")]
    fn likeness(&self) -> f64 {
        let count = |kind: PieceKind| {
            let texts = self.pieces.iter().filter(|piece| piece.kind == kind);
            let letters = texts.flat_map(|piece| piece.text.chars());
            letters.filter(|c| !c.is_whitespace()).count() as f64
        };
        // Doubled, because this text is on both sides.
        let same = 2.0 * count(PieceKind::Same);
        let all = same + count(PieceKind::Missing) + count(PieceKind::Added);
        if all > 0.0 { same / all } else { 0.0 }
    }

    /// Returns both sides as lines with `-`, `+` or a space before each, as `diff` prints them;
    /// `None` if nothing is missing from the answer.
    pub fn lines(&self) -> Option<String> {
        let [expected, answer] = self.sides.as_ref()?.each_ref().map(|text| sentences(text));
        let diff = TextDiff::from_lines(expected.as_str(), answer.as_str());
        let mut text = String::new();
        for change in diff.iter_all_changes() {
            text.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            text.push(' ');
            text.push_str(change.value().trim_end_matches('\n'));
            text.push('\n');
        }
        Some(text)
    }

    /// Returns what the answer contains and must not contain, each once.
    pub fn forbidden(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for piece in self.pieces.iter().filter(|piece| piece.kind == PieceKind::Forbidden) {
            if !found.contains(&piece.text.as_str()) {
                found.push(&piece.text);
            }
        }
        found
    }
}

/// Returns the kinds of the checks, with those inside `all`.
fn flattened(checks: &[Check]) -> Vec<&CheckKind> {
    let mut found = Vec::new();
    for check in checks {
        match &check.kind {
            CheckKind::All(inner) => found.extend(flattened(inner)),
            kind => found.push(kind),
        }
    }
    found
}

/// Marks what the answer must not contain; `None` if there is no such text in it.
fn forbidden(checks: &[&CheckKind], answer: &str) -> Option<Contrast> {
    let answer = block(answer.trim(), MAX_SIDE);
    let wrong = checks.iter().find_map(|kind| {
        let found = match kind {
            CheckKind::NotContains(text) => Some(text.as_str()),
            // A pattern that backtracks too far is an error of the check, and has nothing to mark.
            CheckKind::NotRegex(pattern) => pattern.find(&answer).ok().flatten(),
            _ => None,
        };
        found.filter(|text| !text.is_empty() && answer.contains(*text)).map(str::to_owned)
    })?;
    let mut pieces = Vec::new();
    for (number, text) in answer.split(&wrong).enumerate() {
        if number > 0 {
            pieces.push(Piece { kind: PieceKind::Forbidden, text: wrong.clone() });
        }
        if !text.is_empty() {
            pieces.push(Piece { kind: PieceKind::Same, text: text.to_owned() });
        }
    }
    Some(Contrast { heading: "Must not be in the answer", pieces, sides: None })
}

/// Compares two texts word by word. Blanks between two changed words count as changed, so that a
/// changed phrase is one piece.
fn by_words(expected: &str, answer: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut missing, mut added, mut blank) = (String::new(), String::new(), String::new());
    let flush = |pieces: &mut Vec<Piece>, missing: &mut String, added: &mut String| {
        for (kind, text) in [(PieceKind::Missing, missing), (PieceKind::Added, added)] {
            if !text.is_empty() {
                pieces.push(Piece { kind, text: std::mem::take(text) });
            }
        }
    };
    let keep = |pieces: &mut Vec<Piece>, text: &str| match pieces.last_mut() {
        Some(last) if last.kind == PieceKind::Same => last.text.push_str(text),
        _ if text.is_empty() => {}
        _ => pieces.push(Piece { kind: PieceKind::Same, text: text.to_owned() }),
    };
    for change in TextDiff::from_words(expected, answer).iter_all_changes() {
        let text = change.value();
        let is_changed = !missing.is_empty() || !added.is_empty();
        match change.tag() {
            ChangeTag::Equal if is_changed && text.trim().is_empty() => blank.push_str(text),
            ChangeTag::Equal => {
                flush(&mut pieces, &mut missing, &mut added);
                keep(&mut pieces, &std::mem::take(&mut blank));
                keep(&mut pieces, text);
            }
            tag => {
                missing.push_str(&blank);
                added.push_str(&std::mem::take(&mut blank));
                if tag == ChangeTag::Delete { &mut missing } else { &mut added }.push_str(text);
            }
        }
    }
    flush(&mut pieces, &mut missing, &mut added);
    keep(&mut pieces, &blank);
    pieces
}

/// Splits long lines after sentences, so that a change is marked where it is.
fn sentences(text: &str) -> String {
    let mut split = String::with_capacity(text.len());
    for line in text.lines() {
        if line.len() <= MAX_LINE {
            split.push_str(line);
        } else {
            split.push_str(&line.replace(". ", ".\n"));
        }
        split.push('\n');
    }
    split
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use selftest_checks::check::JsonCheck;
    use serde_json::{Value, json};

    use super::*;

    fn marked(pieces: &[Piece]) -> String {
        let mark = |piece: &Piece| match piece.kind {
            PieceKind::Same => piece.text.clone(),
            PieceKind::Missing => format!("[-{}-]", piece.text),
            PieceKind::Added => format!("{{+{}+}}", piece.text),
            PieceKind::Forbidden => format!("<{}>", piece.text),
        };
        pieces.iter().map(mark).collect()
    }

    #[test]
    fn a_changed_phrase_is_one_piece() {
        let pieces = by_words(
            "The ferry leaves at seven in the morning.",
            "The ferry leaves at half past nine in the morning.",
        );
        assert_eq!(
            marked(&pieces),
            "The ferry leaves at [-seven-]{+half past nine+} in the morning."
        );
        assert_eq!(marked(&by_words("a b", "a b")), "a b");
        assert_eq!(marked(&by_words("", "b")), "{+b+}");
    }

    #[test]
    fn json_is_marked_member_by_member() {
        let check: Value = json!({ "pointer": "/order", "equals": { "id": 3, "paid": true } });
        let check: JsonCheck = serde_json::from_value(check).unwrap();
        let [expected, got] =
            check.sides(r#"{"order": {"paid": false, "id": 3.0, "x": 1}}"#).unwrap();
        assert_eq!(
            Contrast::between("x", &expected, &got).lines().unwrap(),
            "  {\n-   \"id\": 3,\n-   \"paid\": true\n+   \"id\": 3.0,\n+   \"paid\": false,\n+   \
             \"x\": 1\n  }\n"
        );
        assert_eq!(check.sides(r#"{"order": {"paid": true, "id": 3.0}}"#), None);
        assert_eq!(check.sides("no JSON"), None);
    }

    #[test]
    fn lines_are_marked_as_diff_does() {
        let found = Contrast::between("x", "one\ntwo\nthree", "one\n2\nthree");
        assert_eq!(found.lines().unwrap(), "  one\n- two\n+ 2\n  three\n");
        let long = "A sentence that both have in common, word by word. ".repeat(3);
        let found = Contrast::between("x", &format!("{long}Ten."), &format!("{long}Nine."));
        let lines = found.lines().unwrap();
        assert!(lines.ends_with("- Ten.\n+ Nine.\n"), "{lines}");
    }

    proptest! {
        #[test]
        fn no_word_of_either_side_is_lost(a in "[a-c \n]{0,40}", b in "[a-c \n]{0,40}") {
            let pieces = by_words(&a, &b);
            let words = |but: PieceKind| -> Vec<String> {
                let side: String =
                    pieces.iter().filter(|it| it.kind != but).map(|it| it.text.as_str()).collect();
                side.split_whitespace().map(str::to_owned).collect()
            };
            let of = |text: &str| -> Vec<String> {
                text.split_whitespace().map(str::to_owned).collect()
            };
            prop_assert_eq!(words(PieceKind::Added), of(&a));
            prop_assert_eq!(words(PieceKind::Missing), of(&b));
        }
    }
}
