//! The last step before the program: limits, Landlock, exec. What the kernel cannot enforce is
//! left out here and said by the caller, who asks [`landlock_abi`].

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::policy::Policy;

/// Largest file that a confined program may write, in bytes.
pub(super) const LARGEST_FILE: u64 = 1 << 30;

/// Becomes the program. Returns only when that fails.
pub(super) fn exec(arguments: &[OsString]) -> Result<u8, String> {
    let (policy, program) = Policy::from_arguments(arguments)?;
    let (name, arguments) = program.split_first().ok_or("expected a program after `--`")?;
    for (resource, most) in [(Resource::Core, 0), (Resource::Fsize, LARGEST_FILE)] {
        // A lower limit that is already set cannot be raised, and need not be.
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
    #[cfg(target_os = "linux")]
    {
        // The supervisor ends the tree; this is for the case that it is killed itself.
        let _ =
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        drop_capabilities().map_err(|error| format!("cannot drop capabilities: {error}"))?;
        landlocked::restrict(&policy)?;
    }
    let error = Command::new(name).args(arguments).exec();
    Err(format!("cannot start {}: {error}", name.display()))
}

/// Gives up what root may do, but for passing over file permissions, which Landlock limits: a
/// project may belong to another user. Some powers of root pass over Landlock, such as reading
/// the environment of other processes.
#[cfg(target_os = "linux")]
fn drop_capabilities() -> rustix::io::Result<()> {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
    // Without this root gets everything back at exec.
    rustix::thread::set_no_new_privs(true)?;
    let kept = capabilities(None)?.permitted & CapabilitySet::DAC_OVERRIDE;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })
}

/// The version of Landlock's interface that this kernel enforces; 0 where there is none.
pub fn landlock_abi() -> i32 {
    #[cfg(target_os = "linux")]
    return landlocked::abi();
    #[cfg(not(target_os = "linux"))]
    return 0;
}

#[cfg(target_os = "linux")]
mod landlocked {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, LandlockStatus, NetPort, RestrictionStatus, Ruleset,
        RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
        path_beneath_rules,
    };

    use super::Policy;

    /// The newest interface whose rights are all known here; older kernels enforce what they
    /// know of it.
    const NEWEST: ABI = ABI::V9;

    pub(super) fn restrict(policy: &Policy) -> Result<(), String> {
        let status = apply(policy).map_err(|error| format!("cannot confine: {error}"))?;
        if policy.required && status.ruleset == RulesetStatus::NotEnforced {
            return Err("cannot confine: this kernel enforces no Landlock rule".to_owned());
        }
        Ok(())
    }

    fn apply(policy: &Policy) -> Result<RestrictionStatus, RulesetError> {
        let grants = policy.grants();
        Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?
            .add_rules(path_beneath_rules(&grants.whole, AccessFs::from_read(NEWEST)))?
            .add_rules(path_beneath_rules(&grants.names, AccessFs::ReadDir))?
            .add_rules(path_beneath_rules(&policy.write, AccessFs::from_all(NEWEST)))?
            .add_rules(
                policy
                    .ports
                    .iter()
                    .map(|&port| Ok::<_, RulesetError>(NetPort::new(port, AccessNet::ConnectTcp))),
            )?
            .restrict_self()
    }

    pub(super) fn abi() -> i32 {
        // The kernel is asked by restricting a thread that does nothing else: the restriction
        // holds for that thread only and ends with it.
        let status = std::thread::spawn(|| apply(&Policy::default()).ok()).join().ok().flatten();
        match status.map(|status| status.landlock) {
            Some(LandlockStatus::Available { effective_abi, kernel_abi }) => {
                kernel_abi.unwrap_or(effective_abi as i32)
            }
            _ => 0,
        }
    }
}
