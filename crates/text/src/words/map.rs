//! A table of known words, made at compile time.

use super::Key;
use super::key::GOLDEN;

/// Something for each of some words. `N` is a power of two, and so much larger than their number
/// that each has a place of its own.
#[derive(Debug)]
pub struct WordMap<T: 'static, const N: usize> {
    keys: [Key; N],
    values: [Option<T>; N],
    factor: u64,
}

impl<T: Copy, const N: usize> WordMap<T, N> {
    /// A table of words of lower-case ASCII.
    ///
    /// # Panics
    /// Where `N` is too small or no power of two, and where a word is there twice.
    pub const fn new(words: &[(&str, T)]) -> Self {
        assert!(N.is_power_of_two() && N > 1, "a table has a power of two places");
        let mut factor = GOLDEN;
        let mut tries = 0;
        while tries < 10_000 {
            if let Some(map) = Self::with_factor(words, factor) {
                return map;
            }
            factor = factor.wrapping_mul(GOLDEN);
            tries += 1;
        }
        panic!("the table is too small, or a word is there twice");
    }

    /// The table, if no two words have the same place.
    const fn with_factor(words: &[(&str, T)], factor: u64) -> Option<Self> {
        let (mut keys, mut values) = ([Key::NONE; N], [None; N]);
        let mut number = 0;
        while number < words.len() {
            let (word, value) = words[number];
            let key = Key::ascii(word);
            let place = key.place(factor, N);
            if values[place].is_some() {
                return None;
            }
            keys[place] = key;
            values[place] = Some(value);
            number += 1;
        }
        Some(Self { keys, values, factor })
    }

    /// Whether a word is among them.
    #[inline]
    pub fn contains(&self, key: Key) -> bool {
        self.keys[key.place(self.factor, N)] == key
    }

    /// What belongs to a word.
    #[inline]
    pub fn get(&self, key: Key) -> Option<T> {
        let place = key.place(self.factor, N);
        if self.keys[place] == key { self.values[place] } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_are_found() {
        static NUMBERS: WordMap<u8, 16> =
            WordMap::new(&[("one", 1), ("two", 2), ("three", 3), ("thirty'four", 34)]);
        for (word, number) in [
            ("One", Some(1)),
            ("two", Some(2)),
            ("THREE", Some(3)),
            ("thirty’four", Some(34)),
            ("four", None),
            ("", None),
        ] {
            assert_eq!(NUMBERS.get(Key::of(word)), number, "{word}");
        }
    }
}
