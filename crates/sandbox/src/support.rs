//! Detects the protections that this machine supports, by setting them up once without a program.

use std::path::Path;

use super::policy::SandboxLevel;
use crate::limits::SandboxMode;

/// The protections available on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a wall that stands or does not")]
pub struct SandboxSupport {
    /// Strength of the sandbox that is used.
    pub level: SandboxLevel,
    /// Landlock ABI version, 0 if unsupported.
    pub landlock_abi: i32,
    /// True if system calls are filtered.
    pub filters_calls: bool,
    /// True if denied attempts are seen.
    pub watches_calls: bool,
    /// True if the sandbox has its own `/proc`.
    pub has_proc: bool,
    /// True if a `sandbox-exec` profile applies (macOS).
    pub has_profile: bool,
    /// True if a job object contains the processes (Windows).
    pub has_job_object: bool,
    /// Reason for missing namespaces, if they were tried.
    pub missing_namespaces: Option<String>,
    /// Reason why the supervisor cannot inspect its program, if the kernel prevents it.
    pub inspection_error: Option<String>,
}

/// Resources that a case's group can limit, besides CPU time and being killed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EnforcedLimits {
    /// Total memory of all processes.
    pub memory: bool,
    /// Number of processes.
    pub processes: bool,
}

/// The sandbox is required but not available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxUnavailableError {
    /// The reason.
    pub what: String,
    /// How to fix it.
    pub advice: String,
}

impl SandboxSupport {
    /// Returns true if a program can be restricted to a list of addresses.
    pub fn can_restrict_addresses(&self) -> bool {
        match self.level {
            // The supervisor makes the connections, for calls that wait for it.
            SandboxLevel::Full => self.watches_calls,
            // Landlock prevents the program from connecting by itself.
            SandboxLevel::Inner => {
                (self.watches_calls && self.landlock_abi >= 4) || self.has_profile
            }
            SandboxLevel::Off => false,
        }
    }

    /// Returns true if a program can be restricted to TCP ports, as far as it is confined at all.
    pub fn can_restrict_ports(&self) -> bool {
        // Otherwise every port of the machine would be open.
        self.level != SandboxLevel::Full || self.watches_calls || self.landlock_abi >= 4
    }

    /// Returns why the program cannot get its own loopback ports here; `None` if it can, in a
    /// private network.
    pub fn local_ports_obstacle(&self) -> Option<String> {
        match self.level {
            SandboxLevel::Off => Some("sut.sandbox is off".to_owned()),
            SandboxLevel::Full if self.watches_calls => None,
            SandboxLevel::Full => Some(self.unwatched_reason().to_owned()),
            SandboxLevel::Inner => {
                let why = self.missing_namespaces.as_deref().unwrap_or("this system has none");
                Some(format!("no namespaces: {why}"))
            }
        }
    }

    /// Returns why calls do not wait for the supervisor. Meaningful only if they do not.
    pub fn unwatched_reason(&self) -> &str {
        self.inspection_error
            .as_deref()
            .unwrap_or("no calls can be made to wait: Linux 5.5 is needed")
    }

    /// Returns advice for [`SandboxSupport::unwatched_reason`].
    pub fn unwatched_advice(&self) -> &'static str {
        if self.unwatched_reason().contains("ptrace_scope") {
            "`sudo sysctl -w kernel.yama.ptrace_scope=1`, for which a machine where it is 3 must be \
             started anew; or set sut.sandbox to best_effort, under which nothing of it is reached"
        } else {
            "allow `pidfd_getfd` and reading /proc/PID/mem (in a container `--cap-add SYS_PTRACE`); \
             or set sut.sandbox to best_effort, under which nothing of it is reached"
        }
    }

    /// Detects the protections that `harness`, this executable, can set up here.
    pub fn detect(harness: &Path, sandbox: SandboxMode) -> Result<Self, SandboxUnavailableError> {
        if sandbox == SandboxMode::Off {
            return Ok(Self { level: SandboxLevel::Off, ..Self::default() });
        }
        #[cfg(target_os = "linux")]
        return linux::find(harness, sandbox);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = harness;
            if sandbox == SandboxMode::Enforce {
                return Err(SandboxUnavailableError {
                    what: "there is no sandbox on this system".to_owned(),
                    advice: "set sut.sandbox to best_effort, or run on Linux".to_owned(),
                });
            }
            let profile = cfg!(target_os = "macos") && Path::new(super::SANDBOX_EXEC).is_file();
            let missing = profile.then(|| {
                "a profile of sandbox-exec alone, which was never run on a Mac by its authors"
                    .to_owned()
            });
            let job = cfg!(windows);
            let missing = missing.or_else(|| {
                job.then(|| {
                    "a job object alone, which was never run on Windows by its authors".to_owned()
                })
            });
            Ok(Self {
                level: SandboxLevel::Inner,
                has_profile: profile,
                has_job_object: job,
                missing_namespaces: missing,
                ..Self::default()
            })
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::super::control;
    use super::super::policy::{SandboxLevel, SandboxPolicy};
    use super::super::{SUBCOMMAND, namespaces};
    use super::{SandboxMode, SandboxSupport, SandboxUnavailableError};

    pub(super) fn find(
        harness: &Path,
        sandbox: SandboxMode,
    ) -> Result<SandboxSupport, SandboxUnavailableError> {
        let missing = match attempt(harness, SandboxLevel::Full) {
            Ok(standing) if standing.filters_calls => return Ok(standing),
            Ok(_) => "the kernel filters no system calls".to_owned(),
            Err(why) => why,
        };
        if sandbox == SandboxMode::Enforce {
            let advice = namespaces::refusal_advice(&missing).to_owned();
            return Err(SandboxUnavailableError { what: missing, advice });
        }
        let inner = attempt(harness, SandboxLevel::Inner);
        let inner = inner
            .unwrap_or(SandboxSupport { level: SandboxLevel::Inner, ..SandboxSupport::default() });
        Ok(SandboxSupport { missing_namespaces: Some(missing), ..inner })
    }

    /// Sets up the sandbox without starting anything in it.
    fn attempt(harness: &Path, walls: SandboxLevel) -> Result<SandboxSupport, String> {
        let system = ["/usr/bin".into(), "/etc/passwd".into()].to_vec();
        let policy = SandboxPolicy {
            read: system,
            level: walls,
            is_trial: true,
            ..SandboxPolicy::default()
        };
        let tried = Command::new(harness)
            .args([SUBCOMMAND, "supervise"])
            .arg(std::process::id().to_string())
            .args(policy.to_arguments())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start {}: {error}", harness.display()))?;
        let words = String::from_utf8_lossy(&tried.stderr);
        let words = words.lines().find_map(|line| line.strip_prefix("selftest: "));
        if !tried.status.success() {
            let why = words
                .map_or_else(|| format!("the trial ended with {}", tried.status), str::to_owned);
            return Err(selftest_text::one_line(&why, 500));
        }
        let control::ActiveProtections { walls, landlock, filtered, watched, proc, unseen } =
            serde_json::from_slice(&tried.stdout)
                .map_err(|error| format!("the trial said nothing of use: {error}"))?;
        let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
        let unseen = unseen.map(|error| blindness(error, scope.as_deref()));
        let known = SandboxSupport {
            level: walls,
            landlock_abi: landlock,
            filters_calls: filtered,
            watches_calls: watched,
            has_proc: proc,
            ..SandboxSupport::default()
        };
        Ok(SandboxSupport { inspection_error: unseen, ..known })
    }

    /// Explains why the supervisor may not inspect its program, from the kernel's error number and
    /// the sysctl that may be responsible.
    fn blindness(error: i32, scope: Option<&str>) -> String {
        let why = match scope.map(str::trim) {
            Some(scope @ ("2" | "3")) => format!("kernel.yama.ptrace_scope is {scope}"),
            _ => std::io::Error::from_raw_os_error(error).to_string(),
        };
        format!("the kernel keeps the supervisor from looking into the program ({why})")
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn who_may_not_look_says_why_and_what_to_do() {
            let of = |scope| {
                let unseen = Some(blindness(libc::EPERM, scope));
                let standing =
                    SandboxSupport { inspection_error: unseen, ..SandboxSupport::default() };
                assert!(!standing.can_restrict_addresses() && !standing.can_restrict_ports());
                (standing.unwatched_reason().to_owned(), standing.unwatched_advice())
            };
            for scope in ["3\n", "2"] {
                let (why, advice) = of(Some(scope));
                assert!(why.contains("kernel.yama.ptrace_scope is "), "{why}");
                assert!(advice.contains("ptrace_scope=1") && advice.contains("best_effort"));
            }
            for scope in [None, Some("1\n")] {
                let (why, advice) = of(scope);
                assert!(why.contains("Operation not permitted"), "{why}");
                assert!(advice.contains("SYS_PTRACE"), "{advice}");
            }
            let standing = SandboxSupport { landlock_abi: 4, ..SandboxSupport::default() };
            assert!(standing.can_restrict_ports() && !standing.can_restrict_addresses());
        }
    }
}
