//! Waiting for whoever wants the process to end.

use super::failure::Failure;

/// Ends when somebody wants the process to end: Ctrl-C or SIGTERM.
#[cfg(unix)]
pub(super) fn interruption() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|error| Failure::setup(anyhow::anyhow!(error)));
    let mut interrupted = listen(SignalKind::interrupt())?;
    let mut terminated = listen(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
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
