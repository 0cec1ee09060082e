//! Deterministic counting of the questions in an answer. Pure.

/// Returns true for a character that marks a question in any script, apart from the Greek one,
/// which is a semicolon (see [`ends_in_question`]), and the Spanish `¿`, which has a partner.
///
/// The Armenian mark stands within a word, all others at the end of the sentence.
pub const fn is_question_mark(c: char) -> bool {
    // In order: Latin, Arabic, Armenian, Ethiopic, double and mixed marks, interrobang, reversed,
    // presentation forms, full-width, Limbu, Coptic, Vai, Bamum, Chakma.
    matches!(
        c,
        '?' | '؟'
            | ARMENIAN_MARK
            | '፧'
            | '⁇'
            | '⁈'
            | '⁉'
            | '‽'
            | '⸮'
            | '︖'
            | '﹖'
            | '？'
            | '᥅'
            | '⳻'
            | '꘏'
            | '꛷'
            | '𑅃'
    )
}

/// The Armenian question mark, which stands above the stressed syllable.
const ARMENIAN_MARK: char = '՞';

/// Returns true for a letter of the Greek script.
const fn is_greek(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}') && !matches!(c, ';' | '·')
}

/// Returns true for punctuation that may follow the mark at the end of a question.
const fn may_follow_mark(c: char) -> bool {
    matches!(
        c,
        '*' | '_'
            | ')'
            | ']'
            | '"'
            | '\''
            | '”'
            | '’'
            | '»'
            | '」'
            | '』'
            | '!'
            | '！'
            | '\u{200e}'
            | '\u{200f}'
    )
}

/// Returns true if a line ends in a question.
pub fn ends_in_question(line: &str) -> bool {
    let bare = line.trim_end_matches(|c: char| c.is_whitespace() || may_follow_mark(c));
    let Some(last) = bare.chars().next_back() else { return false };
    if is_question_mark(last) {
        return true;
    }
    // NFC turns the Greek question mark into a semicolon.
    if matches!(last, ';' | '\u{37e}') {
        return bare.chars().rev().find(|c| c.is_alphabetic()).is_some_and(is_greek);
    }
    let ended = |c: char| matches!(c, '։' | '.' | '!' | ':');
    let sentence = bare.trim_end_matches(ended).rsplit(ended).next().unwrap_or_default();
    sentence.contains(ARMENIAN_MARK)
}

/// Counts the sentences with a question mark of any script.
///
/// A run such as `??` or `?!` is one question. Ignored are fenced code blocks, inline code,
/// question marks inside a URL or a word (`a?b`), and marks without any word before them.
pub fn count_questions(text: &str) -> u32 {
    prose_lines(text).map(|line| count_in_line(&line)).fold(0, u32::saturating_add)
}

/// Returns the lines outside fenced code blocks, with inline code blanked out.
pub fn prose_lines(text: &str) -> impl Iterator<Item = String> {
    let mut fence: Option<(char, usize)> = None;
    text.lines().filter_map(move |line| {
        let marker = line.trim_start();
        let first = marker.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run = first.map_or(0, |mark| marker.chars().take_while(|&c| c == mark).count());
        match (fence, first) {
            (Some((mark, length)), _) => {
                // A closing fence uses the same character, is at least as long, and stands alone.
                if first == Some(mark) && run >= length && marker[run..].trim().is_empty() {
                    fence = None;
                }
                None
            }
            // A line such as ```code``` is inline code, not the start of a block.
            (None, Some(mark)) if run >= 3 && !marker[run..].contains(mark) => {
                fence = Some((mark, run));
                None
            }
            _ => Some(without_inline_code(line)),
        }
    })
}

/// Replaces each inline code span with one word, so that the sentence keeps its structure.
fn without_inline_code(line: &str) -> String {
    let mut prose = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let run = rest[start..].bytes().take_while(|&byte| byte == b'`').count();
        let inside = &rest[start + run..];
        // An unclosed span is plain text.
        let Some(length) = closing_run(inside, run) else {
            break;
        };
        prose.push_str(&rest[..start]);
        prose.push_str("code");
        rest = &inside[length + run..];
    }
    prose.push_str(rest);
    prose
}

/// Returns the position of a run of exactly `run` backticks.
fn closing_run(text: &str, run: usize) -> Option<usize> {
    let mut position = 0;
    while let Some(found) = text[position..].find('`') {
        let start = position + found;
        let length = text[start..].bytes().take_while(|&byte| byte == b'`').count();
        if length == run {
            return Some(start);
        }
        position = start + length;
    }
    None
}

fn count_in_line(line: &str) -> u32 {
    let mut count = 0;
    let mut has_word = false;
    let mut letter = ' ';
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ';' | '\u{37e}' if is_greek(letter) && has_word && ends_sentence(rest.clone()) => {
                count += 1;
                has_word = false;
            }
            // It separates clauses, and ends no question.
            ';' | '\u{37e}' if is_greek(letter) => {}
            c if is_question_mark(c) => {
                // A run of marks is one question, whatever it consists of.
                let mut wide = c != '?';
                while let Some(next) =
                    rest.next_if(|&next| is_question_mark(next) || matches!(next, '!' | '！'))
                {
                    wide |= !matches!(next, '?' | '!');
                }
                // Only the Latin mark occurs in addresses and code; others need no space after
                // them, since some are used in languages without spaces.
                if has_word && (wide || ends_sentence(rest.clone())) {
                    count += 1;
                    has_word = false;
                }
            }
            // A table cell separator starts a new sentence.
            '|' => has_word = false,
            c if c.is_alphanumeric() => {
                has_word = true;
                letter = c;
            }
            _ => {}
        }
    }
    count
}

/// Returns true if only closing punctuation precedes the next space.
fn ends_sentence(mut rest: impl Iterator<Item = char>) -> bool {
    rest.find(|c| !may_follow_mark(*c))
        .is_none_or(|next| next.is_whitespace() || matches!(next, '|' | '<' | ',' | ';' | '—'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_counted() {
        for (text, expected) in [
            ("", 0),
            ("It is done.", 0),
            ("Which file do you mean?", 1),
            ("Which file?? Really?!", 2),
            ("What? And why?\nAnd when?", 3),
            ("1. Which one?\n2. **How many?**\n- (or \"none?\")", 3),
            ("どのファイルですか？いつですか？", 2),
            ("本当ですか？？", 1),
            ("See https://example.org/search?q=what for more.", 0),
            ("Do you mean https://example.org/a?b=c?", 1),
            ("The pattern `a?` is optional. Use ``x ? `y` : z``.", 0),
            ("Is `a?b` right?", 1),
            ("```\nwhat is this?\n```\nDone.", 0),
            ("~~~python\nreally?\n~~~\nShall I go on?", 1),
            ("````\n```\nstill code?\n````\n", 0),
            ("```\nnever closed?", 0),
            ("```what?``` is inline", 0),
            ("foo?.bar and a?b:c", 0),
            ("???", 0),
            ("| name | ? |", 0),
            ("Comment ça va ?", 1),
            ("an unpaired ` mark, right?", 1),
            ("\"Why?\" she asked.", 1),
            ("أي ملف تقصد؟", 1),
            ("أي ملف تقصد؟ ومتى؟", 2),
            ("Ποιο αρχείο εννοείς;", 1),
            ("Ποιο αρχείο εννοείς\u{37e} Και πότε;", 2),
            ("Ο πρώτος· ο δεύτερος.", 0),
            ("One; two; three.", 0),
            ("Ո՞ր ֆայլն ես նկատի ունենում։", 1),
            ("የትኛው ፋይል ነው፧", 1),
            ("Which one⁇ Really⁈", 2),
            ("¿Qué archivo?", 1),
        ] {
            assert_eq!(count_questions(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_end_of_a_line_asks_in_any_script() {
        for line in [
            "Which file?",
            "**Which file?!**",
            "どのファイルですか？",
            "أي ملف تقصد؟",
            "Ποιο αρχείο εννοείς;",
            "Ո՞ր ֆայլն ես նկատի ունենում։",
            "የትኛው ፋይል ነው፧",
            "(which⁇)",
        ] {
            assert!(ends_in_question(line), "{line}");
        }
        for line in ["", "?no", "One; two;", "It is done.", "Ո՞ր ֆայլը։ Այս մեկը։", "Ναι."]
        {
            assert!(!ends_in_question(line), "{line}");
        }
    }
}
