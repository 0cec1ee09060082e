//! Resolves the configured addresses. Names are resolved outside the sandbox, so that programs in
//! it need no DNS.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::sut::SutError;
use crate::sut::address::{HostPort, TargetHost};

/// Maximum age of a cached name. Many cases may start per second.
const CACHE_TTL: Duration = Duration::from_mins(1);

/// Timeout for resolving a name.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of addresses of one name.
const MAX_ADDRESSES: usize = 64;

/// Addresses that a program may connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResolvedAddresses {
    pub(super) addresses: Vec<SocketAddr>,
    /// Names with their addresses.
    pub(super) hosts: Vec<(String, IpAddr)>,
}

/// A cache of recently resolved names.
#[derive(Debug, Default)]
pub(super) struct NameCache(Mutex<HashMap<String, (Instant, Vec<IpAddr>)>>);

impl NameCache {
    /// Resolves these addresses. The error is for an unknown name.
    pub(super) async fn resolve(
        &self,
        addresses: &[HostPort],
    ) -> Result<ResolvedAddresses, SutError> {
        let mut reach = ResolvedAddresses::default();
        for HostPort { host, port } in addresses {
            let found = match host {
                TargetHost::Ip(ip) => vec![*ip],
                TargetHost::Name(name) => {
                    let found = self.look_up(name).await?;
                    let hosts = found.iter().map(|ip| (name.clone(), *ip));
                    let hosts: Vec<_> = hosts.filter(|it| !reach.hosts.contains(it)).collect();
                    reach.hosts.extend(hosts);
                    found
                }
            };
            reach.addresses.extend(found.into_iter().map(|ip| SocketAddr::new(ip, *port)));
        }
        Ok(reach)
    }

    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, SutError> {
        if name == "localhost" {
            // Programs such as curl resolve it without DNS, to both addresses.
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        if let Some((when, known)) = self.lock().get(name)
            && when.elapsed() < CACHE_TTL
        {
            return Ok(known.clone());
        }
        let failed = |why: String| SutError::NotStarted {
            what: format!("cannot look up `{name}`, of sut.command.addresses: {why}"),
            hint: Some("correct the name, or see to it that this machine knows it".to_owned()),
        };
        // The port is irrelevant.
        let found =
            tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((name, 443))).await;
        let found =
            found.map_err(|_| failed(format!("no answer in {} s", LOOKUP_TIMEOUT.as_secs())))?;
        let found = found.map_err(|error| failed(error.to_string()))?;
        let found = usable(found.map(|address| address.ip().to_canonical()), has_route);
        if found.is_empty() {
            return Err(failed("it has no address".to_owned()));
        }
        self.lock().insert(name.to_owned(), (Instant::now(), found.clone()));
        Ok(found)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, Vec<IpAddr>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes duplicates, and unroutable addresses if at least one is routable.
fn usable(found: impl Iterator<Item = IpAddr>, has_way: impl Fn(IpAddr) -> bool) -> Vec<IpAddr> {
    let mut all: Vec<IpAddr> = Vec::new();
    // `0.0.0.0` would connect to this machine.
    for ip in found.filter(|ip| !ip.is_unspecified()).take(MAX_ADDRESSES) {
        if !all.contains(&ip) {
            all.push(ip);
        }
    }
    let near: Vec<IpAddr> = all.iter().copied().filter(|&ip| has_way(ip)).collect();
    if near.is_empty() { all } else { near }
}

/// Returns true if there is a route to this address. Connecting a UDP socket sends nothing.
fn has_route(ip: IpAddr) -> bool {
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((ip, 443))).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> HostPort {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn names_are_looked_up_and_addresses_are_not() {
        let names = NameCache::default();
        let listed = ["192.0.2.7:443", "localhost:11434", "localhost:80", "[::ffff:192.0.2.8]:1"];
        let reach = names.resolve(&listed.map(address)).await.unwrap();
        assert!(reach.addresses.contains(&"192.0.2.7:443".parse().unwrap()));
        assert!(reach.addresses.contains(&"192.0.2.8:1".parse().unwrap()));
        for local in ["127.0.0.1:11434", "[::1]:11434", "127.0.0.1:80", "[::1]:80"] {
            assert!(reach.addresses.contains(&local.parse().unwrap()), "{local}");
        }
        assert_eq!(reach.hosts.len(), 2);
        let mut once = reach.hosts.clone();
        once.dedup();
        assert_eq!(once, reach.hosts);
        assert!(reach.hosts.iter().all(|(name, ip)| name == "localhost" && ip.is_loopback()));
    }

    #[tokio::test]
    async fn a_name_that_nobody_knows_is_an_error_that_names_it() {
        let error = NameCache::default().resolve(&[address("no-such-name.invalid:443")]).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no-such-name.invalid") && error.contains("addresses"), "{error}");
    }

    #[test]
    fn addresses_without_a_way_are_left_out_where_there_are_others() {
        let [old, new]: [IpAddr; 2] = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().unwrap());
        let found = || [new, old, old].into_iter();
        assert_eq!(usable(found(), |ip| ip.is_ipv4()), [old]);
        assert_eq!(usable(found(), |_| false), [new, old]);
    }
}
