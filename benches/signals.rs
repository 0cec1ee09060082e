//! How many messages a second are classified on one core: `cargo bench --bench signals`.
//!
//! Made-up messages as long as those that people typed in recorded sessions, each compared with
//! the one before it. Ends with an error below the limit.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]

mod measurements;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use measurements::Measurements;
use selftest_grading::signal::classify_signals;

/// They fit into the cache of one core, as a message does that was just read.
const MESSAGES: u32 = 2000;
const ROUNDS: usize = 1000;
/// Messages a second.
const LIMIT: f64 = 200_000.0;

/// Bytes of recorded messages: the ends of the ten tenths of 107 that people typed
/// (`docs/maintain-skills.md`), the last one without the longest message.
const LENGTHS: [usize; 11] = [2, 13, 34, 60, 74, 97, 122, 183, 335, 1041, 9744];

/// Half of all words are among these; the others are made up. As in recorded messages, one in a
/// hundred is the cue of a remark, and one in eight does not count for repetition.
const WORDS: [&str; 40] = [
    "the",
    "to",
    "a",
    "and",
    "I",
    "you",
    "in",
    "we",
    "it",
    "this",
    "can",
    "for",
    "is",
    "of",
    "with",
    "that",
    "test",
    "me",
    "use",
    "be",
    "from",
    "please",
    "but",
    "have",
    "run",
    "not",
    "so",
    "do",
    "don't",
    "on",
    "or",
    "are",
    "agent",
    "file:",
    "no,",
    "src/main.rs",
    "config.yaml",
    "`parse`",
    "2.0.1",
    "it.",
];
const SYLLABLES: [&str; 16] = [
    "con", "fig", "re", "ad", "ver", "si", "on", "ta", "ble", "par", "se", "in", "dex", "mo", "du",
    "le",
];

/// One message in ten holds one of these.
const REMARKS: [&str; 6] = [
    "Thanks, that works!",
    "Perfect. ",
    "No, that’s not what I asked for.",
    "it would be nice to have",
    "thanks but it still fails",
    "Ugh, seriously?",
];

fn main() -> ExitCode {
    let mut random = Random(2);
    let messages: Vec<String> = (0..MESSAGES).map(|_| message(&mut random)).collect();
    let bytes: usize = messages.iter().map(String::len).sum();
    println!(
        "{MESSAGES} messages, {} bytes on average, each with the one before it; best of {ROUNDS} \
         rounds on one core",
        bytes / messages.len()
    );
    let mut best = f64::INFINITY;
    let mut counts = [0_u32; 3];
    for _ in 0..ROUNDS {
        counts = [0; 3];
        let started = Instant::now();
        let mut previous = None;
        for message in &messages {
            let signals = black_box(classify_signals(black_box(message), previous, None));
            counts[0] += u32::from(signals.gratitude);
            counts[1] += u32::from(signals.repetition == Some(true));
            counts[2] += u32::from(signals.frustration);
            previous = Some(message.as_str());
        }
        best = best.min(started.elapsed().as_secs_f64());
    }
    let rate = f64::from(MESSAGES) / best;
    println!("gratitude {}, repetition {}, frustration {}", counts[0], counts[1], counts[2]);
    let mut rows = Measurements::of("signals");
    rows.add("messages classified, one core", rate, "a second", LIMIT..);
    rows.finish()
}

/// A message of words that real ones have.
fn message(random: &mut Random) -> String {
    let tenth = random.below(LENGTHS.len() - 1);
    let length = LENGTHS[tenth] + random.below(LENGTHS[tenth + 1] - LENGTHS[tenth]);
    let mut text = String::new();
    if random.below(10) == 0 {
        text.push_str(REMARKS[random.below(REMARKS.len())]);
    }
    while text.len() < length {
        text.push_str(if random.below(12) == 0 { "\n" } else { " " });
        if random.below(2) == 0 {
            text.push_str(WORDS[random.below(WORDS.len())]);
        } else {
            (0..=random.below(4)).for_each(|_| text.push_str(SYLLABLES[random.below(16)]));
        }
    }
    text
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    /// 0 up to and without `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap_or_default()
    }
}
