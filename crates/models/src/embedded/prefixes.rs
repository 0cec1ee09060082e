//! Caches key-value states for recent prompt prefixes, so that each is decoded only once.

use super::llama::{State, Token};

/// Maximum number of states: generator, system under test and judge alternate, plus one spare.
const MAX_PREFIXES: usize = 4;
/// Maximum total size in bytes; the newest state is kept regardless of its size.
const MAX_BYTES: usize = 512 << 20;

/// Cached states in order of use, the most recent last.
#[derive(Default)]
pub(super) struct Prefixes {
    held: Vec<(Vec<Token>, State)>,
}

impl Prefixes {
    /// Returns the state for exactly this prefix.
    pub(super) fn get(&mut self, prefix: &[Token]) -> Option<&State> {
        let place = self.held.iter().position(|(tokens, _)| tokens == prefix)?;
        let entry = self.held.remove(place);
        self.held.push(entry);
        self.held.last().map(|(_, state)| state)
    }

    /// Inserts a state and evicts the least recently used ones.
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
