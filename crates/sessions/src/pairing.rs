//! Pairs results with calls by id, in whatever order they come. Memory is that of the open calls.

use std::collections::HashMap;

use super::event::Event;

/// Calls beyond this many that never get a result are forgotten: a foreign file must not fill
/// the memory.
const MAX_OPEN: usize = 10_000;

/// Calls that wait for their result, in order of the call.
#[derive(Default)]
pub(super) struct Pairing {
    open: HashMap<String, (u64, String)>,
    calls: u64,
}

impl Pairing {
    /// Notes the calls of an event, and names the tools of its results.
    pub(super) fn pair(&mut self, event: &mut Event<'_>) {
        for call in &event.calls {
            self.calls += 1;
            // A call without id can not be paired; its result stands for itself.
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

    /// Id and tool of the calls without result, in order of the call.
    pub(super) fn open_calls(&mut self) -> Vec<(String, String)> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(_, (order, _))| *order);
        open.into_iter().map(|(id, (_, name))| (id, name)).collect()
    }
}
