//! Delivers the events of a run to observers on a separate thread, so that no observer slows the
//! run.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::event::{EventLog, Observer, ObserverError, RunEvent, RunEventKind};

/// Delay in which events are collected, so that a burst wakes the observers only once.
const BATCH_DELAY: Duration = Duration::from_millis(5);

/// Interval after which observers flush while no event arrives.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// The sender of a run's events.
#[derive(Clone)]
pub struct EventSender {
    sender: Sender<RunEvent>,
    started: Instant,
    log: Option<Arc<dyn EventLog>>,
}

impl EventSender {
    /// Returns the same sender with a log that records each event before observers receive it.
    #[must_use]
    pub fn with_log(self, log: Arc<dyn EventLog>) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Emits an event. If all observers are gone, it is dropped.
    pub fn emit(&self, kind: RunEventKind) {
        if let Some(log) = &self.log {
            // The journal comes first: what an observer has shown must survive a crash.
            log.record(&kind);
        }
        let _ = self.sender.send(RunEvent { elapsed: self.started.elapsed(), kind });
    }
}

/// The thread that delivers events. It ends when every [`EventSender`] is dropped.
pub struct ObserverThread {
    thread: JoinHandle<Vec<String>>,
}

/// Starts the thread.
pub fn spawn_observers(observers: Vec<Box<dyn Observer>>) -> (EventSender, ObserverThread) {
    // Unbounded, so that a case never waits for a slow observer.
    let (sender, receiver) = channel();
    let thread = std::thread::spawn(move || EventDelivery::new(observers).run(&receiver));
    (EventSender { sender, started: Instant::now(), log: None }, ObserverThread { thread })
}

impl ObserverThread {
    /// Waits until everything is delivered and returns the errors of observers, without duplicates.
    pub fn finish(self) -> Vec<String> {
        // Cuts the collecting delay short.
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_else(|_| vec!["an observer panicked".to_owned()])
    }
}

struct EventDelivery {
    observers: Vec<Box<dyn Observer>>,
    faults: Vec<String>,
}

impl EventDelivery {
    fn new(observers: Vec<Box<dyn Observer>>) -> Self {
        Self { observers, faults: Vec::new() }
    }

    fn run(mut self, receiver: &Receiver<RunEvent>) -> Vec<String> {
        loop {
            let mut next = receiver.recv_timeout(FLUSH_INTERVAL);
            while let Ok(event) = next {
                self.deliver(&event);
                next = receiver.try_recv().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                });
            }
            if let Err(RecvTimeoutError::Disconnected) = next {
                self.each(|observer| observer.flush(true));
                return self.faults;
            }
            // Flushed once per burst. A report is rewritten as a whole, so that a flush per event
            // would make a run of many cases quadratic.
            self.each(|observer| observer.flush(false));
            // Parked instead of slept, so that `finish` can end the delay.
            std::thread::park_timeout(BATCH_DELAY);
        }
    }

    fn deliver(&mut self, event: &RunEvent) {
        self.each(|observer| observer.on_event(event));
    }

    /// Calls every observer. A failure is recorded and reported to all observers as a warning; they
    /// all continue.
    fn each(&mut self, action: impl Fn(&mut dyn Observer) -> Result<(), ObserverError>) {
        let mut news = Vec::new();
        for observer in &mut self.observers {
            // The same error is reported only once.
            if let Err(ObserverError(fault)) = action(&mut **observer)
                && !self.faults.contains(&fault)
            {
                self.faults.push(fault.clone());
                news.push(fault);
            }
        }
        for fault in news {
            let event = RunEvent { elapsed: Duration::ZERO, kind: RunEventKind::Warning(fault) };
            for observer in &mut self.observers {
                // An error while reporting an error is ignored.
                let _ = observer.on_event(&event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Broken;
    impl Observer for Broken {
        fn on_event(&mut self, _: &RunEvent) -> Result<(), ObserverError> {
            Err(ObserverError("disk full".into()))
        }
    }

    struct Counting(Arc<Mutex<(usize, usize)>>);
    impl Observer for Counting {
        fn on_event(&mut self, _: &RunEvent) -> Result<(), ObserverError> {
            self.0.lock().unwrap().0 += 1;
            Ok(())
        }
        fn flush(&mut self, last: bool) -> Result<(), ObserverError> {
            self.0.lock().unwrap().1 += usize::from(last);
            Ok(())
        }
    }

    #[test]
    fn one_broken_observer_does_not_stop_the_others() {
        let seen = Arc::new(Mutex::new((0, 0)));
        let (events, observer_thread) =
            spawn_observers(vec![Box::new(Broken), Box::new(Counting(seen.clone()))]);
        for _ in 0..3 {
            events.emit(RunEventKind::Warning("x".into()));
        }
        drop(events);
        assert_eq!(observer_thread.finish(), ["disk full"]);
        assert_eq!(*seen.lock().unwrap(), (4, 1), "three events, the fault, one last flush");
    }
}
