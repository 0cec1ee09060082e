//! Waiting for whoever wants the process to end.

use tokio::sync::watch;

use super::eprint;
use super::failure::Failure;
use crate::exit::Exit;

/// Ends when somebody wants the process to end: Ctrl-C, SIGTERM, or SIGHUP, unless the process was
/// started to survive that (`nohup`).
#[cfg(unix)]
pub(super) fn interruption() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|error| Failure::setup(anyhow::anyhow!(error)));
    let mut interrupted = listen(SignalKind::interrupt())?;
    let mut terminated = listen(SignalKind::terminate())?;
    let survives = survives_hangup();
    let mut hung_up = if survives { None } else { Some(listen(SignalKind::hangup())?) };
    Ok(async move {
        let hung_up = async {
            match &mut hung_up {
                Some(hung_up) => hung_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
            _ = hung_up => {}
        }
    })
}

/// Whether SIGHUP was ignored when the process began. To listen for it once takes that away, so
/// that it is looked up once.
#[cfg(unix)]
fn survives_hangup() -> bool {
    static SURVIVES: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *SURVIVES.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        // Signal 1 is the lowest bit.
        ignored.is_some_and(|mask| mask & 1 == 1)
    })
}

/// Ends when somebody wants the process to end: Ctrl-C.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "on other systems it can fail")]
pub(super) fn interruption() -> Result<impl Future<Output = ()>, Failure> {
    Ok(async {
        // Without signals there is nobody who could end it.
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// Turns true at the first Ctrl-C, SIGTERM or SIGHUP; the second one ends the process at once.
pub(super) fn cancel_on_interrupt() -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        let Ok(first) = interruption() else { return };
        first.await;
        eprint("\ninterrupted: closing what runs; once more to stop at once\n");
        // Without a receiver the run is over already.
        let _ = sender.send(true);
        let Ok(second) = interruption() else { return };
        second.await;
        #[expect(clippy::exit, reason = "the user asked twice; nothing is left to lose")]
        std::process::exit(Exit::Interrupted as i32);
    });
    receiver
}
