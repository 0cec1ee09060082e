//! Caches key-value states for recent prompt prefixes, so that each is decoded only once.

use super::llama::{ContextState, Token};

/// Maximum number of states: generator, system under test and judge alternate, plus one spare.
const MAX_PREFIXES: usize = 4;
/// Maximum total size in bytes; the newest state is kept regardless of its size.
const MAX_BYTES: usize = 512 << 20;

/// Cached states in order of use, the most recent last.
#[derive(Default)]
pub(super) struct PrefixCache {
    states: Vec<(Vec<Token>, ContextState)>,
}

impl PrefixCache {
    /// Returns the state for exactly this prefix.
    pub(super) fn get(&mut self, prefix: &[Token]) -> Option<&ContextState> {
        let place = self.states.iter().position(|(tokens, _)| tokens == prefix)?;
        let entry = self.states.remove(place);
        self.states.push(entry);
        self.states.last().map(|(_, state)| state)
    }

    /// Inserts a state and evicts the least recently used ones.
    pub(super) fn insert(&mut self, prefix: Vec<Token>, state: ContextState) {
        self.states.retain(|(tokens, _)| *tokens != prefix);
        self.states.push((prefix, state));
        while self.states.len() > MAX_PREFIXES
            || (self.states.len() > 1 && self.bytes() > MAX_BYTES)
        {
            self.states.remove(0);
        }
    }

    fn bytes(&self) -> usize {
        self.states.iter().map(|(_, state)| state.size()).sum()
    }
}
