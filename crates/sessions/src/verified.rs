//! The newest version of each agent whose files were read and compared with what they hold. Files of
//! a newer version are read too, and may hold records that no reader knows yet.

use serde::Serialize;
use strum::{Display, IntoStaticStr, VariantArray as _};

use super::SessionFormat;

/// The newest verified version of an agent; each format declares that of its own agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VerifiedVersion {
    /// Agent, as sessions name it.
    pub agent: &'static str,
    /// The version, as its files state it.
    pub version: &'static str,
    /// What was read.
    pub basis: VerificationBasis,
}

/// What the reader of a format was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, IntoStaticStr)]
pub enum VerificationBasis {
    /// Files that the agent wrote.
    #[strum(serialize = "real files")]
    RealFiles,
    /// Files that another project trimmed or wrote for its own tests.
    #[strum(serialize = "files of another project's tests")]
    ForeignFixtures,
    /// Files that were written after the agent's source or documents.
    #[strum(serialize = "own fixture")]
    OwnFixture,
}

/// Returns the newest verified version of every agent that records its version.
pub fn verified_versions() -> impl Iterator<Item = VerifiedVersion> {
    SessionFormat::VARIANTS.iter().filter_map(|format| format.entry().verified)
}

/// Returns the newest verified version of an agent, if `version` is newer.
pub fn newer_than_verified(agent: &str, version: &str) -> Option<VerifiedVersion> {
    let verified = verified_versions().find(|known| known.agent == agent)?;
    is_newer(version, verified.version).then_some(verified)
}

/// Returns true if a version is newer than another one: number by number.
pub fn is_newer(version: &str, other: &str) -> bool {
    numbers(version) > numbers(other)
}

/// Returns the numbers of a version such as `2.1.132` or `0.53.0-alpha.2`, whose addition is left
/// out.
fn numbers(version: &str) -> Vec<u64> {
    let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    let main = digits.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap_or_default();
    let numbers = main.split('.').filter(|number| !number.is_empty());
    numbers.map(|number| number.parse().unwrap_or(u64::MAX)).take(6).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (one, other) in [
            ("2.1.133", "2.1.132"),
            ("2.10.0", "2.9.9"),
            ("v3", "2.1.132"),
            ("2.1.132.1", "2.1.132"),
            ("0.147.0-alpha.1", "0.146.0"),
        ] {
            assert!(is_newer(one, other) && !is_newer(other, one), "{one} {other}");
        }
        assert!(!is_newer("2.1.132", "2.1.132") && !is_newer("2.1.132-beta", "2.1.132"));
        assert!(!is_newer("", "0.1") && !is_newer("unknown", "0.1"));
        let newer = |agent, version| newer_than_verified(agent, version).map(|it| it.version);
        let known = verified_versions().find(|known| known.agent == "claude-code").unwrap();
        assert_eq!(newer("claude-code", "99.0"), Some(known.version));
        assert_eq!(newer("claude-code", "1.0"), None);
        assert_eq!(newer("other", "99"), None);
    }

    #[test]
    fn an_agent_has_one_newest_version() {
        let agents: Vec<&str> = verified_versions().map(|known| known.agent).collect();
        let distinct: BTreeSet<&&str> = agents.iter().collect();
        assert_eq!(agents.len(), distinct.len(), "{agents:?}");
        assert!(verified_versions().all(|known| !numbers(known.version).is_empty()));
    }
}
