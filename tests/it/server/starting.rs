//! Where a server starts and how it ends.

use super::site::{Site, graded};
use crate::workspace::Workspace;

#[test]
fn an_address_that_is_taken_is_named() {
    let site = Site::start(Workspace::new());
    let (_, port) = site.address.rsplit_once(':').unwrap();
    let run = Workspace::new().args(["serve", "--port", port]).run().exit(5);
    run.one_error(&["cannot listen on", &site.address]).stderr_contains("hint: use another port");
}

#[cfg(unix)]
#[test]
fn signals_end_it_in_order() {
    use rustix::process::Signal;
    for signal in [Signal::INT, Signal::TERM] {
        let site = Site::start(graded());
        site.get("/api/sessions").status(200);
        // A connection that is kept open does not keep the server alive.
        let idle = std::net::TcpStream::connect(&site.address).unwrap();
        let workspace = site.workspace.clone();
        let _ = site.into_running().signal(signal).wait().exit(0);
        drop(idle);
        assert!(
            !workspace.path(".selftest/selftest.db-wal").exists(),
            "the database is not closed"
        );
    }
}
