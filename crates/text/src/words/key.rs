//! What tells words apart: eight letters of ASCII as they are, anything else by a hash.

/// A word without its case. Words of at most eight bytes of ASCII are told apart exactly, others
/// by a hash of 63 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

/// Bytes that fit into a key as they are.
const EXACT: usize = 8;

/// Told apart from exact words, whose bytes are ASCII.
const HASHED: u64 = 1 << 63;

/// The golden ratio as a fraction of 64 bits: what it multiplies is spread evenly.
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What makes an ASCII letter lower-case, and leaves digits and the apostrophe as they are.
const LOWER: u64 = 0x2020_2020_2020_2020;

impl Key {
    /// The key of no word.
    pub(super) const NONE: Self = Self(0);

    /// The key of a word of lower-case ASCII letters, digits and apostrophes, at compile time.
    ///
    /// # Panics
    /// For any other word.
    pub const fn ascii(word: &str) -> Self {
        let bytes = word.as_bytes();
        let mut builder = Builder::new();
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            let known = byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'\'';
            assert!(known, "only lower-case ASCII has a key at compile time");
            builder.push(byte);
            at += 1;
        }
        builder.key()
    }

    /// The key of a word.
    pub fn of(word: &str) -> Self {
        let mut builder = Builder::new();
        word.chars().for_each(|c| builder.push_char(c));
        builder.key()
    }

    /// A number below `places`, a power of two above one, that is spread evenly for any odd
    /// `factor`.
    #[inline]
    pub(super) const fn place(self, factor: u64, places: usize) -> usize {
        // The upper bits depend on all of the word.
        let place = self.0.wrapping_mul(factor) >> (u64::BITS - places.trailing_zeros());
        #[expect(clippy::cast_possible_truncation, reason = "it is below `places`")]
        let place = place as usize;
        place
    }
}

/// One more part of a word that does not fit into a key.
const fn mix(hash: u64, part: u64) -> u64 {
    (hash ^ part).wrapping_mul(GOLDEN).rotate_left(23)
}

/// Folds the bytes of a word into its key.
struct Builder {
    hash: u64,
    /// The bytes that are not in the hash, the first one lowest.
    part: u64,
    length: usize,
    wide: bool,
}

impl Builder {
    const fn new() -> Self {
        Self { hash: 0, part: 0, length: 0, wide: false }
    }

    /// One more byte, in lower case.
    const fn push(&mut self, byte: u8) {
        if self.length > 0 && self.length.is_multiple_of(EXACT) {
            self.hash = mix(self.hash, self.part);
            self.part = 0;
        }
        self.part |= (byte as u64) << (8 * (self.length % EXACT));
        self.length += 1;
    }

    fn push_char(&mut self, c: char) {
        if c.is_ascii() || is_apostrophe(c) {
            let byte = u8::try_from(c).unwrap_or(b'\'');
            self.push(byte.to_ascii_lowercase());
            return;
        }
        self.wide = true;
        for lower in c.to_lowercase() {
            lower.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| self.push(byte));
        }
    }

    const fn key(&self) -> Key {
        if self.wide || self.length > EXACT {
            Key(mix(self.hash, self.part) | HASHED)
        } else {
            Key(self.part)
        }
    }
}

/// The apostrophe of typewriters and that of typographers.
pub(super) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’')
}

/// The key of ASCII letters, digits and apostrophes, at least one.
#[inline]
pub(super) fn of_ascii(bytes: &[u8], mut start: usize, end: usize) -> Key {
    let is_long = end - start > EXACT;
    let mut hash = 0;
    while end - start > EXACT {
        hash = mix(hash, eight(bytes, start) | LOWER);
        start += EXACT;
    }
    let only = u64::MAX >> (8 * (EXACT - (end - start)));
    let last = (eight(bytes, start) | LOWER) & only;
    if is_long { Key(mix(hash, last) | HASHED) } else { Key(last) }
}

/// Eight bytes from there, the first one lowest; zeros behind the end.
#[inline]
fn eight(bytes: &[u8], at: usize) -> u64 {
    let rest = &bytes[at..];
    if let Some(whole) = rest.first_chunk::<EXACT>() {
        return u64::from_le_bytes(*whole);
    }
    rest.iter().rev().fold(0, |part, byte| part << 8 | u64::from(*byte))
}

/// The word that a text begins with: its key, its length in bytes, and whether there is an
/// apostrophe in it. No key and the length of what is there instead, where it begins with none.
///
/// An apostrophe belongs to a word where letters are on both sides.
#[inline(never)]
pub(super) fn scan(text: &str) -> (Option<Key>, usize, bool) {
    let (mut builder, mut apostrophe, mut length) = (Builder::new(), false, 0);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if is_apostrophe(c) {
            if length == 0 || !rest.clone().next().is_some_and(char::is_alphanumeric) {
                break;
            }
            apostrophe = true;
        } else if !c.is_alphanumeric() {
            break;
        }
        builder.push_char(c);
        length += c.len_utf8();
    }
    if length == 0 {
        return (None, text.chars().next().map_or(1, char::len_utf8), false);
    }
    (Some(builder.key()), length, apostrophe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_word_without_its_case() {
        for (one, other) in [
            ("don't", "DON’T"),
            ("shouldn’t", "Shouldn't"),
            ("été", "ÉTÉ"),
            ("internationalisation", "InternationalisatioN"),
        ] {
            assert_eq!(Key::of(one), Key::of(other), "{one} {other}");
        }
        assert_eq!(Key::of("TY"), const { Key::ascii("ty") });
        assert_eq!(Key::of("needn’t've"), Key::ascii("needn't've"));
        // The Kelvin sign is no k, and longer words differ from what they begin with.
        for (one, other) in [("ty", "type"), ("thank", "than\u{212a}"), ("abcdefgh", "abcdefghi")] {
            assert_ne!(Key::of(one), Key::of(other), "{one} {other}");
        }
    }
}
