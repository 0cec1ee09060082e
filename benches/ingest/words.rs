//! Numbers and texts of the corpus: the same for the same seed, everywhere. Texts are already
//! escaped for JSON.

/// `SplitMix64`.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 up to and without `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// Whether something happens that happens so often in a hundred.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// A length of a log-normal distribution, given by its median and its 90th percentile.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "lengths are positive and small"
    )]
    pub(crate) fn length(&mut self, Spread(median, p90, most): Spread) -> usize {
        // Twelve uniform numbers add up to nearly a normal one.
        let sum: f64 = (0..12).map(|_| (self.next() >> 11) as f64 / (1_u64 << 53) as f64).sum();
        let sigma = (p90 as f64 / median as f64).ln() / 1.2816;
        ((median as f64 * (sigma * (sum - 6.0)).exp()) as usize).clamp(1, most)
    }

    pub(crate) fn uuid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff
        )
    }
}

/// Median, 90th percentile and maximum of lengths in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Spread(pub(crate) usize, pub(crate) usize, pub(crate) usize);

const WORDS: [&str; 64] = [
    "the",
    "value",
    "of",
    "request",
    "is",
    "read",
    "from",
    "config",
    "and",
    "then",
    "cache",
    "module",
    "return",
    "self.items",
    "when",
    "list",
    "handler",
    "async",
    "result",
    "fn",
    "let",
    "update_state(",
    "const",
    "if",
    "else",
    "import",
    "for",
    "path.join(",
    "user",
    "token",
    "=",
    "=>",
    "{",
    "}",
    ");",
    "//",
    "test",
    "index",
    "a",
    "with",
    "parser",
    "field",
    "null",
    "0x1f",
    "42",
    "to",
    "in",
    "not",
    "this",
    "component",
    "event",
    "render(",
    "buffer",
    "src/lib/model.rs",
    "that",
    "export",
    "default",
    "interface",
    "props",
    "into",
    "server",
    "schema",
    "error",
    "line",
];

/// Sentences that the rules of grading look for, and some that only look so.
const SENTENCES: [&str; 12] = [
    "All tests pass and the change is done.",
    "The migration completed without problems.",
    "I was unable to reproduce it on this branch.",
    "Here is the summary of what changed.",
    "The build failed at first because of a missing import.",
    "The work is not finished yet.",
    "See https://example.org/docs/setup for the details.",
    "Output was saved to reports/latest.md.",
    "It could not be parsed, so I left it out.",
    "Shall I go on with the next file?",
    "```ts\\nexport const limit = 10;\\n```",
    "No tests failed after that \u{2713} and caf\u{e9} names are kept.",
];

/// Lines of which texts are made.
pub(crate) struct Pool {
    text: Vec<u8>,
    /// Beginnings of lines.
    lines: Vec<usize>,
}

impl Pool {
    /// Code and output of programs, or prose.
    pub(crate) fn new(seed: u64, is_prose: bool) -> Self {
        const BYTES: usize = 2_000_000;
        let mut random = Random(seed);
        let (mut text, mut lines) = (Vec::with_capacity(BYTES + 1000), Vec::new());
        while text.len() < BYTES {
            lines.push(text.len());
            if is_prose && random.percent(8) {
                text.extend_from_slice(random.pick(&SENTENCES).as_bytes());
            } else {
                let indent = if is_prose { 0 } else { random.below(4) };
                (0..indent).for_each(|_| text.extend_from_slice(b"    "));
                let words = if is_prose { 8 + random.below(20) } else { 2 + random.below(12) };
                for number in 0..words {
                    if number > 0 {
                        text.push(b' ');
                    }
                    let word = random.pick(&WORDS);
                    match random.below(40) {
                        0 => text.extend_from_slice(format!("\\\"{word}\\\"").as_bytes()),
                        1 if !is_prose => text.extend_from_slice(b"\\t"),
                        2 if !is_prose && number % 4 == 1 => {
                            text.extend_from_slice("\u{2192}".as_bytes());
                        }
                        _ => text.extend_from_slice(word.as_bytes()),
                    }
                }
            }
            text.extend_from_slice(b"\\n");
        }
        Self { text, lines }
    }

    /// Adds about so many bytes, ending with a whole line.
    pub(crate) fn add(&self, random: &mut Random, length: usize, out: &mut Vec<u8>) {
        let mut left = length;
        loop {
            let first = random.below(self.lines.len());
            let from = self.lines[first];
            let wanted = from + left;
            let last = self.lines.partition_point(|line| *line < wanted);
            let end = self.lines.get(last).copied().unwrap_or(self.text.len());
            out.extend_from_slice(&self.text[from..end]);
            if end - from >= left {
                break;
            }
            left -= end - from;
        }
        // Without the last line break.
        out.truncate(out.len() - 2);
    }
}

/// Base64 of nothing in particular.
pub(crate) fn base64(random: &mut Random, length: usize, out: &mut Vec<u8>) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for _ in 0..length.div_ceil(10) {
        let bits = random.next();
        out.extend(
            (0..10).map(|place| ALPHABET[usize::try_from((bits >> (6 * place)) & 63).unwrap()]),
        );
    }
}

/// JSON text once more escaped, for JSON inside of a string.
pub(crate) fn escaped(text: &[u8]) -> Vec<u8> {
    let mut twice = Vec::with_capacity(text.len() + text.len() / 16);
    for byte in text {
        if matches!(byte, b'\\' | b'"') {
            twice.push(b'\\');
        }
        twice.push(*byte);
    }
    twice
}
