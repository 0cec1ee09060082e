//! Holes 2 and 3: TCP in all its forms, UDP, and sockets of the file system.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use super::{has_namespaces, probe};
use crate::sut::world::World;

const TCP: [&str; 4] = ["tcp", "mptcp", "fast_open", "raw"];

#[tokio::test]
async fn without_a_port_there_is_no_network() {
    if !has_namespaces() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    probe(&World::agent(&[]), &TCP, &[("port", &port)])
        .await
        .all_refused()
        .noted(&[&format!("connection to 127.0.0.1:{port}"), "MPTCP"]);
    let port = datagrams.local_addr().unwrap().port().to_string();
    let names = ["udp", "udp_message", "vsock", "listen"];
    probe(&World::agent(&[]), &names, &[("port", &port), ("network", "own")]).await.all_refused();
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody came");
    datagrams.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(datagrams.recv(&mut [0; 8]).is_err(), "something came");
}

#[tokio::test]
async fn with_a_port_there_is_plain_tcp_to_it_alone() {
    if !has_namespaces() {
        return;
    }
    let [open, closed] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let world = || World::agent(&[]).set(|settings| settings.tcp_ports.push(port(&open)));
    let reached = probe(&world(), &["tcp"], &[("port", &port(&open).to_string())]).await;
    assert_eq!(reached.lines, ["tcp: done connected"]);
    let names = [&TCP[..], &["listen", "udp", "udp_message", "vsock"]].concat();
    probe(&world(), &names, &[("port", &port(&closed).to_string())]).await.all_refused().noted(&[
        "MPTCP",
        "listening",
        "connection to 127.0.0.1",
    ]);
    // The forms of TCP that pass over Landlock are closed for an open port too.
    let names = ["mptcp", "fast_open"];
    probe(&world(), &names, &[("port", &port(&open).to_string())]).await.all_refused();
}

#[tokio::test]
async fn sockets_outside_are_out_of_reach() {
    if !has_namespaces() {
        return;
    }
    let world = World::agent(&[]);
    let outside = world.outside("agent.sock");
    let inside = world.project().join("server.sock");
    for path in [&outside, &inside] {
        let listener = UnixListener::bind(path).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.read(&mut [0; 100]);
                let _ = stream.write_all(b"ran it");
            }
        });
    }
    let name = format!("selftest-probe-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    for path in [&outside, &inside] {
        let given = [("socket", path.to_str().unwrap()), ("abstract", name.as_str())];
        probe(&world, &["unix_path", "unix_abstract"], &given).await.all_refused();
    }
    // With a port the program has the machine's network, and its abstract sockets.
    let world = world.set(|settings| settings.tcp_ports.push(1));
    let given = [("abstract", name.as_str())];
    probe(&world, &["unix_abstract"], &given).await.all_refused().noted(&["the Unix socket @"]);
}
