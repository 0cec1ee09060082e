//! Settings of the sandbox: how strictly it is enforced, and the limits of a program's processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Behaviour where a program cannot be kept in its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Sandbox {
    /// Nothing is run.
    Enforce,
    /// It is run with as much of the sandbox as there is, and the reports say what is missing.
    BestEffort,
    /// There is no sandbox: the program may do what its user may do.
    Off,
}

impl Default for Sandbox {
    fn default() -> Self {
        if cfg!(target_os = "linux") { Self::Enforce } else { Self::BestEffort }
    }
}

/// Limits of the processes of a program. Those that begin with `total` are of all processes of a case
/// together, and need a control group that Linux lets this user make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Most MiB of memory that one process may ask for.
    #[schemars(range(min = 16, max = 16_777_216))]
    pub memory_mib: u32,
    /// Most MiB of memory of all processes together, with what lies in `/tmp` and `/dev/shm`.
    #[schemars(range(min = 16, max = 16_777_216))]
    pub total_memory_mib: u32,
    /// Most processes and threads at a time, of all together.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub processes: u32,
    /// Most MiB of a file that one of them writes.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub file_mib: u32,
    /// Most seconds of processor time of one process.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub cpu_seconds: u32,
    /// Most seconds of processor time of all processes together.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub total_cpu_seconds: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_mib: 8192,
            total_memory_mib: 16_384,
            processes: 1024,
            file_mib: 1024,
            cpu_seconds: 3600,
            total_cpu_seconds: 7200,
        }
    }
}

impl Limits {
    /// Returns true if no limit was changed.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
