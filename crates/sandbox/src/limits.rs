//! Sandbox settings: how strictly it is enforced, and the resource limits of a program's processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Behaviour if the program cannot be fully sandboxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum SandboxMode {
    /// Run nothing.
    Enforce,
    /// Run with as much of the sandbox as the system supports; reports list what is missing.
    BestEffort,
    /// No sandbox: the program may do whatever its user may do.
    Off,
}

impl Default for SandboxMode {
    fn default() -> Self {
        if cfg!(target_os = "linux") { Self::Enforce } else { Self::BestEffort }
    }
}

/// Resource limits of a program's processes. Those with a `total` prefix apply to all processes of
/// a case together, and need a control group that Linux lets this user create, except that memory is
/// watched without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxLimits {
    /// Maximum memory of one process, in MiB: what it may allocate, and what it may use together with
    /// memory that it shares.
    #[schemars(range(min = 16, max = 16_777_216))]
    pub memory_mib: u32,
    /// Maximum memory of all processes together, in MiB, including files in `/tmp` and `/dev/shm`.
    #[schemars(range(min = 16, max = 16_777_216))]
    pub total_memory_mib: u32,
    /// Maximum number of processes and threads at a time, all together.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub processes: u32,
    /// Maximum size of a file that a process writes, in MiB.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub file_mib: u32,
    /// Maximum space on disk that all processes together may take in their writable folders, in MiB.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub disk_mib: u32,
    /// Maximum number of files and folders that all processes together may add to these folders.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub files: u32,
    /// Maximum CPU time of one process, in seconds.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub cpu_seconds: u32,
    /// Maximum CPU time of all processes together, in seconds.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub total_cpu_seconds: u32,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self {
            memory_mib: 8192,
            total_memory_mib: 16_384,
            processes: 1024,
            file_mib: 1024,
            disk_mib: 8192,
            files: 500_000,
            cpu_seconds: 3600,
            total_cpu_seconds: 7200,
        }
    }
}

impl SandboxLimits {
    /// Returns true if no limit was changed.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
