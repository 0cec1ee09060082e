//! A program with ports of its own: no other process has them, and they open nothing else.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use selftest_harness::sut::SystemUnderTest as _;
use selftest_sandbox::limits::SandboxMode;

use super::has_namespaces;
use crate::sut::world::World;

/// Common beginning of these programs. `serve` answers each connection with a word.
const BEGINNING: &str = r#"
import json, os, socket, sys, threading, time
sys.stdin.readline()
lines = []

def serve(word, host="127.0.0.1", port=0, family=socket.AF_INET):
    server = socket.socket(family, socket.SOCK_STREAM)
    server.bind((host, port))
    server.listen(8)
    def each():
        while True:
            one, _ = server.accept()
            one.sendall(word.encode())
            one.close()
    threading.Thread(target=each, daemon=True).start()
    return server.getsockname()[1]

def hear(host, port):
    with socket.create_connection((host, port), timeout=20) as one:
        one.sendall(b"go") if port in SAYS else None
        return one.recv(100).decode()

def tell(what, does):
    try:
        lines.append(f"{what}: {does()}")
    except OSError as error:
        lines.append(f"{what}: refused {error.errno}")

SAYS = []
"#;

const END: &str = r#"
print(json.dumps({"type": "result", "status": "COMPLETE", "output": "\n".join(lines)}), flush=True)
"#;

/// A program of this text that may have ports of its own.
fn program(text: &str) -> World {
    let world = World::run(&["/usr/bin/python3", "script.py"]);
    world.file("script.py", &format!("{BEGINNING}\n{text}\n{END}"));
    world.set(|settings| settings.local_ports = true)
}

/// A listener of the machine that counts who comes.
fn outside() -> (SocketAddr, Arc<AtomicUsize>) {
    super::addresses::serve(([127, 0, 0, 1], 0).into(), "outside")
}

/// A free port.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn its_processes_reach_each_other_and_nobody_outside() {
    if !has_namespaces() {
        return;
    }
    let (machine, came) = outside();
    let port = free();
    let text = format!(
        r#"
port = serve("mine", "127.0.0.1", {port})
tell("itself", lambda: hear("127.0.0.1", port))
tell("by name", lambda: hear("localhost", port))
tell("another number", lambda: hear("127.0.0.9", serve("any", "0.0.0.0")))
tell("newer", lambda: hear("::1", serve("six", "::1", 0, socket.AF_INET6)))
if os.fork() == 0:
    sys.exit(0 if hear("127.0.0.1", port) == "mine" else 1)
tell("a child", lambda: os.wait()[1])
tell("the machine", lambda: hear("127.0.0.1", {}))
tell("another machine", lambda: hear("192.0.2.1", 80))
tell("bound to another", lambda: serve("x", "192.0.2.1"))
time.sleep(1)
"#,
        machine.port()
    );
    // Somebody of the machine tries all the while.
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let tries = std::thread::spawn(move || {
        let mut reached = 0;
        while !over.load(Ordering::SeqCst) {
            reached += usize::from(TcpStream::connect(("127.0.0.1", port)).is_ok());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        reached
    });
    let world = program(&text);
    assert!(world.sut().isolation().enforced.join("\n").contains("reaches nothing outside"));
    let lines = world.lines().await;
    is_over.store(true, Ordering::SeqCst);
    assert_eq!(tries.join().unwrap(), 0, "it is reached from outside");
    assert_eq!(
        lines,
        [
            "itself: mine",
            "by name: mine",
            "another number: any",
            "newer: six",
            "a child: 0",
            &format!("the machine: refused {}", libc::ECONNREFUSED),
            &format!("another machine: refused {}", libc::EACCES),
            &format!("bound to another: refused {}", libc::EADDRNOTAVAIL),
        ]
    );
    assert_eq!(came.load(Ordering::SeqCst), 0, "somebody came");
}

#[tokio::test]
async fn two_cases_have_the_same_port_and_do_not_reach_each_other() {
    if !has_namespaces() {
        return;
    }
    let port = free();
    let text = |word: &str| {
        format!(
            r#"
port = serve("{word}", "127.0.0.1", {port})
heard = set()
until = time.time() + 2
while time.time() < until:
    heard.add(hear("127.0.0.1", port))
tell("heard", lambda: sorted(heard))
"#
        )
    };
    let (one, other) = (program(&text("one")), program(&text("other")));
    let (one, other) = tokio::join!(one.lines(), other.lines());
    assert_eq!((one, other), (vec!["heard: ['one']".into()], vec!["heard: ['other']".into()]));
}

#[tokio::test]
async fn a_listed_address_is_reached_beside_them_and_its_socket_opens_nothing_else() {
    if !has_namespaces() {
        return;
    }
    let (listed, served) = outside();
    let (other, came) = outside();
    let closed = free();
    let text = format!(
        r#"
import select
SAYS = [{listed}]
port = serve("mine")
tell("itself", lambda: hear("127.0.0.1", port))
tell("listed", lambda: hear("127.0.0.1", {listed}))
tell("other", lambda: hear("127.0.0.1", {other}))

def without_blocking():
    one = socket.socket()
    one.setblocking(False)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert not os.get_inheritable(one.fileno())
    try:
        one.connect(("127.0.0.1", {listed}))
    except BlockingIOError:
        pass
    assert not os.get_inheritable(one.fileno()) and not one.getblocking()
    select.select([], [one], [], 20)
    one.sendall(b"go")
    select.select([one], [], [], 20)
    return one.recv(100).decode(), one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
tell("without blocking", without_blocking)

# A socket of outside, which a connection that fails leaves in the hands of the program.
def left():
    one = socket.socket()
    try:
        one.connect(("127.0.0.1", {closed}))
    except ConnectionRefusedError:
        return one
tell("left to listen", lambda: left().listen(1))
tell("left to bind", lambda: left().bind(("127.0.0.1", 0)))
tell("left to connect", lambda: left().connect(("127.0.0.1", {other})))
tell("left to connect to itself", lambda: left().connect(("127.0.0.1", port)))

def loosened():
    one = left()
    libc = __import__("ctypes").CDLL(None, use_errno=True)
    libc.connect(one.fileno(), bytes(16), 16)
    one.listen(1)
tell("loosened to listen", loosened)
"#,
        listed = listed.port(),
        other = other.port(),
    );
    let addresses = [listed.port(), closed].map(|port| format!("127.0.0.1:{port}"));
    let world = addresses.iter().fold(program(&text), |world, address| {
        world.set(|settings| settings.addresses.push(address.parse().unwrap()))
    });
    let said = world.sut().isolation().enforced.join("\n");
    assert!(said.contains("only to these addresses") && said.contains("loopback"), "{said}");
    let refused = |what: &str| format!("{what}: refused {}", libc::EACCES);
    let (reply, evidence) = world.ask("go").await;
    let output = reply.unwrap_or_else(|error| panic!("{error} {evidence:?}")).output;
    let expected = [
        "itself: mine".to_owned(),
        "listed: outside".to_owned(),
        format!("other: refused {}", libc::ECONNREFUSED),
        "without blocking: ('outside', 1)".to_owned(),
        refused("left to listen"),
        refused("left to bind"),
        refused("left to connect"),
        refused("left to connect to itself"),
        refused("loosened to listen"),
    ];
    assert_eq!(output.lines().collect::<Vec<_>>(), expected);
    assert_eq!((served.load(Ordering::SeqCst), came.load(Ordering::SeqCst)), (2, 0));
    let noted = format!("{:?}", evidence.sandbox.unwrap().attempts);
    assert!(noted.contains("the internet, listening"), "{noted}");
}

#[tokio::test]
async fn without_a_network_of_its_own_there_are_none() {
    let world = program("").sandbox(SandboxMode::Off);
    let error = world.sut().check().await.unwrap_err();
    assert!(error.to_string().contains("sut.command.local_ports needs a network"), "{error}");
    assert!(error.to_string().contains("sut.sandbox is off"), "{error}");
    assert!(error.hint().unwrap().contains("leave it out"), "{error}");
    if has_namespaces() {
        program("").sut().check().await.unwrap();
        // Without `local_ports` none can be reached: listening itself is refused by Landlock 4 only.
        let world = program("tell(\"serves\", lambda: hear(\"127.0.0.1\", serve(\"x\")))");
        let world = world.set(|settings| settings.local_ports = false);
        assert!(world.lines().await[0].starts_with("serves: refused "));
    }
}
