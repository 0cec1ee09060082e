//! Names of workers in the database and in logs.

/// Returns a unique name: machine, process id, and a random number because process ids are reused.
pub(super) fn unique() -> String {
    #[cfg(unix)]
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let machine = std::env::var("COMPUTERNAME").unwrap_or_else(|_| "worker".to_owned());
    let machine = selftest_text::one_line(&machine, 100);
    format!("{machine}-{}-{:08x}", std::process::id(), rand::random::<u32>())
}
