//! The threads of asynchronous commands.

use selftest_app::AppError;
use tokio::runtime::{Builder, Runtime};

/// Runs a command until it is done.
pub(crate) fn block_on<T>(
    command: impl Future<Output = Result<T, AppError>>,
) -> Result<T, AppError> {
    start()?.block_on(command)
}

/// Starts the threads.
pub(crate) fn start() -> Result<Runtime, AppError> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    let runtime = has_descriptors().and_then(|()| builder.build());
    runtime.map_err(|error| AppError::setup(anyhow::anyhow!("cannot start threads: {error}")))
}

/// Checks that enough files can be open: tokio panics if no descriptor is left for signals.
#[cfg(unix)]
fn has_descriptors() -> std::io::Result<()> {
    let files = std::iter::repeat_with(|| std::fs::File::open("/dev/null"));
    files.take(16).collect::<Result<Vec<_>, _>>().map(drop)
}

#[cfg(not(unix))]
fn has_descriptors() -> std::io::Result<()> {
    Ok(())
}
