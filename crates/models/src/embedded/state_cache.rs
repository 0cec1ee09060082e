//! Key-value states of prompt prefixes: in memory for recent ones, so that each is decoded only once,
//! and on disk for judge rubrics, because decoding a rubric takes seconds on a small machine.
//!
//! Only states of this program's own texts are stored on disk, never project text or answers. A
//! truncated, foreign or outdated file is ignored.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::llama::{ContextState, Token};
use crate::model_files::file_stamp;

/// Name of the folder in the cache folder.
const STATES_FOLDER: &str = "states";
/// Maximum number of files; the oldest are removed first.
const MAX_FILES: usize = 8;
/// Maximum size in bytes of a stored state.
const MAX_FILE_BYTES: usize = 256 << 20;
/// Header of each file: format and program version.
const MAGIC: &[u8] = concat!("selftest state 1 ", env!("CARGO_PKG_VERSION"), "\n").as_bytes();
const DIGEST_BYTES: usize = 32;

/// Cached states for one weights file.
pub(super) struct StateCache {
    folder: PathBuf,
    /// Identity of weights and context. `None` if it cannot be determined, which disables the
    /// cache.
    weights: Option<String>,
}

impl StateCache {
    /// Creates a cache for these weights and this context size. Performs no I/O except for reading
    /// metadata.
    pub(super) fn new(weights: &Path, cache: &Path, context_tokens: usize) -> Self {
        // The size of the context is part of the key: a state is only restored into a context like
        // the one that it was saved from.
        let weights = file_stamp(weights).map(|stamp| format!("{stamp} {context_tokens}"));
        Self { folder: cache.join(STATES_FOLDER), weights }
    }

    /// Loads the state after exactly this prefix.
    pub(super) fn load(&self, prefix: &[Token]) -> Option<ContextState> {
        let bytes = fs::read(self.file(prefix)?).ok()?;
        let rest = bytes.strip_prefix(MAGIC)?;
        let (digest, state) = rest.split_at_checked(DIGEST_BYTES)?;
        // Detects truncated and corrupted files.
        (Sha256::digest(state).as_slice() == digest)
            .then(|| ContextState::from_bytes(state.to_vec()))
    }

    /// Saves a state. On failure, the next run decodes the prefix again.
    pub(super) fn save(&self, prefix: &[Token], state: &ContextState) {
        let Some(file) = self.file(prefix).filter(|_| state.size() <= MAX_FILE_BYTES) else {
            return;
        };
        let content = [MAGIC, &Sha256::digest(state.as_bytes()), state.as_bytes()].concat();
        // Written under a temporary name first, so that readers never see a partial file.
        let part = file.with_extension(format!("{}.part", std::process::id()));
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&part, content))
            .and_then(|()| fs::rename(&part, &file));
        if written.is_err() {
            let _ = fs::remove_file(part);
        }
        self.prune();
    }

    fn file(&self, prefix: &[Token]) -> Option<PathBuf> {
        let mut key = Sha256::new();
        key.update(self.weights.as_ref()?);
        for token in prefix {
            key.update(token.to_le_bytes());
        }
        Some(self.folder.join(format!("{}.state", selftest_text::digest::hex(&key.finalize()))))
    }

    fn prune(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort_unstable();
        for (_, file) in files.iter().rev().skip(MAX_FILES) {
            let _ = fs::remove_file(file);
        }
    }
}

/// Maximum number of states: generator, system under test and judge alternate, plus one spare.
const MAX_PREFIXES: usize = 4;
/// Maximum total size in bytes; the newest state is kept regardless of its size.
const MAX_MEMORY_BYTES: usize = 512 << 20;

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
            || (self.states.len() > 1 && self.bytes() > MAX_MEMORY_BYTES)
        {
            self.states.remove(0);
        }
    }

    fn bytes(&self) -> usize {
        self.states.iter().map(|(_, state)| state.size()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_for_its_own_weights_and_prefix_only() {
        let folder = tempfile::tempdir().unwrap();
        let weights = folder.path().join("x.gguf");
        fs::write(&weights, "weights").unwrap();
        let states = StateCache::new(&weights, folder.path(), 2048);
        states.save(&[1, 2], &ContextState::from_bytes(vec![7; 100]));
        assert_eq!(states.load(&[1, 2]).unwrap().as_bytes(), [7; 100]);
        assert!(states.load(&[1, 3]).is_none());
        assert!(StateCache::new(&weights, folder.path(), 4096).load(&[1, 2]).is_none());
        fs::write(&weights, "other weights").unwrap();
        assert!(StateCache::new(&weights, folder.path(), 2048).load(&[1, 2]).is_none());
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let weights = folder.path().join("x.gguf");
        fs::write(&weights, "weights").unwrap();
        let states = StateCache::new(&weights, folder.path(), 2048);
        for prefix in 0..20 {
            states.save(&[prefix], &ContextState::from_bytes(vec![7; 100]));
        }
        assert_eq!(fs::read_dir(&states.folder).unwrap().count(), MAX_FILES);
        let file = states.file(&[19]).unwrap();
        let whole = fs::read(&file).unwrap();
        for damaged in [&whole[..whole.len() - 1], &whole[1..], b""] {
            fs::write(&file, damaged).unwrap();
            assert!(states.load(&[19]).is_none());
        }
    }
}
