//! Cache for redacted versions of texts that many calls share, such as instructions and files shown
//! to an assistant.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of cached texts; more than there are roles with instructions.
const MAX_ENTRIES: usize = 16;
/// Minimum length in bytes of a text to cache.
const MIN_BYTES: usize = 512;

/// Cached texts with their results, most recently used first.
#[derive(Default)]
pub(crate) struct RedactionCache(Mutex<VecDeque<(Arc<str>, Arc<str>)>>);

impl RedactionCache {
    /// Returns the result of `make` for a text, from the cache if possible.
    pub(crate) fn get_or_insert_with(
        &self,
        text: &Arc<str>,
        make: impl FnOnce(&str) -> Cow<'_, str>,
    ) -> Arc<str> {
        let make = || match make(text) {
            // Unchanged: the text is shared instead of copied.
            Cow::Borrowed(same) if same.len() == text.len() => Arc::clone(text),
            made => made.into(),
        };
        if text.len() < MIN_BYTES {
            return make();
        }
        if let Some(made) = self.get(text) {
            return made;
        }
        let made = make();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.truncate(MAX_ENTRIES - 1);
        held.push_front((Arc::clone(text), Arc::clone(&made)));
        made
    }

    fn get(&self, text: &Arc<str>) -> Option<Arc<str>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = held.iter().position(|(known, _)| known == text)?;
        let found = held.remove(at)?;
        let made = Arc::clone(&found.1);
        held.push_front(found);
        Some(made)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn long(word: &str) -> Arc<str> {
        word.repeat(MIN_BYTES).into()
    }

    #[test]
    fn a_text_that_comes_again_is_made_once_and_shared() {
        let (texts, times) = (RedactionCache::default(), Cell::new(0));
        let made = |text: &Arc<str>| {
            texts.get_or_insert_with(text, |text| {
                times.set(times.get() + 1);
                if text.starts_with('s') { text.replace('s', "*").into() } else { text.into() }
            })
        };
        let (plain, secret) = (made(&long("a")), made(&long("s")));
        assert_eq!((&*plain, &*secret), (&*long("a"), &*long("*")));
        // Other texts come in between, once each.
        for word in ["b", "c", "d"] {
            made(&long(word));
            assert!(Arc::ptr_eq(&made(&long("a")), &plain));
            assert!(Arc::ptr_eq(&made(&long("s")), &secret));
        }
        assert_eq!(times.get(), 5);
        assert_eq!(made(&"s".into()), "*".into());
    }

    #[test]
    fn what_has_not_come_for_long_is_let_go() {
        let texts = RedactionCache::default();
        for number in 0..100 {
            texts.get_or_insert_with(&long(&number.to_string()), |text| text.into());
        }
        assert_eq!(texts.0.lock().unwrap().len(), MAX_ENTRIES);
    }
}
