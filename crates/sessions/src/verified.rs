//! The newest version of each agent whose real files were read and compared with what they hold.
//! Files of a newer version are read too, and may hold records that no reader knows yet.

/// Agents that record their version, with the newest verified one.
pub const VERIFIED: [(&str, &str); 2] = [("claude-code", "2.1.132"), ("codex", "0.146.0")];

/// Returns the newest verified version of an agent, if `version` is newer.
pub fn newer_than_verified(agent: &str, version: &str) -> Option<&'static str> {
    let (_, verified) = VERIFIED.iter().find(|(known, _)| *known == agent)?;
    is_newer(version, verified).then_some(verified)
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
        assert_eq!(newer_than_verified("claude-code", "99.0"), Some("2.1.132"));
        assert_eq!(newer_than_verified("claude-code", "1.0"), None);
        assert_eq!(newer_than_verified("other", "99"), None);
    }
}
