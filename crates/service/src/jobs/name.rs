//! The name of a worker in the database and in logs. Not kept between runs.

/// A name that no other worker has: machine, process, and something random, because a process
/// number comes back.
pub(super) fn fresh() -> String {
    #[cfg(unix)]
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let machine = std::env::var("COMPUTERNAME").unwrap_or_else(|_| "worker".to_owned());
    let machine = selftest_text::one_line(&machine, 100);
    format!("{machine}-{}-{:08x}", std::process::id(), rand::random::<u32>())
}
