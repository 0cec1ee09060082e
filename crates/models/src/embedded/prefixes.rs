//! Key-value states of the prompt prefixes used last, so that each is decoded once.

use super::llama::{State, Token};

/// Generator, system under test and judge alternate, and one more may come.
const MAX_PREFIXES: usize = 4;
/// Bytes for all states together; the newest is kept whatever its size.
const MAX_BYTES: usize = 512 << 20;

/// The states, the one used last at the end.
#[derive(Default)]
pub(super) struct Prefixes {
    held: Vec<(Vec<Token>, State)>,
}

impl Prefixes {
    /// The state of exactly this prefix.
    pub(super) fn get(&mut self, prefix: &[Token]) -> Option<&State> {
        let place = self.held.iter().position(|(tokens, _)| tokens == prefix)?;
        let entry = self.held.remove(place);
        self.held.push(entry);
        self.held.last().map(|(_, state)| state)
    }

    /// Keeps a state, at the cost of those unused for longest.
    pub(super) fn insert(&mut self, prefix: Vec<Token>, state: State) {
        self.held.retain(|(tokens, _)| *tokens != prefix);
        self.held.push((prefix, state));
        while self.held.len() > MAX_PREFIXES || (self.held.len() > 1 && self.bytes() > MAX_BYTES) {
            self.held.remove(0);
        }
    }

    fn bytes(&self) -> usize {
        self.held.iter().map(|(_, state)| state.bytes()).sum()
    }
}
