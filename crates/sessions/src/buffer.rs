//! A buffer that the next file of the same thread uses again: memory that is fresh from the system
//! costs more to touch than a file costs to copy into it.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// A larger one is not kept.
const LARGEST: usize = 32 * 1024 * 1024;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Bytes with room. What is in a new one is left from its last use.
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    /// The one that was used last, or an empty one.
    pub(super) fn new() -> Self {
        Self(SPARE.take())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.0.capacity() <= LARGEST {
            SPARE.set(std::mem::take(&mut self.0));
        }
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}
