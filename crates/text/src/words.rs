//! Word splitting and comparison of texts. Ignores case and treats both apostrophes alike.

use std::sync::LazyLock;

/// Converts a text to lower case and typographic apostrophes to ASCII ones.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '’' => folded.push('\''),
            // Lower-casing the Kelvin sign or the dotted I would produce ASCII letters.
            '\u{212a}' | '\u{130}' => folded.push(c),
            _ => folded.extend(c.to_lowercase()),
        }
    }
    folded
}

/// A run of letters and digits, possibly with apostrophes inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextWord<'t> {
    /// The text of the word.
    pub text: &'t str,
    /// Start offset in bytes.
    pub start: usize,
}

impl TextWord<'_> {
    /// Returns the end offset in bytes.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Iterator over each word of a folded text.
#[derive(Debug, Clone)]
pub struct WordIter<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> WordIter<'t> {
    /// Creates an iterator over a text returned by [`fold`].
    pub fn new(folded: &'t str) -> Self {
        Self { text: folded, at: 0 }
    }
}

impl<'t> Iterator for WordIter<'t> {
    type Item = TextWord<'t>;

    #[inline]
    fn next(&mut self) -> Option<TextWord<'t>> {
        let start = self.at + self.text[self.at..].find(char::is_alphanumeric)?;
        let mut end = start;
        loop {
            let rest = &self.text[end..];
            end += rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            // An apostrophe is part of a word if there are letters on both sides.
            match self.text[end..].strip_prefix('\'') {
                Some(rest) if rest.starts_with(char::is_alphanumeric) => end += 1,
                _ => break,
            }
        }
        self.at = end;
        Some(TextWord { text: &self.text[start..end], start })
    }
}

/// Strength of the separator between two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordGap {
    /// White space or a mark within a clause.
    Word,
    /// A comma, dash or bracket.
    Clause,
    /// The end of a sentence or line.
    Sentence,
}

/// Returns the strongest separator in a text without words.
pub fn gap(between: &str) -> WordGap {
    between.chars().map(gap_of).max().unwrap_or(WordGap::Word)
}

fn gap_of(c: char) -> WordGap {
    match c {
        '.' | '!' | '?' | ';' | ':' | '\n' | '\r' | '…' | '。' | '！' | '？' | '；' | '：'
        | '\u{85}' | '\u{2028}' | '\u{2029}' => WordGap::Sentence,
        ',' | '-' | '(' | ')' | '–' | '—' | '，' | '、' | '（' | '）' => WordGap::Clause,
        _ => WordGap::Word,
    }
}

/// Returns true if the end of a text is inside a fenced code block, i.e. after an unclosed fence of
/// three or more backticks.
pub fn is_fenced(before: &str) -> bool {
    let mut fenced = false;
    let mut rest = before;
    while let Some(at) = rest.find("```") {
        fenced = !fenced;
        // A fence of four backticks is one fence, not a fence and a rest.
        rest = rest[at..].trim_start_matches('`');
    }
    fenced
}

/// The set of significant words in a text (docs/spec/skills-and-signals.md#repetition).
///
/// Stopwords are excluded. Contractions and possessives are reduced (*what's* becomes *what*,
/// *today's* becomes *today*), and *n't* becomes the word *not*. Words are stored as hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WordSet(Vec<u64>);

impl WordSet {
    /// Collects the significant words of a text.
    pub fn from_text(text: &str) -> Self {
        WordIter::new(&fold(text)).collect()
    }

    /// Returns the sorted word hashes.
    pub fn hashes(&self) -> &[u64] {
        &self.0
    }

    /// Returns the Jaccard similarity |A ∩ B| / |A ∪ B|, from 0.0 to 1.0. Two empty sets have 0.0.
    pub fn jaccard(&self, other: &Self) -> f64 {
        // Both sets are sorted and without duplicates, so that their sizes are those of the sets.
        let common = self.0.iter().filter(|word| other.0.binary_search(word).is_ok()).count();
        let union = self.0.len() + other.0.len() - common;
        if union == 0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "word counts are far below 2^52")]
        let ratio = common as f64 / union as f64;
        ratio
    }
}

impl<'t> FromIterator<TextWord<'t>> for WordSet {
    fn from_iter<I: IntoIterator<Item = TextWord<'t>>>(words: I) -> Self {
        let mut hashes = Vec::new();
        for TextWord { text, .. } in words {
            if text.contains('\'') {
                hashes.extend(split_contraction(text).into_iter().flatten().map(hash));
            } else {
                hashes.push(hash(text));
            }
        }
        // After contractions are split: "I'm" is the stopword "i".
        hashes.retain(|word| STOPWORDS.binary_search(word).is_err());
        hashes.sort_unstable();
        hashes.dedup();
        Self(hashes)
    }
}

/// Splits a word with an apostrophe: contractions with *not* give two words.
fn split_contraction(word: &str) -> [Option<&str>; 2] {
    let Some((base, ending)) = word.rsplit_once('\'') else { return [Some(word), None] };
    match ending {
        "s" | "m" | "d" | "re" | "ve" | "ll" => [Some(base), None],
        // "can't", "won't" and "shan't" do not end in "n't" after a whole word.
        "t" if matches!(base, "can" | "won" | "shan") => [Some("not"), None],
        "t" if base.ends_with('n') => [Some("not"), base.strip_suffix('n')],
        _ => [Some(word), None],
    }
}

/// Sorted hashes of words that carry no meaning in a request.
static STOPWORDS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let words = "the a an is was are were do does did can could would should please just me my i";
    let mut hashes: Vec<u64> = words.split(' ').map(hash).collect();
    hashes.sort_unstable();
    hashes
});

/// FNV-1a, which is fast for short words.
fn hash(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<&str> {
        WordIter::new(text).map(|word| word.text).collect()
    }

    fn similarity(a: &str, b: &str) -> f64 {
        WordSet::from_text(a).jaccard(&WordSet::from_text(b))
    }

    #[test]
    fn folding_takes_the_case_away() {
        for (one, other) in [
            ("don't", "DON’T"),
            ("shouldn’t", "Shouldn't"),
            ("été", "ÉTÉ"),
            ("internationalisation", "InternationalisatioN"),
            ("ty", "TY"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        // The Kelvin sign does not become a k.
        assert_ne!(fold("thank"), fold("than\u{212a}"));
    }

    #[test]
    fn words_are_runs_of_letters() {
        let text = fold("  Thanks, that's 'it'… snake_case (x)\nÉté—“no” 它。");
        let words = ["thanks", "that's", "it", "snake", "case", "x", "été", "no", "它"];
        assert_eq!(split(&text), words);
        assert_eq!(split(&fold(" \n.'’` ")), Vec::<&str>::new());
        assert_eq!(
            split(&fold("don’t o'clock rock'n'roll '90s x''y")),
            ["don't", "o'clock", "rock'n'roll", "90s", "x", "y"]
        );
    }

    proptest! {
        #[test]
        fn words_cover_what_is_alphanumeric(
            text in "\\PC{0,40}|[a-cA-C'’` .,é\n它]{0,200}|[a-z]{0,80} [a-z']{0,80}"
        ) {
            let text = fold(&text);
            let mut from = 0;
            for word in WordIter::new(&text) {
                prop_assert!(from <= word.start && word.start < word.end());
                let between = &text[from..word.start];
                prop_assert!(!between.contains(char::is_alphanumeric), "{between:?}");
                let own = &text[word.start..word.end()];
                prop_assert_eq!(own, word.text);
                prop_assert!(own.chars().all(|c| c.is_alphanumeric() || c == '\''));
                from = word.end();
            }
            prop_assert!(!text[from..].contains(char::is_alphanumeric));
        }
    }

    #[test]
    fn gaps() {
        for (between, expected) in [
            ("", WordGap::Word),
            (" \"", WordGap::Word),
            (", ", WordGap::Clause),
            (" — ", WordGap::Clause),
            (", .", WordGap::Sentence),
            ("…", WordGap::Sentence),
            ("\n", WordGap::Sentence),
        ] {
            assert_eq!(gap(between), expected, "{between:?}");
        }
    }

    #[test]
    fn fences() {
        for (before, expected) in
            [("a `b` ``c", false), ("```", true), ("````\na", true), ("```a``` b", false)]
        {
            assert_eq!(is_fenced(before), expected, "{before}");
        }
    }

    #[test]
    fn the_same_words_are_alike() {
        assert_eq!(similarity("Summarise the README", "please summarise README!"), 1.0);
        assert_eq!(similarity("", ""), 0.0);
        assert_eq!(similarity("the a an", "is was"), 0.0);
    }

    /// docs/spec/skills-and-signals.md#repetition: Jaccard similarity of sets of words.
    #[test]
    fn different_words_are_not() {
        assert!(similarity("Summarise README.md in 3 lines", "Which licence applies?") < 0.2);
        assert_eq!(similarity("a b c d", "c d e f"), 0.4);
    }

    /// docs/spec/skills-and-signals.md#repetition: the stopwords.
    #[test]
    fn the_specified_stopwords() {
        let stopwords =
            "the a an is was are were do does did can could would should please just me my i";
        for word in stopwords.split(' ') {
            assert_eq!(WordSet::from_text(word), WordSet::default(), "{word}");
            assert_eq!(similarity("sort", &format!("{} sort", word.to_uppercase())), 1.0, "{word}");
        }
        for word in ["you", "it", "to", "not", "what", "this"] {
            assert_ne!(WordSet::from_text(word), WordSet::default(), "{word}");
        }
    }

    #[test]
    fn contractions_and_possessives_are_taken_off() {
        // The specification's own pair: what, weather, today against tell, today, weather.
        assert_eq!(similarity("what's the weather today", "tell me today's weather"), 0.5);
        for (one, other) in [
            ("I'm they're we’ve you'll he'd", "they we you he"),
            ("don't isn’t", "not"),
            ("can't WON'T shan't", "not"),
            ("haven't", "have not"),
            ("o'clock", "O’CLOCK"),
        ] {
            assert_eq!(similarity(one, other), 1.0, "{one}");
        }
    }
}
