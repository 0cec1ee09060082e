//! The supervisor on Windows: puts itself, and thereby everything it starts, into a job object with
//! limits that ends together with it. Files, network and other processes stay accessible to the
//! program.
//!
//! The only Windows file with unsafe code.
#![expect(unsafe_code, reason = "the system's interface is C")]

use std::ffi::OsString;
use std::io::{Error, Result};
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::process::Command;

use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
    JOB_OBJECT_LIMIT_JOB_MEMORY, JOB_OBJECT_LIMIT_JOB_TIME, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOB_OBJECT_LIMIT_PROCESS_MEMORY, JOB_OBJECT_LIMIT_PROCESS_TIME,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, INFINITE, OpenProcess, PROCESS_SYNCHRONIZE, WaitForSingleObject,
};

use super::EXIT_NOT_STARTED;
use super::error::SandboxError;
use super::policy::{SandboxLevel, SandboxPolicy};
use crate::limits::SandboxLimits;

/// Windows time units (100 ns) per second.
const TICKS: i64 = 10_000_000;

/// Runs the program and returns its exit code, or 255 if that does not fit. The first argument is
/// the process ID of the harness.
pub(super) fn run(arguments: &[OsString]) -> std::result::Result<u8, SandboxError> {
    let (harness, arguments) =
        arguments.split_first().ok_or(SandboxError::Argument("expected a process"))?;
    let (policy, program) = SandboxPolicy::from_arguments(arguments)?;
    let (name, arguments) =
        program.split_first().ok_or(SandboxError::Argument("expected a program after `--`"))?;
    let harness = harness.to_str().and_then(|number| number.parse().ok());
    let harness = harness.ok_or(SandboxError::Argument("expected the number of a process"))?;
    let harness = opened(harness).map_err(SandboxError::step("wait for the harness"))?;
    let limits = (policy.level != SandboxLevel::Off).then_some(&policy.limits);
    // The last handle closes with this process, however it ends; the system then kills everything
    // in the job.
    let _job = enter(limits).map_err(SandboxError::step("have a job object"))?;
    std::thread::spawn(move || {
        ended(&harness);
        leave()
    });
    let ended = Command::new(name).args(arguments).status();
    let ended = ended.map_err(|error| SandboxError::start(name, error))?;
    Ok(ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

/// Exits this process, and thereby ends the job.
#[expect(clippy::exit, reason = "no caller is left to return to")]
fn leave() -> ! {
    std::process::exit(EXIT_NOT_STARTED.into())
}

/// Creates a job object and puts this process into it. Processes cannot leave it.
fn enter(limits: Option<&SandboxLimits>) -> Result<OwnedHandle> {
    // SAFETY: no attributes, no name.
    let job = unsafe { CreateJobObjectW(std::ptr::null(), std::ptr::null()) };
    if job.is_null() {
        return Err(Error::last_os_error());
    }
    // SAFETY: the system just made it for this process.
    let job = unsafe { OwnedHandle::from_raw_handle(job) };
    let held = held(limits);
    let length = u32::try_from(size_of_val(&held)).map_err(Error::other)?;
    // SAFETY: the structure matches the information class, and outlives the call, which reads the
    // given number of bytes.
    let is_set = unsafe {
        SetInformationJobObject(
            job.as_raw_handle(),
            JobObjectExtendedLimitInformation,
            (&raw const held).cast(),
            length,
        )
    };
    // SAFETY: both handles are open; the process handle is a pseudo handle that needs no closing.
    let is_in = is_set != 0
        && unsafe { AssignProcessToJobObject(job.as_raw_handle(), GetCurrentProcess()) } != 0;
    if is_in { Ok(job) } else { Err(Error::last_os_error()) }
}

fn held(limits: Option<&SandboxLimits>) -> JOBOBJECT_EXTENDED_LIMIT_INFORMATION {
    let mut held = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    let basic = &mut held.BasicLimitInformation;
    basic.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    if let Some(limits) = limits {
        let bytes = |mib: u32| usize::try_from(u64::from(mib) << 20).unwrap_or(usize::MAX);
        basic.LimitFlags |= JOB_OBJECT_LIMIT_ACTIVE_PROCESS
            | JOB_OBJECT_LIMIT_JOB_MEMORY
            | JOB_OBJECT_LIMIT_JOB_TIME
            | JOB_OBJECT_LIMIT_PROCESS_MEMORY
            | JOB_OBJECT_LIMIT_PROCESS_TIME;
        // One extra for this process, which is in the job too.
        basic.ActiveProcessLimit = limits.processes.saturating_add(1);
        basic.PerProcessUserTimeLimit = i64::from(limits.cpu_seconds) * TICKS;
        basic.PerJobUserTimeLimit = i64::from(limits.total_cpu_seconds) * TICKS;
        held.ProcessMemoryLimit = bytes(limits.memory_mib);
        held.JobMemoryLimit = bytes(limits.total_memory_mib);
    }
    held
}

/// Opens a process in order to wait for its end.
fn opened(process: u32) -> Result<OwnedHandle> {
    // SAFETY: the arguments are plain numbers.
    let process = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, process) };
    if process.is_null() {
        return Err(Error::last_os_error());
    }
    // SAFETY: the system just opened it for this process.
    Ok(unsafe { OwnedHandle::from_raw_handle(process) })
}

/// Waits for the end of a process.
fn ended(process: &OwnedHandle) {
    // SAFETY: the handle is open as long as it is borrowed.
    unsafe { WaitForSingleObject(process.as_raw_handle(), INFINITE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_settings() {
        let limits = SandboxLimits { processes: 7, memory_mib: 3, ..SandboxLimits::default() };
        let held = held(Some(&limits));
        assert_eq!(held.BasicLimitInformation.ActiveProcessLimit, 8);
        assert_eq!(held.ProcessMemoryLimit, 3 << 20);
    }
}
