//! How a server starts and ends, and connections that say nothing or half of something.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::site::{Site, graded};
use crate::workspace::Workspace;

/// Opens a connection and sends the beginning of a request.
fn half_sent(site: &Site) -> TcpStream {
    let mut stream = TcpStream::connect(&site.address).unwrap();
    stream.write_all(b"GET /api/sessions HTTP/1.1\r\nHost: ").unwrap();
    stream
}

/// Whether the other side has closed it.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    matches!(stream.read(&mut [0; 16]), Ok(0))
        || stream.write_all(b"x").and_then(|()| stream.flush()).is_err()
}

/// As many descriptors as this process may have.
#[cfg(unix)]
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// Issue I: 1,100 of them stopped the server.
#[cfg(unix)]
#[test]
fn half_sent_requests_keep_nobody_out() {
    // The server has as many as systems give by default.
    let limited = ["sh", "-c", "ulimit -n 1024; exec \"$@\"", "sh"];
    let site = Site::start(graded().within(limited));
    raise_descriptors();
    let mut held = Vec::new();
    for number in 0..1_100 {
        held.push(half_sent(&site));
        if number % 100 == 99 {
            let started = Instant::now();
            site.get("/api/sessions").json();
            assert!(
                started.elapsed() < Duration::from_secs(2),
                "{number}: {:?}",
                started.elapsed()
            );
        }
    }
    site.get("/sessions").status(200);
    assert!(is_closed(&mut held[0]), "the oldest have given way");
    let last = held.last_mut().unwrap();
    // It is whole now, and answered like any other.
    last.write_all(format!("{}\r\nConnection: close\r\n\r\n", site.address).as_bytes()).unwrap();
    last.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn as_many_connections_as_are_allowed_are_open() {
    let site = Site::with(graded(), &["--max-connections", "2"]);
    let [mut first, mut second, mut third] = [(); 3].map(|()| half_sent(&site));
    let started = Instant::now();
    while !is_closed(&mut first) {
        assert!(started.elapsed() < Duration::from_secs(5), "the oldest gives way at once");
    }
    assert!(!is_closed(&mut second) && !is_closed(&mut third));
    site.get("/healthz").status(200);
}

/// A connection over which nothing comes, and one over which half a request came, are closed.
#[test]
fn silence_ends_a_connection() {
    let site = Site::start(graded());
    let (mut half, mut silent) = (half_sent(&site), TcpStream::connect(&site.address).unwrap());
    let mut kept = TcpStream::connect(&site.address).unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
    kept.write_all(request.as_bytes()).unwrap();
    let started = Instant::now();
    for stream in [&mut half, &mut silent, &mut kept] {
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    let elapsed = started.elapsed();
    let expected = Duration::from_secs(14)..Duration::from_secs(30);
    assert!(expected.contains(&elapsed), "{elapsed:?}");
}

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
