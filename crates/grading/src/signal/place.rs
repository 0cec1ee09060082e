//! A word with what stands around it: what tells a remark from a mention. Pure.

use selftest_text::words::{Gap, Key, Word, Words, gap, is_fenced};

/// Whether a key is that of one of these words.
macro_rules! is {
    ($key:expr, $($word:literal)+) => {{
        let key = $key;
        $(key == const { selftest_text::words::Key::ascii($word) })||+
    }};
}
pub(super) use is;

/// How many words back one can look; a power of two.
const BACK: usize = 8;

/// The words that came last.
#[derive(Debug)]
pub(super) struct Recent {
    words: [Word; BACK],
    count: usize,
}

impl Recent {
    pub(super) fn new() -> Self {
        let none = Word { key: Key::ascii(""), start: 0, end: 0, apostrophe: false };
        Self { words: [none; BACK], count: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, word: Word) {
        self.words[self.count % BACK] = word;
        self.count += 1;
    }
}

/// A word of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a, 't> {
    pub(super) word: Word,
    /// What came before it.
    pub(super) recent: &'a Recent,
    /// What comes after it.
    pub(super) rest: &'a Words<'t>,
}

impl<'t> Place<'_, 't> {
    /// The words before it, the nearest first, each with what stands between it and the word
    /// after it.
    pub(super) fn before(&self) -> impl Iterator<Item = (Key, Gap)> + '_ {
        let (text, Recent { words, count }) = (self.rest.text(), self.recent);
        let mut next = self.word.start;
        (1..=BACK).map_while(move |back| {
            let word = words[count.checked_sub(back)? % BACK];
            let gap = gap(&text[word.end..next]);
            next = word.start;
            Some((word.key, gap))
        })
    }

    /// The words before it in the same clause, the nearest first.
    pub(super) fn clause_before(&self) -> impl Iterator<Item = Key> + '_ {
        self.before().take_while(|(_, gap)| *gap == Gap::Word).map(|(key, _)| key)
    }

    /// The words after it, each with what stands between it and the word before it.
    pub(super) fn after(&self) -> impl Iterator<Item = (Key, Gap)> + use<'t> {
        let (text, mut last) = (self.rest.text(), self.word.end);
        self.rest.clone().map(move |word| {
            let gap = gap(&text[last..word.start]);
            last = word.end;
            (word.key, gap)
        })
    }

    /// The words after it in the same clause.
    pub(super) fn clause_after(&self) -> impl Iterator<Item = Key> + use<'t> {
        self.after().take_while(|(_, gap)| *gap == Gap::Word).map(|(key, _)| key)
    }

    /// Whether it is neither quoted nor a part of a name such as `nice.py`, `/thanks` or
    /// `font-awesome`.
    pub(super) fn stands_alone(&self) -> bool {
        let text = self.rest.text();
        let (before, after) = (&text[..self.word.start], &text[self.word.end..]);
        let mut back = before.chars().rev();
        let joined_before = match back.next() {
            // The third dot of an ellipsis is no part of a name.
            Some('.') => back.next() != Some('.'),
            Some(c) => is_quote(c) || "-_/\\@#$%&=<>|~+^{:".contains(c),
            None => false,
        };
        let mut on = after.chars();
        let joined_after = match on.next() {
            Some('-' | '.' | ':') => on.next().is_some_and(char::is_alphanumeric),
            Some(c) => is_quote(c) || "_/\\@=<>|+}".contains(c),
            None => false,
        };
        !joined_before && !joined_after && !is_fenced(before)
    }

    /// Whether its sentence ends with a question mark.
    pub(super) fn in_question(&self) -> bool {
        let rest = &self.rest.text()[self.word.end..];
        rest.chars()
            .find(|c| matches!(c, '.' | '!' | '?' | '？' | '\n' | ';'))
            .is_some_and(|end| matches!(end, '?' | '？'))
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '«' | '»' | '`')
}
