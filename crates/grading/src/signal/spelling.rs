//! Common spellings of English words that the rules know in one form only: without an apostrophe,
//! shortened, or with letters swapped.

use std::borrow::Cow;

use selftest_text::words::WordIter;

use super::word_context::is_one_of;

/// Words after *its* that make *it's* of it, besides those that end in *-ing*.
const AFTER_ITS: &str = "not still too way only just a an the now also so really very completely totally all broken wrong missing empty blank gone slower worse even always been";

/// Rewrites known misspellings in a folded text.
pub(super) fn corrected(text: &str) -> Cow<'_, str> {
    let mut corrected = String::new();
    let mut copied = 0;
    let mut words = WordIter::new(text).peekable();
    while let Some(word) = words.next() {
        let next = words.peek().map_or("", |word| word.text);
        let Some(right) = spelling(word.text, next) else { continue };
        corrected.push_str(&text[copied..word.start]);
        corrected.push_str(right);
        copied = word.end();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    corrected.push_str(&text[copied..]);
    Cow::Owned(corrected)
}

fn spelling(word: &str, next: &str) -> Option<&'static str> {
    Some(match word {
        "doesnt" | "dosent" | "dosnt" | "doesent" | "doest" | "dosen't" => "doesn't",
        "dont" | "donot" | "dnt" => "don't",
        "didnt" | "dint" | "didint" | "did'nt" => "didn't",
        "isnt" | "ist" => "isn't",
        "arent" => "aren't",
        "wasnt" => "wasn't",
        "werent" => "weren't",
        "wont" => "won't",
        "cant" | "cannot" | "ca't" => "can't",
        "couldnt" => "couldn't",
        "shouldnt" => "shouldn't",
        "wouldnt" => "wouldn't",
        "havent" => "haven't",
        "hasnt" => "hasn't",
        "thats" => "that's",
        "theres" => "there's",
        "heres" => "here's",
        "wheres" => "where's",
        "whats" => "what's",
        "im" => "i'm",
        "ive" => "i've",
        "youre" => "you're",
        "youve" => "you've",
        "its" if next.ends_with("ing") || is_one_of(next, AFTER_ITS) => "it's",
        "u" => "you",
        "ur" => "your",
        "pls" | "plz" | "plase" | "pleas" => "please",
        "becuase" | "becouse" | "becasue" | "bc" | "cuz" | "coz" | "bcs" => "because",
        "stil" | "sitll" | "stll" => "still",
        "agian" | "agin" => "again",
        "instad" | "insted" | "intead" => "instead",
        "notworking" => "not working",
        "notloading" => "not loading",
        "wrng" | "worng" | "wong" => "wrong",
        "eror" | "erorr" | "errror" | "err" => "error",
        "brocken" | "borken" | "borked" => "broken",
        "tehre" => "there",
        "teh" => "the",
        "wich" => "which",
        "chnage" | "chagne" => "change",
        "chnages" | "chagnes" => "changes",
        "forgotton" => "forgotten",
        "misssing" | "mising" => "missing",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_misspellings_are_rewritten() {
        for (text, expected) in [
            ("it dosent work, its not loading", "it doesn't work, it's not loading"),
            ("its name is fine", "its name is fine"),
            ("i cant see it becuase teh page is blank", "i can't see it because the page is blank"),
            ("它坏了", "它坏了"),
        ] {
            assert_eq!(corrected(text), expected);
        }
        assert!(matches!(corrected("all right"), Cow::Borrowed(_)));
    }
}
