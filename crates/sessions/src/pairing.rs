//! Pairs tool results with calls by id, in any order. Memory grows only with the number of open
//! calls.

use std::collections::HashMap;

use super::event::Event;

/// Maximum number of open calls; more are forgotten, so that an untrusted file cannot exhaust
/// memory.
const MAX_OPEN: usize = 10_000;

/// Calls that wait for their result, in call order.
#[derive(Default)]
pub(super) struct CallPairing {
    open: HashMap<String, (u64, String)>,
    calls: u64,
}

impl CallPairing {
    /// Records the calls of an event and fills in the tool names of its results.
    pub(super) fn pair(&mut self, event: &mut Event<'_>) {
        for call in &event.calls {
            self.calls += 1;
            // A call without an id cannot be paired; its result stands alone.
            if !call.id.is_empty() && self.open.len() < MAX_OPEN {
                let name = call.name.as_str().to_owned();
                self.open.insert(call.id.as_str().to_owned(), (self.calls, name));
            }
        }
        for result in &mut event.results {
            if let Some((_, name)) = self.open.remove(result.call_id.as_str())
                && result.tool.is_empty()
            {
                result.tool = name.into();
            }
        }
    }

    /// Returns id and tool of the calls without a result, in call order.
    pub(super) fn open_calls(&mut self) -> Vec<(String, String)> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(_, (order, _))| *order);
        open.into_iter().map(|(id, (_, name))| (id, name)).collect()
    }
}
