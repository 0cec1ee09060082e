//! The text of a message as the rules examine it: without quoted text, split into sentences, and with
//! common spellings of English words rewritten that the rules know in one form only.

use std::borrow::Cow;

use selftest_text::words::{WordIter, is_fenced};

use super::cue::is_one_of;

/// Removes fenced code, code in backticks and text in double quotes.
pub(super) fn without_quotes(text: &str) -> Cow<'_, str> {
    if !text.contains(['`', '"', '“', '„', '«']) {
        return Cow::Borrowed(text);
    }
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['`', '"', '“', '„', '«']) {
        bare.push_str(&rest[..at]);
        let from = &rest[at..];
        let (open, close) = match from.chars().next() {
            Some('`') if from.starts_with("```") => ("```", "```"),
            Some('`') => ("`", "`"),
            Some('“') => ("“", "”"),
            Some('„') => ("„", "“"),
            Some('«') => ("«", "»"),
            _ => ("\"", "\""),
        };
        let inside = &from[open.len()..];
        // A placeholder, so that the words on either side are not joined.
        bare.push_str(" x ");
        rest = match inside.find(close) {
            Some(end) => &inside[end + close.len()..],
            // An unclosed fence is code up to the end; any other unclosed mark is literal.
            None if is_fenced(open) => "",
            None => inside,
        };
    }
    bare.push_str(rest);
    Cow::Owned(bare)
}

/// Returns the sentences of a text, trimmed, each with its closing mark. Skips lines that look like
/// a log or code.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !looks_pasted(line))
        .flat_map(split)
        .map(|sentence| sentence.trim().trim_start_matches(['-', '*', '>', '(', ',']).trim_start())
        .filter(|sentence| !sentence.is_empty())
}

/// Splits a line into sentences. A dot or colon within a name does not end a sentence.
fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = |(at, c): &(usize, char)| match c {
            '!' | '?' | ';' | '…' | '。' | '！' | '？' => true,
            // A name such as `app.py` and a time such as 10:30 go on behind the mark.
            '.' | ':' => {
                !rest[at + c.len_utf8()..].starts_with(|next: char| next.is_alphanumeric())
            }
            _ => false,
        };
        let mut end =
            rest.char_indices().find(ends).map_or(rest.len(), |(at, c)| at + c.len_utf8());
        // Doubled marks belong together.
        end += rest[end..].find(|c| !matches!(c, '!' | '?' | '.')).unwrap_or(rest.len() - end);
        let (sentence, behind) = rest.split_at(end);
        rest = behind;
        Some(sentence)
    })
}

/// Returns true if a line starts like program output or code.
fn looks_pasted(line: &str) -> bool {
    const BEGINNINGS: [&str; 12] = [
        "error:",
        "error[",
        "warning:",
        "traceback",
        "at ",
        "  at ",
        "file \"",
        "fatal:",
        "e  ",
        "[error",
        "$ ",
        "npm err",
    ];
    let line = line.trim_start_matches('\t');
    BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)) || line.starts_with("    ")
}

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
    fn quotes_and_code_are_taken_out() {
        assert_eq!(without_quotes("say \"wtf\" and `x y`"), "say  x  and  x ");
        assert_eq!(without_quotes("a ```\nwtf\n``` b"), "a  x  b");
        assert_eq!(without_quotes("it is 5\" wide"), "it is 5 x  wide");
        assert_eq!(without_quotes("see ```\nwtf"), "see  x ");
        let found: Vec<&str> = sentences("no. it fails!\nerror: x\n- still").collect();
        assert_eq!(found, ["no.", "it fails!", "still"]);
        let found: Vec<&str> = sentences("see a.rs: it fails. ok").collect();
        assert_eq!(found, ["see a.rs:", "it fails.", "ok"]);
    }

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
