//! Landlock rules: the inner layer of the sandbox, which works without namespaces too.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, LandlockStatus, NetPort, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};

use super::error::SandboxError;
use super::policy::{PathGrants, SandboxLevel, SandboxPolicy};
use super::view::{OWN_FOLDERS, OWN_HOSTS};

/// The newest ABI whose access rights are all known here; older kernels enforce the subset they
/// support.
const NEWEST_ABI: ABI = ABI::V9;

/// Restricts this process. Returns the ABI version that the kernel enforces, 0 if none.
pub(super) fn restrict(policy: &SandboxPolicy, grants: &PathGrants) -> Result<i32, SandboxError> {
    let status = apply(policy, grants).map_err(SandboxError::Landlock)?;
    Ok(version(&status))
}

fn apply(policy: &SandboxPolicy, grants: &PathGrants) -> Result<RestrictionStatus, RulesetError> {
    // In its own view of the file system, the program may list every folder that exists in it.
    let (own, listed): (&[&str], &[&str]) = match policy.level {
        SandboxLevel::Full => (OWN_FOLDERS, &["/"]),
        SandboxLevel::Inner | SandboxLevel::Off => (&[], &[]),
    };
    let hosts = (!policy.addresses.is_empty() && !own.is_empty()).then_some(OWN_HOSTS);
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST_ABI))?
        .handle_access(AccessNet::from_all(NEWEST_ABI))?
        .scope(Scope::from_all(NEWEST_ABI))?
        .create()?
        .add_rules(path_beneath_rules(&grants.whole, AccessFs::from_read(NEWEST_ABI)))?
        .add_rules(path_beneath_rules(&grants.listable, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(listed, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(hosts, AccessFs::ReadFile))?
        .add_rules(path_beneath_rules(&policy.write, AccessFs::from_all(NEWEST_ABI)))?
        .add_rules(path_beneath_rules(own, AccessFs::from_all(NEWEST_ABI)))?
        .add_rules(
            policy
                .ports
                .iter()
                .map(|&port| Ok::<_, RulesetError>(NetPort::new(port, AccessNet::ConnectTcp))),
        )?
        .restrict_self()
}

fn version(status: &RestrictionStatus) -> i32 {
    match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.unwrap_or(effective_abi as i32)
        }
        _ => 0,
    }
}

/// Returns the Landlock ABI version that this kernel enforces; 0 if none.
pub(super) fn abi() -> i32 {
    // Probe by restricting a throwaway thread: the restriction applies to that thread only and ends
    // with it.
    let asked =
        std::thread::spawn(|| apply(&SandboxPolicy::default(), &PathGrants::default()).ok());
    asked.join().ok().flatten().map_or(0, |status| version(&status))
}
