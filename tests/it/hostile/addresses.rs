//! A program that may connect to one address tries all others, and all other ways.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use selftest_harness::sut::SystemUnderTest as _;

use super::{has_namespaces, probe};
use crate::sut::world::World;

/// Accepts each connection, and counts them.
pub(super) fn serve(address: SocketAddr, says: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap();
    let came = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&came);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || {
                let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
                if stream.read(&mut [0; 100]).is_ok_and(|read| read > 0) {
                    let _ = stream.write_all(says.as_bytes());
                }
            });
        }
    });
    (address, came)
}

/// A server that is listed, another machine with the same port, and the same machine with another.
struct Servers {
    listed: SocketAddr,
    others: [(SocketAddr, Arc<AtomicUsize>); 2],
    datagrams: UdpSocket,
}

const OTHER: &str = "127.0.0.2";

impl Servers {
    fn start() -> Self {
        // The port must be free on both machines, which all of 127.0.0.0/8 are.
        let (listed, other) = (0..100)
            .find_map(|_| {
                let (listed, _) = serve("127.0.0.1:0".parse().unwrap(), "listed");
                let other = SocketAddr::new(OTHER.parse().unwrap(), listed.port());
                let is_free = TcpListener::bind(other).is_ok();
                is_free.then(|| (listed, serve(other, "other")))
            })
            .unwrap();
        let closed = serve("127.0.0.1:0".parse().unwrap(), "closed");
        let datagrams = UdpSocket::bind(listed).unwrap();
        datagrams.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        Self { listed, others: [other, closed], datagrams }
    }

    fn given(&self) -> Vec<(&'static str, String)> {
        let port = |at: usize| self.others[at].0.port().to_string();
        vec![("port", port(0)), ("closed", port(1)), ("other", OTHER.to_owned())]
    }

    /// Asserts that no connection and no packet arrived, by TCP or UDP.
    #[track_caller]
    fn assert_alone(&self) {
        for (address, came) in &self.others {
            assert_eq!(came.load(Ordering::SeqCst), 0, "somebody came to {address}");
        }
        assert!(self.datagrams.recv(&mut [0; 8]).is_err(), "a datagram came");
    }
}

fn world(address: &str) -> World {
    let address = address.parse().unwrap();
    World::agent(&[]).set(|settings| settings.addresses.push(address))
}

async fn probed(world: &World, names: &[&str], given: &[(&str, String)]) -> super::Probed {
    let given: Vec<_> = given.iter().map(|(name, value)| (*name, value.as_str())).collect();
    probe(world, names, &given).await
}

#[tokio::test]
async fn what_is_listed_is_reached_in_every_way() {
    if !has_namespaces() {
        return;
    }
    let servers = Servers::start();
    let port = servers.listed.port();
    // No process listens on the one, and on the other none accepts any more.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let full = rustix_full_listener();
    let mut given = servers.given();
    given.push(("silent", silent.port().to_string()));
    given.push(("full", full.address.port().to_string()));
    let world = ["127.0.0.1", "localhost"].iter().fold(World::agent(&[]), |world, host| {
        let address = format!("{host}:{port}").parse().unwrap();
        world.set(|settings| settings.addresses.push(address))
    });
    let world = world.set(|settings| {
        settings.addresses.push(silent.to_string().parse().unwrap());
        settings.addresses.push(full.address.to_string().parse().unwrap());
    });
    let names = [
        "tcp",
        "by_name",
        "without_blocking",
        "refused_without_blocking",
        "while_another_waits",
        "mapped_listed",
        "unix_own",
    ];
    let probed = probed(&world, &names, &given).await;
    assert_eq!(
        probed.lines,
        [
            "tcp: done connected",
            "by_name: done listed",
            "without_blocking: done listed",
            "refused_without_blocking: done was told",
            "while_another_waits: done listed",
            "mapped_listed: done listed",
            "unix_own: done has its own",
        ]
    );
    assert_eq!(probed.sandbox.attempts, [], "what is granted is no attempt");
    servers.assert_alone();
}

/// A listener whose queue is full, so that a connection to it waits.
struct Full {
    address: SocketAddr,
    _listener: rustix::fd::OwnedFd,
    _queue: Vec<TcpStream>,
}

fn rustix_full_listener() -> Full {
    use rustix::net::{AddressFamily, SocketType};
    let listener = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&listener, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = rustix::net::getsockname(&listener).unwrap();
    let address = SocketAddr::try_from(address).unwrap();
    let wait = Duration::from_millis(200);
    let queue = (0..8).map_while(|_| TcpStream::connect_timeout(&address, wait).ok()).collect();
    Full { address, _listener: listener, _queue: queue }
}

#[tokio::test]
async fn nothing_else_is_reached_in_any_way() {
    if !has_namespaces() {
        return;
    }
    let servers = Servers::start();
    let names = [
        "other_address",
        "other_port",
        "mapped",
        "unspecified",
        "connected_again",
        "connected_twice",
        "fast_open_message",
        "fast_open_later",
        "fast_open",
        "mptcp",
        "raw",
        "source_route",
        "segments",
        "interfaces",
        "listen",
        "udp",
        "udp_message",
        "udp_connected",
        "looked_up",
        "unknown_name",
        "vsock",
        "in_a_child",
    ];
    probed(&world(&servers.listed.to_string()), &names, &servers.given())
        .await
        .all_refused()
        .noted(&[
            &format!("connection to {}", servers.others[0].0),
            &format!("connection to {}", servers.others[1].0),
            "connection to 0.0.0.0",
            "connection to 192.0.2.53:53",
            "MSG_FASTOPEN",
            "MPTCP",
            "sends packets another way",
            "the internet, listening",
        ]);
    servers.assert_alone();
}

#[tokio::test]
async fn nothing_is_gained_by_changing_what_is_looked_at() {
    if !has_namespaces() {
        return;
    }
    let servers = Servers::start();
    let names = ["changed_meanwhile", "changed_from_a_path", "swapped_descriptor"];
    let world = world(&servers.listed.to_string());
    probed(&world, &names, &servers.given()).await.all_refused();
    servers.assert_alone();
}

#[tokio::test]
async fn a_port_is_not_won_by_changing_what_is_looked_at_either() {
    if !has_namespaces() {
        return;
    }
    // The program may reach one port of any machine, and another port is tried for.
    let servers = Servers::start();
    let port = servers.others[1].0.port();
    let world = World::agent(&[]).set(|settings| settings.tcp_ports.push(port));
    let names = ["changed_from_a_path", "swapped_descriptor"];
    probed(&world, &names, &servers.given()).await.all_refused();
    servers.assert_alone();
}

#[tokio::test]
async fn sockets_that_appear_during_the_run_are_out_of_reach() {
    if !has_namespaces() {
        return;
    }
    let servers = Servers::start();
    for world in [World::agent(&[]), world(&servers.listed.to_string())] {
        world.file("src/lib.rs", "");
        let path = world.project().join("src/late.sock");
        let late = path.clone();
        let appears = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            UnixListener::bind(late).unwrap()
        });
        let given = [("socket", path.display().to_string())];
        let names = ["unix_appears", "unix_datagram", "unix_pair"];
        let probed = probed(&world, &names, &given).await.all_refused();
        probed.noted(&["connection to the Unix socket", "late.sock"]);
        let listener = appears.join().unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "somebody came");
    }
}

#[tokio::test]
async fn programs_of_other_languages_reach_a_host_by_its_name() {
    if !has_namespaces() {
        return;
    }
    let servers = Servers::start();
    let (http, came) = serve(
        "127.0.0.1:0".parse().unwrap(),
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
    );
    let url = format!("http://localhost:{}/", http.port());
    let node =
        format!("require('http').get('{url}', r => r.on('data', d => process.stdout.write(d)))");
    let curl = ["curl", "-sS", "--max-time", "20", &url].map(ToOwned::to_owned).to_vec();
    let node = ["node", "-e", &node].map(ToOwned::to_owned).to_vec();
    let mut asked = 0;
    for run in [curl, node] {
        let program = run[0].clone();
        let on_path = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .any(|folder| folder.join(&program).is_file());
        if !on_path {
            crate::require::skip(format!("needs {program}"));
            continue;
        }
        let script = run.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''")));
        let script = script.collect::<Vec<_>>().join(" ");
        let text = selftest_harness::sut::sut_settings::ProgramProtocol::Text;
        let world = World::run(&["sh", "-c", &script]).speaks(text).set(|settings| {
            settings.addresses.push(format!("localhost:{}", http.port()).parse().unwrap());
        });
        let (reply, evidence) = world.ask("go").await;
        let reply = reply.unwrap_or_else(|error| panic!("{program}: {error} {evidence:?}"));
        assert_eq!(reply.output, "hello", "{program}");
        asked += 1;
        let attempts = evidence.sandbox.unwrap().attempts;
        assert_eq!(attempts, [], "{program}");
    }
    assert_eq!(came.load(Ordering::SeqCst), asked);
    servers.assert_alone();
}

#[tokio::test]
async fn a_name_that_nobody_knows_stops_before_the_first_case() {
    let world = world("selftest-probe.invalid:443");
    let error = world.sut().check().await.unwrap_err().to_string();
    assert!(error.contains("selftest-probe.invalid"), "{error}");
    assert!(error.contains("sut.command.addresses"), "{error}");
}

#[test]
fn the_report_says_to_whom() {
    if !has_namespaces() {
        return;
    }
    let isolation = world("api.example.com:443").sut().isolation();
    let enforced = isolation.enforced.join("\n");
    assert!(enforced.contains("only to these addresses: api.example.com:443"), "{enforced}");
    assert!(!isolation.not_enforced.join("\n").contains("api.example.com"));
}
