//! The macOS `sandbox-exec` profile of a program, generated as text from a policy. Pure; compiled
//! for macOS, and for tests on every platform.
//!
//! The names of operations and filters are those in the published profiles of Chromium, Codex and
//! sandbox-runtime; Apple documents none. A network filter can name `localhost` or any machine,
//! nothing in between.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::policy::{SandboxPolicy, resolve_existing};

/// Rules for every program, whatever it may read: it may start other programs under the same
/// profile, signal them, and query basic system information.
const BASE_PROFILE: &str = r#"(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow user-preference-read)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.logd")
  (global-name "com.apple.SecurityServer")
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent"))
(allow file-read-metadata)
(allow file-read-data (literal "/"))
(allow file-read* (subpath "/System") (subpath "/usr/lib") (subpath "/usr/bin") (subpath "/bin")
  (subpath "/sbin") (subpath "/usr/sbin") (subpath "/usr/libexec") (subpath "/usr/share")
  (subpath "/Library/Apple") (subpath "/private/var/db/dyld")
  (subpath "/private/var/db/timezone") (literal "/private/etc/hosts")
  (literal "/private/etc/passwd") (literal "/private/etc/services")
  (literal "/private/etc/protocols") (literal "/private/etc/localtime")
  (subpath "/private/etc/ssl"))
(allow file-read* file-write* file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (subpath "/dev/fd")
  (literal "/dev/dtracehelper"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom"))
"#;

/// The socket for name lookups.
const NAME_LOOKUP_SOCKET: &str = "/private/var/run/mDNSResponder";

/// Returns the profile for a program with these rights. The last matching rule wins.
pub(super) fn profile(policy: &SandboxPolicy) -> String {
    let mut text = BASE_PROFILE.to_owned();
    let settled =
        |paths: &[PathBuf]| paths.iter().map(|path| resolve_existing(path)).collect::<Vec<_>>();
    // Denied paths follow the folders that contain them, and explicit exceptions follow those.
    for (verb, paths) in [
        ("allow", &policy.read),
        ("deny", &policy.secret),
        ("allow", &policy.allow),
        ("deny", &policy.protected),
    ] {
        write_rule(&mut text, verb, "file-read*", &settled(paths));
    }
    let mut write = settled(&policy.write);
    write.retain(|path| !path.starts_with("/dev"));
    // Sockets in these folders belong to the program.
    write_rule(&mut text, "allow", "file-read* file-write* network-bind network-outbound", &write);
    write_network_rules(policy, &mut text);
    text
}

/// Writes a rule for paths and everything below them, if there are any.
fn write_rule(text: &mut String, verb: &str, operations: &str, paths: &[PathBuf]) {
    let paths = paths.iter().filter(|path| path.is_absolute());
    let mut filters = String::new();
    for path in paths {
        // Writing to a String cannot fail.
        let _ = write!(filters, "\n  (subpath {})", quote_path(path));
    }
    if !filters.is_empty() {
        let _ = writeln!(text, "({verb} {operations}{filters})");
    }
}

/// Allows outbound connections: to a port of this machine for loopback addresses, else to that port
/// anywhere.
fn write_network_rules(policy: &SandboxPolicy, text: &mut String) {
    let listed =
        policy.addresses.iter().map(|address| (address.ip().is_loopback(), address.port()));
    let mut remote: Vec<(bool, u16)> = listed.collect();
    if remote.is_empty() {
        remote.extend(policy.ports.iter().map(|&port| (false, port)));
    }
    remote.sort_unstable();
    remote.dedup();
    for (is_local, port) in &remote {
        let machine = if *is_local { "localhost" } else { "*" };
        let _ = writeln!(text, "(allow network-outbound (remote tcp \"{machine}:{port}\"))");
    }
    if remote.iter().any(|(is_local, _)| !is_local) {
        let _ = writeln!(text, "(allow network-outbound (literal \"{NAME_LOOKUP_SOCKET}\"))");
    }
}

/// Quotes a path as a string literal in the profile language, so that it cannot inject rules.
fn quote_path(path: &Path) -> String {
    let mut text = String::from("\"");
    for character in path.to_string_lossy().chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\n' => text += "\\n",
            '\r' => text += "\\r",
            '\t' => text += "\\t",
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> SandboxPolicy {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        SandboxPolicy {
            read: paths(&["/Users/me/project", "/opt/homebrew/bin"]),
            secret: paths(&["/Users/me/project/.env"]),
            allow: paths(&["/Users/me/models"]),
            protected: paths(&["/Users/me/project/reports", "/Users/me/project/config"]),
            write: paths(&["/dev/null", "/private/tmp/selftest-20260206-1234-aaaaaa"]),
            ..SandboxPolicy::default()
        }
    }

    #[test]
    fn without_a_network() {
        insta::assert_snapshot!(profile(&policy()));
    }

    #[test]
    fn with_addresses() {
        let addresses = ["127.0.0.1:11434", "[::1]:11434", "192.0.2.1:443", "192.0.2.2:443"];
        let addresses = addresses.map(|address| address.parse().unwrap()).into();
        let text = profile(&SandboxPolicy { addresses, ..policy() });
        insta::assert_snapshot!(text.strip_prefix(&*profile(&policy())).unwrap());
        let text = profile(&SandboxPolicy { ports: vec![443, 80], ..policy() });
        insta::assert_snapshot!(text.strip_prefix(&*profile(&policy())).unwrap());
    }

    #[test]
    fn paths_are_strings_and_nothing_else() {
        for (path, expected) in [
            ("/a b", r#""/a b""#),
            (r#"/a")(allow default)("#, r#""/a\")(allow default)(""#),
            (r"/a\", r#""/a\\""#),
            ("/a\n;b", r#""/a\n;b""#),
            ("/ä☃", r#""/ä☃""#),
        ] {
            assert_eq!(quote_path(Path::new(path)), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_string_ends_where_it_should(path in "/\\PC{0,40}") {
            let text = quote_path(Path::new(&path));
            let inner = &text[1..text.len() - 1];
            // Parse it like the profile language: no unescaped quote, and the same path.
            let mut read = String::new();
            let mut characters = inner.chars();
            while let Some(character) = characters.next() {
                proptest::prop_assert_ne!(character, '"');
                read.push(match character {
                    '\\' => match characters.next() {
                        Some('n') => '\n',
                        Some('r') => '\r',
                        Some('t') => '\t',
                        other => other.unwrap(),
                    },
                    other => other,
                });
            }
            proptest::prop_assert_eq!(read, path);
        }
    }
}
