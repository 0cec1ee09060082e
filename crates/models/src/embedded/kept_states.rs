//! Key-value states of a judge's rubric, kept on disk from run to run: a small machine reads a
//! rubric for seconds.
//!
//! Only texts of this program are kept, never what a project or an answer says. A file that is
//! torn, foreign or of other weights is as good as none.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::llama::{State, Token};
use crate::model_files::file_stamp;

/// Folder of the states in the cache folder.
const FOLDER: &str = "states";
/// Files kept; the oldest goes first.
const MAX_FILES: usize = 8;
/// Largest state that is written.
const MAX_BYTES: usize = 256 << 20;
/// Begins each file: format and program.
const MAGIC: &[u8] = concat!("selftest state 1 ", env!("CARGO_PKG_VERSION"), "\n").as_bytes();
const DIGEST_BYTES: usize = 32;

/// The states of one file of weights.
pub(super) struct KeptStates {
    folder: PathBuf,
    /// Identity of the weights and of the context; none where it cannot be had: nothing is kept.
    weights: Option<String>,
}

impl KeptStates {
    /// The states of these weights, in a context of so many tokens. Touches nothing.
    pub(super) fn of(weights: &Path, cache: &Path, context_tokens: usize) -> Self {
        let weights = file_stamp(weights).map(|stamp| format!("{stamp} {context_tokens}"));
        Self { folder: cache.join(FOLDER), weights }
    }

    /// The state after exactly this prefix.
    pub(super) fn load(&self, prefix: &[Token]) -> Option<State> {
        let bytes = fs::read(self.file(prefix)?).ok()?;
        let rest = bytes.strip_prefix(MAGIC)?;
        let (digest, state) = rest.split_at_checked(DIGEST_BYTES)?;
        (Sha256::digest(state).as_slice() == digest).then(|| State::from_bytes(state.to_vec()))
    }

    /// Keeps a state. Where the disk refuses, the next run decodes again.
    pub(super) fn save(&self, prefix: &[Token], state: &State) {
        let Some(file) = self.file(prefix).filter(|_| state.bytes() <= MAX_BYTES) else { return };
        let content = [MAGIC, &Sha256::digest(state.as_bytes()), state.as_bytes()].concat();
        // Under another name first: a reader finds a whole file or none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_for_its_own_weights_and_prefix_only() {
        let folder = tempfile::tempdir().unwrap();
        let weights = folder.path().join("x.gguf");
        fs::write(&weights, "weights").unwrap();
        let states = KeptStates::of(&weights, folder.path(), 2048);
        states.save(&[1, 2], &State::from_bytes(vec![7; 100]));
        assert_eq!(states.load(&[1, 2]).unwrap().as_bytes(), [7; 100]);
        assert!(states.load(&[1, 3]).is_none());
        assert!(KeptStates::of(&weights, folder.path(), 4096).load(&[1, 2]).is_none());
        fs::write(&weights, "other weights").unwrap();
        assert!(KeptStates::of(&weights, folder.path(), 2048).load(&[1, 2]).is_none());
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let weights = folder.path().join("x.gguf");
        fs::write(&weights, "weights").unwrap();
        let states = KeptStates::of(&weights, folder.path(), 2048);
        for prefix in 0..20 {
            states.save(&[prefix], &State::from_bytes(vec![7; 100]));
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
