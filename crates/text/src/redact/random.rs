//! Detection of randomly generated values, as opposed to words, paths, version names and times.

/// Minimum number of characters of a random value.
const MIN_VALUE: usize = 16;
/// Minimum number of characters of a segment between separators to count as random.
const MIN_MIXED: usize = 10;

/// Returns the Shannon entropy of a text in bits per byte.
pub(super) fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    let bits = |count: u32| {
        let share = f64::from(count) / length;
        -share * share.log2()
    };
    counts.into_iter().filter(|count| *count > 0).map(bits).sum()
}

/// Returns true if a value looks random. Under a bare `key`, digests and UUIDs are excluded,
/// because the value may be an entry's key.
pub(super) fn is_random(value: &str, least_entropy: f64, is_bare_key: bool) -> bool {
    let value = value.trim_end_matches(['.', '!', '%', '@', '-']);
    if value.len() < MIN_VALUE || value.starts_with(['/', '.', '@', '%', '-']) {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    if digits < 2 || letters < 2 || entropy(value) < least_entropy {
        return false;
    }
    let is_path = value.bytes().filter(|byte| *byte == b'/').count() > 1 && value.contains('.');
    if is_path || is_identifier(value) || (is_bare_key && (is_digest(value) || is_uuid(value))) {
        return false;
    }
    let is_mixed = |part: &str| {
        let is = |test: fn(&u8) -> bool| part.as_bytes().iter().any(test);
        part.len() >= MIN_MIXED && is(u8::is_ascii_digit) && is(u8::is_ascii_alphabetic)
    };
    value.split(['.', '/', '_', '-', ':', '%', '@', '!']).any(is_mixed)
}

/// Returns true if a value consists of words with numbers between them: `utf8Decoder2`,
/// `sessionToken1234`. Random values change case more often than words do.
fn is_identifier(value: &str) -> bool {
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let runs = value.split(|c: char| !c.is_ascii_alphabetic());
    let in_words: usize =
        runs.flat_map(split_humps).filter(|word| is_word(word)).map(str::len).sum();
    in_words * 10 >= letters * 7
}

/// Splits a name at its camel-case humps.
fn split_humps(run: &str) -> Vec<&str> {
    let bytes = run.as_bytes();
    let mut words = Vec::new();
    let mut start = 0;
    for at in 1..bytes.len() {
        if bytes[at - 1].is_ascii_lowercase() && bytes[at].is_ascii_uppercase() {
            words.push(&run[start..at]);
            start = at;
        }
    }
    words.push(&run[start..]);
    words
}

/// Returns true if letters look pronounceable: some vowels, and capitals only at the start or
/// throughout.
fn is_word(word: &str) -> bool {
    let vowels = word.bytes().filter(|byte| b"aeiouyAEIOUY".contains(byte)).count();
    let rest = word.as_bytes().get(1..).unwrap_or_default();
    let is_even = rest.iter().all(u8::is_ascii_lowercase)
        || word.bytes().all(|byte| byte.is_ascii_uppercase());
    word.len() >= 3 && is_even && vowels * 5 >= word.len() && vowels * 5 <= word.len() * 4
}

/// Returns true for hexadecimal values with the length of a common digest.
fn is_digest(value: &str) -> bool {
    matches!(value.len(), 32 | 40 | 56 | 64 | 96 | 128)
        && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_uuid(value: &str) -> bool {
    let lengths: Vec<usize> = value.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropies() {
        assert!(entropy("aaaa").abs() < 1e-9);
        assert!((entropy("abcd") - 2.0).abs() < 1e-9);
        assert!(entropy("9f86d081884c7d659a2feaa0c55ad015") > 3.3);
    }

    #[test]
    fn keys_are_random_and_names_are_not() {
        for value in [
            "k3Jd82mQpL0xZt7Rw5Yv",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "dGhpc2lzYTMydGVzdGtleTEyMzQ1Njc4OQ==",
            "3f2c9a7e-1b4d-4c8e-9f0a-6d5b2e8c7a41",
        ] {
            assert!(is_random(value, 3.3, false), "{value}");
        }
        for value in [
            "claude-3-5-sonnet-20241022",
            "src/command/setup.rs:120",
            "getUserTokenById2024_11",
            "2026-11-21T20-11-59Z",
            "aaaaaaaaaaaaaaaa1111",
            "short1a2b",
            "internationalization22",
        ] {
            assert!(!is_random(value, 3.3, false), "{value}");
        }
        assert!(!is_random("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", 3.3, true), "a digest");
    }
}
