//! Cue words that can indicate a remark, and the words around a cue, which tell a remark from a
//! mention. A cue may be anywhere in the remark.

use selftest_text::words::{TextWord, WordGap, gap, is_fenced};

/// The remark that a word may belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CueWord {
    /// *thanks*
    Thanks,
    /// *perfect*
    Praise,
    /// *good job*
    Job,
    /// *I appreciate it*
    Appreciate,
    /// *love it*
    Love,
    /// *exactly what I needed*, and *not what I wanted*
    Wanted,
    /// *not what I asked*
    Asked,
    /// *that's wrong*
    Wrong,
    /// *still wrong*
    Still,
    /// *no, that's not*
    No,
    /// *you misunderstood*
    Misunderstood,
    /// *try again*
    Again,
    /// *come on*
    Come,
    /// *what the hell*
    Hell,
    /// *ugh*
    Outcry,
    /// *seriously?*
    Seriously,
    /// *this is annoying*
    Annoying,
    /// *I'm frustrated*
    Annoyed,
}

impl CueWord {
    /// Returns true if the remark says something about the work. The others only have a tone.
    pub(super) fn is_about_work(self) -> bool {
        matches!(
            self,
            CueWord::Wrong
                | CueWord::Still
                | CueWord::No
                | CueWord::Asked
                | CueWord::Wanted
                | CueWord::Misunderstood
        )
    }
}

/// Returns the cue for a word.
pub(super) fn cue(word: &str) -> Option<CueWord> {
    Some(match word {
        "thank" | "thanks" | "thx" | "ty" | "thankyou" | "thanx" | "thnx" | "tysm" | "tyvm" => {
            CueWord::Thanks
        }
        "perfect" | "awesome" | "nice" | "great" | "excellent" | "amazing" => CueWord::Praise,
        "job" | "work" => CueWord::Job,
        "appreciate" | "appreciated" => CueWord::Appreciate,
        "love" => CueWord::Love,
        "needed" | "wanted" => CueWord::Wanted,
        "asked" | "meant" | "said" | "requested" => CueWord::Asked,
        "wrong" => CueWord::Wrong,
        "still" => CueWord::Still,
        "no" | "nope" | "nah" => CueWord::No,
        "misunderstood" | "misunderstand" | "misunderstanding" => CueWord::Misunderstood,
        "again" => CueWord::Again,
        "come" | "c'mon" | "cmon" => CueWord::Come,
        "hell" | "heck" | "fuck" => CueWord::Hell,
        "ugh" | "ughh" | "ughhh" | "uggh" | "ugggh" | "argh" | "arghh" | "wtf" | "ffs" | "fgs" => {
            CueWord::Outcry
        }
        "seriously" => CueWord::Seriously,
        "annoying" | "frustrating" | "ridiculous" => CueWord::Annoying,
        "annoyed" | "frustrated" | "unhappy" | "upset" | "disappointed" => CueWord::Annoyed,
        _ => return None,
    })
}

/// Returns true if a word is in a space-separated list.
pub(super) fn is_one_of(word: &str, words: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// Number of words to look back.
const MAX_WORDS_BACK: usize = 8;

/// A word of a folded message and the words around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordContext<'a> {
    pub(super) text: &'a str,
    pub(super) words: &'a [TextWord<'a>],
    /// Index of the word.
    pub(super) at: usize,
}

impl<'a> WordContext<'a> {
    /// Returns the word itself.
    pub(super) fn word(&self) -> TextWord<'a> {
        self.words[self.at]
    }

    /// Returns the preceding words, nearest first, each with the gap to the word after it.
    pub(super) fn before(&self) -> impl Iterator<Item = (&'a str, WordGap)> + use<'a> {
        let WordContext { text, words, at } = *self;
        let pairs = words[..=at].windows(2).rev().take(MAX_WORDS_BACK);
        pairs.map(move |pair| (pair[0].text, gap(&text[pair[0].end()..pair[1].start])))
    }

    /// Returns the preceding words in the same clause, nearest first.
    pub(super) fn clause_before(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.before().take_while(|(_, gap)| *gap == WordGap::Word).map(|(word, _)| word)
    }

    /// Returns the following words, each with the gap to the word before it.
    pub(super) fn after(&self) -> impl Iterator<Item = (&'a str, WordGap)> + use<'a> {
        let WordContext { text, words, at } = *self;
        let pairs = words[at..].windows(2);
        pairs.map(move |pair| (pair[1].text, gap(&text[pair[0].end()..pair[1].start])))
    }

    /// Returns the following words in the same clause.
    pub(super) fn clause_after(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.after().take_while(|(_, gap)| *gap == WordGap::Word).map(|(word, _)| word)
    }

    /// Returns true if the word is neither quoted nor part of a name such as `nice.py`, `/thanks`
    /// or `font-awesome`.
    pub(super) fn stands_alone(&self) -> bool {
        let word = self.word();
        let (before, after) = (&self.text[..word.start], &self.text[word.end()..]);
        let mut back = before.chars().rev();
        let joined_before = match back.next() {
            // The third dot of an ellipsis is not part of a name.
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

    /// Returns true if the sentence ends with a question mark.
    pub(super) fn is_in_question(&self) -> bool {
        let rest = &self.text[self.word().end()..];
        rest.chars()
            .find(|c| matches!(c, '.' | '!' | '?' | '？' | '\n' | ';'))
            .is_some_and(|end| matches!(end, '?' | '？'))
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '«' | '»' | '`')
}
