//! An address that a program under test may connect to, as written in the configuration:
//! `host:port`. No names are resolved here.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Maximum length of a host name in bytes.
const MAX_NAME: usize = 253;

/// A host and a TCP port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPort {
    /// The host.
    pub host: TargetHost,
    /// The port, never 0.
    pub port: u16,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetHost {
    /// A host name, in lower case.
    Name(String),
    /// An IP address.
    Ip(IpAddr),
}

/// A text is not an address such as `api.example.com:443`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostPortError {
    /// It contains no colon.
    #[error("expected `host:port`, such as `api.example.com:443`")]
    Syntax,
    /// The port is missing or out of range.
    #[error("expected a port between 1 and 65535 after the last colon")]
    Port,
    /// The brackets contain something else than an IPv6 address.
    #[error("expected an IPv6 address between the brackets")]
    Brackets,
    /// An IPv6 address has no brackets.
    #[error("an IPv6 address stands in brackets, as in `[::1]:443`")]
    NoBrackets,
    /// The host contains a `*`.
    #[error("names are looked up before each case, so that `*` stands for none: list each name")]
    Wildcard,
    /// The host is neither a name nor an IP address.
    #[error(
        "expected the name of a machine (in ASCII, without a scheme or a path) or its address \
         before the port"
    )]
    Host,
    /// The IP address cannot be connected to.
    #[error("{0} is the address of no machine")]
    NoMachine(IpAddr),
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            TargetHost::Name(name) => write!(f, "{name}:{}", self.port),
            TargetHost::Ip(IpAddr::V4(ip)) => write!(f, "{ip}:{}", self.port),
            TargetHost::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
        }
    }
}

impl FromStr for HostPort {
    type Err = HostPortError;

    fn from_str(text: &str) -> Result<Self, HostPortError> {
        let (host, port) = text.rsplit_once(':').ok_or(HostPortError::Syntax)?;
        let port = match port.parse() {
            // Rejects signs and leading zeros, which `parse` accepts.
            Ok(port @ 1..) if port.to_string() == text[host.len() + 1..] => port,
            _ => return Err(HostPortError::Port),
        };
        Ok(Self { host: host_of(host)?, port })
    }
}

fn host_of(host: &str) -> Result<TargetHost, HostPortError> {
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        let ip: Ipv6Addr = inner.parse().map_err(|_| HostPortError::Brackets)?;
        // `::ffff:192.0.2.1` is the same host as `192.0.2.1`.
        return machine(IpAddr::V6(ip).to_canonical());
    }
    if let Ok(ip) = host.parse() {
        return machine(IpAddr::V4(ip));
    }
    if host.contains(':') {
        return Err(HostPortError::NoBrackets);
    }
    if host.contains('*') {
        return Err(HostPortError::Wildcard);
    }
    // Names of machines ignore case.
    let name = host.to_ascii_lowercase();
    let is_label = |label: &str| {
        let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(of_name)
    };
    // Such as `127.1`, which some libraries parse as an IP address.
    let is_number = name.rsplit('.').next().is_some_and(|last| last.parse::<u64>().is_ok());
    if name.len() > MAX_NAME || !name.split('.').all(is_label) || is_number {
        return Err(HostPortError::Host);
    }
    Ok(TargetHost::Name(name))
}

fn machine(ip: IpAddr) -> Result<TargetHost, HostPortError> {
    if ip.is_unspecified() || ip.is_multicast() {
        return Err(HostPortError::NoMachine(ip));
    }
    Ok(TargetHost::Ip(ip))
}

impl TryFrom<String> for HostPort {
    type Error = HostPortError;

    fn try_from(text: String) -> Result<Self, HostPortError> {
        text.parse()
    }
}

impl From<HostPort> for String {
    fn from(address: HostPort) -> Self {
        address.to_string()
    }
}

impl JsonSchema for HostPort {
    fn schema_name() -> Cow<'static, str> {
        "Address".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 3, "maxLength": 300 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_with_ports() {
        for (text, shown) in [
            ("localhost:11434", "localhost:11434"),
            ("API.Example.com:443", "api.example.com:443"),
            ("my_host-1:80", "my_host-1:80"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[0:0::1]:80", "[::1]:80"),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
        ] {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), shown);
        }
        for broken in [
            "",
            "localhost",
            ":80",
            "localhost:",
            "localhost:0",
            "localhost:65536",
            "localhost:+1",
            "localhost:080",
            "http://localhost:80",
            "a b:80",
            "::1:80",
            "[::1:80",
            "[localhost]:80",
            "*.example.com:443",
            "a..b:80",
            "exämple.com:443",
            "0.0.0.0:80",
            "[::]:80",
            "127.1:80",
            "2130706433:80",
            "224.0.0.1:80",
            "[fe80::1%eth0]:80",
        ] {
            assert!(broken.parse::<HostPort>().is_err(), "{broken}");
        }
        let long = format!("{}:80", "a.".repeat(200));
        assert!(long.parse::<HostPort>().is_err());
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_read_is_written_and_read_again(text in "[a-z0-9.:_\\[\\]*-]{0,20}:[0-9]{1,6}") {
            if let Ok(address) = text.parse::<HostPort>() {
                proptest::prop_assert_eq!(address.to_string().parse::<HostPort>(), Ok(address));
            }
        }
    }
}
