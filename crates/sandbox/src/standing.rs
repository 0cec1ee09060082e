//! Detects the protections that this machine supports, by setting them up once without a program.

use std::path::Path;

use super::policy::Walls;
use crate::limits::Sandbox;

/// The protections available on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a wall that stands or does not")]
pub struct Standing {
    /// Strength of the sandbox that is used.
    pub walls: Walls,
    /// Landlock ABI version, 0 if unsupported.
    pub landlock: i32,
    /// True if system calls are filtered.
    pub filtered: bool,
    /// True if denied attempts are seen.
    pub watched: bool,
    /// True if the sandbox has its own `/proc`.
    pub proc: bool,
    /// True if a `sandbox-exec` profile applies (macOS).
    pub profile: bool,
    /// True if a job object contains the processes (Windows).
    pub job: bool,
    /// Reason for missing namespaces, if they were tried.
    pub missing: Option<String>,
    /// Reason why the supervisor cannot inspect its program, if the kernel prevents it.
    pub unseen: Option<String>,
}

/// Resources that a case's group can limit, besides CPU time and being killed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// Total memory of all processes.
    pub memory: bool,
    /// Number of processes.
    pub processes: bool,
}

/// The sandbox is required but not available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSandbox {
    /// The reason.
    pub what: String,
    /// How to fix it.
    pub advice: String,
}

impl Standing {
    /// Returns true if a program can be restricted to a list of addresses.
    pub fn knows_addresses(&self) -> bool {
        match self.walls {
            // The supervisor makes the connections, for calls that wait for it.
            Walls::Full => self.watched,
            // Landlock prevents the program from connecting by itself.
            Walls::Inner => (self.watched && self.landlock >= 4) || self.profile,
            Walls::Off => false,
        }
    }

    /// Returns true if a program can be restricted to TCP ports, as far as it is confined at all.
    pub fn knows_ports(&self) -> bool {
        // Otherwise every port of the machine would be open.
        self.walls != Walls::Full || self.watched || self.landlock >= 4
    }

    /// Returns why the program cannot get its own loopback ports here; `None` if it can, in a
    /// private network.
    pub fn no_local_ports(&self) -> Option<String> {
        match self.walls {
            Walls::Off => Some("sut.sandbox is off".to_owned()),
            Walls::Full if self.watched => None,
            Walls::Full => Some(self.blindness().to_owned()),
            Walls::Inner => {
                let why = self.missing.as_deref().unwrap_or("this system has none");
                Some(format!("no namespaces: {why}"))
            }
        }
    }

    /// Returns why calls do not wait for the supervisor. Meaningful only if they do not.
    pub fn blindness(&self) -> &str {
        self.unseen.as_deref().unwrap_or("no calls can be made to wait: Linux 5.5 is needed")
    }

    /// Returns advice for [`Standing::blindness`].
    pub fn sight_advice(&self) -> &'static str {
        if self.blindness().contains("ptrace_scope") {
            "`sudo sysctl -w kernel.yama.ptrace_scope=1`, for which a machine where it is 3 must be \
             started anew; or set sut.sandbox to best_effort, under which nothing of it is reached"
        } else {
            "allow `pidfd_getfd` and reading /proc/PID/mem (in a container `--cap-add SYS_PTRACE`); \
             or set sut.sandbox to best_effort, under which nothing of it is reached"
        }
    }

    /// Detects the protections that `harness`, this executable, can set up here.
    pub fn find(harness: &Path, sandbox: Sandbox) -> Result<Self, NoSandbox> {
        if sandbox == Sandbox::Off {
            return Ok(Self { walls: Walls::Off, ..Self::default() });
        }
        #[cfg(target_os = "linux")]
        return linux::find(harness, sandbox);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = harness;
            if sandbox == Sandbox::Enforce {
                return Err(NoSandbox {
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
            Ok(Self { walls: Walls::Inner, profile, job, missing, ..Self::default() })
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::super::control;
    use super::super::policy::{Policy, Walls};
    use super::super::{WORD, namespaces};
    use super::{NoSandbox, Sandbox, Standing};

    pub(super) fn find(harness: &Path, sandbox: Sandbox) -> Result<Standing, NoSandbox> {
        let missing = match attempt(harness, Walls::Full) {
            Ok(standing) if standing.filtered => return Ok(standing),
            Ok(_) => "the kernel filters no system calls".to_owned(),
            Err(why) => why,
        };
        if sandbox == Sandbox::Enforce {
            let advice = namespaces::advice(&missing).to_owned();
            return Err(NoSandbox { what: missing, advice });
        }
        let inner = attempt(harness, Walls::Inner);
        let inner = inner.unwrap_or(Standing { walls: Walls::Inner, ..Standing::default() });
        Ok(Standing { missing: Some(missing), ..inner })
    }

    /// Sets up the sandbox without starting anything in it.
    fn attempt(harness: &Path, walls: Walls) -> Result<Standing, String> {
        let system = ["/usr/bin".into(), "/etc/passwd".into()].to_vec();
        let policy = Policy { read: system, walls, trial: true, ..Policy::default() };
        let tried = Command::new(harness)
            .args([WORD, "supervise"])
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
        let control::Standing { walls, landlock, filtered, watched, proc, unseen } =
            serde_json::from_slice(&tried.stdout)
                .map_err(|error| format!("the trial said nothing of use: {error}"))?;
        let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
        let unseen = unseen.map(|error| blindness(error, scope.as_deref()));
        let known = Standing { walls, landlock, filtered, watched, proc, ..Standing::default() };
        Ok(Standing { unseen, ..known })
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
                let standing = Standing { unseen, ..Standing::default() };
                assert!(!standing.knows_addresses() && !standing.knows_ports());
                (standing.blindness().to_owned(), standing.sight_advice())
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
            let standing = Standing { landlock: 4, ..Standing::default() };
            assert!(standing.knows_ports() && !standing.knows_addresses());
        }
    }
}
