//! Makes glibc's allocator share memory among threads. Other allocators are left alone.

#![expect(unsafe_code, reason = "the allocator's interface is C, and no library has it")]

/// So many parts, each with what it has freed and not given back. By itself glibc makes one for
/// nearly every thread, and each connection to SQLite and each reader of sessions is a thread.
const ARENAS: libc::c_int = 2;

/// Lets threads share memory that was freed: less of it is kept for threads that ask for none.
pub(super) fn share_memory() {
    // SAFETY: sets a number of the allocator, under its own lock.
    let done = unsafe { libc::mallopt(libc::M_ARENA_MAX, ARENAS) };
    if done == 0 {
        tracing::debug!("the allocator keeps memory for each thread");
    }
}
