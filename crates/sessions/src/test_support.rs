//! Helpers of the readers' tests, among them a property that all readers share: a fixture with
//! arbitrary damage is read without a panic, and the result keeps the invariants of the neutral
//! model.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::{Session, SessionCollector, SessionFormat, SessionSource, ToolOutcome, read, read_as};

/// A way to damage a file.
#[derive(Debug, Clone)]
enum Damage {
    Truncate(usize),
    Replace(usize, u8),
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
    Repeat(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let tokens = prop::sample::select(vec![
        &b"null"[..],
        b"{}",
        b"[]",
        b"\"",
        b",",
        b"\n",
        b"\\ud83d",
        b"\xff",
        b"-1",
        b"1e400",
        b"{\"role\":",
        b"[[[[",
    ]);
    prop_oneof![
        any::<usize>().prop_map(Damage::Truncate),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (any::<usize>(), tokens).prop_map(|(at, token)| Damage::Insert(at, token.to_vec())),
        (any::<usize>(), 1..40_usize).prop_map(|(at, count)| Damage::Remove(at, count)),
        (any::<usize>(), 1..400_usize).prop_map(|(at, count)| Damage::Repeat(at, count)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let place = |at: usize| at % (bytes.len() + 1);
        match *self {
            Damage::Truncate(at) => bytes.truncate(place(at)),
            Damage::Replace(at, byte) => {
                let at = place(at);
                if let Some(old) = bytes.get_mut(at) {
                    *old = byte;
                }
            }
            Damage::Insert(at, ref token) => {
                let at = place(at);
                bytes.splice(at..at, token.iter().copied());
            }
            Damage::Remove(at, count) => {
                let at = place(at);
                let end = (at + count).min(bytes.len());
                bytes.drain(at..end);
            }
            Damage::Repeat(at, count) => {
                let at = place(at);
                let end = (at + count).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
}

/// Reads damaged copies of a fixture in the given format.
pub(super) fn survives_damage(format: SessionFormat, fixture: &[u8]) {
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let damages = vec(damage(), 1..6);
    let result = runner.run(&damages, |damages| {
        let mut bytes = fixture.to_vec();
        for damage in damages {
            damage.apply(&mut bytes);
        }
        let mut collector = SessionCollector::default();
        let _ = read_as(format, &SessionSource::bytes("damaged.json", bytes), &mut collector);
        collector.into_sessions().iter().for_each(check);
        Ok(())
    });
    result.unwrap();
}

/// Checks the invariants of a session.
fn check(session: &Session) {
    assert!(!session.head.id.is_empty() && session.head.id.len() <= 210);
    assert!(!session.events.is_empty());
    for (number, event) in session.events.iter().enumerate() {
        assert_eq!(event.number, number as u64);
        assert!(event.text.len() < 40_000);
        assert!(event.results.iter().all(|result| result.text.len() < 40_000));
    }
    let pending = |event: &super::Event<'_>| {
        event.results.iter().any(|result| result.outcome == ToolOutcome::Pending)
    };
    let before_last = session.events.len() - 1;
    assert!(!session.events[..before_last].iter().any(pending), "pending before the end");
}

/// Reads a source, which must be of this format, with its only session.
#[track_caller]
pub(crate) fn only_session(format: SessionFormat, source: &SessionSource) -> Session {
    let mut collector = SessionCollector::default();
    let reading = read(source, &mut collector).unwrap();
    assert_eq!((reading.format, reading.sessions), (format, 1));
    collector.into_sessions().remove(0)
}
