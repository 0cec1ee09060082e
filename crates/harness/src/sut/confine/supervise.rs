//! The process above the program: it passes stdio through, adopts every orphan below it, and
//! ends all of them when the program ends, when it is told to, or when the harness is gone.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::fd::AsFd as _;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;
use tokio::signal::unix::{SignalKind, signal};

use super::WORD;

/// Runs the program and returns its exit code, 128 + n when signal n killed it.
pub(super) fn run(arguments: &[OsString]) -> Result<u8, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| runtime.block_on(supervise(arguments)))
        .map_err(|error| format!("cannot supervise the program: {error}"))
}

async fn supervise(arguments: &[OsString]) -> std::io::Result<u8> {
    // Away from the terminal: its signals are for the harness, and it is not to be read from.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut ended = signal(SignalKind::child())?;
    let mut told = signal(SignalKind::terminate())?;
    // The harness holds the other end of stderr for as long as it lives: an error on this end
    // means that it was killed. Anything but a pipe cannot be watched.
    let stderr = std::io::stderr().as_fd().try_clone_to_owned()?;
    let harness = Sender::from_owned_fd_unchecked(stderr).ok();

    let mut command = Command::new(std::env::current_exe()?);
    command.args([WORD, "exec"]).args(arguments);
    // A group of its own can be killed as a whole.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let program = command.spawn()?;
    // From here on the program alone holds them, so that the harness sees when it closes them.
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;

    let program = Pid::from_child(&program);
    let mut code = None;
    while code.is_none() {
        tokio::select! {
            _ = ended.recv() => code = reap(program).code,
            _ = told.recv() => break,
            () = gone(harness.as_ref()) => break,
        }
    }
    end_all(program, &mut code).await;
    Ok(code.unwrap_or(NO_CODE))
}

/// When the program's own end was not seen.
const NO_CODE: u8 = 128 + 9;

async fn gone(harness: Option<&Sender>) {
    match harness {
        Some(harness) if harness.ready(Interest::ERROR).await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

struct Reaped {
    /// Exit code of the program, when it was among them.
    code: Option<u8>,
    /// Whether children are left.
    left: bool,
}

/// Collects every child that has ended, adopted ones too.
fn reap(program: Pid) -> Reaped {
    let mut code = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((child, status))) if child == program => {
                let number = status.exit_status().or(status.terminating_signal().map(|n| 128 + n));
                code = number.and_then(|number| u8::try_from(number).ok());
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Reaped { code, left: true },
            Err(_) => return Reaped { code, left: false },
        }
    }
}

/// Kills the children, then what they leave behind, until there is nothing left. Only children
/// are killed: nobody else can reap them, so that a number always means the same process.
async fn end_all(program: Pid, code: &mut Option<u8>) {
    let mut pause = Duration::from_millis(1);
    loop {
        kill_children(program);
        let reaped = reap(program);
        *code = code.or(reaped.code);
        if !reaped.left {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

#[cfg(target_os = "linux")]
fn kill_children(_program: Pid) {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return;
    };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for number in numbers.filter(|&number| parent(number) == Some(own)) {
        if let Some(child) = Pid::from_raw(number) {
            kill_group(child);
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
    }
}

/// Kills the process group of a child, if it is not this process's own. The kernel does that at once for
/// all of them, and nobody can fork meanwhile: killed one by one, processes that fork and exit faster
/// than this one looks would never end.
#[cfg(target_os = "linux")]
fn kill_group(child: Pid) {
    match rustix::process::getpgid(Some(child)) {
        Ok(group) if group != rustix::process::getpgrp() => {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        _ => {}
    }
}

#[cfg(target_os = "linux")]
fn parent(process: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    // The second field is the name in brackets, which may hold anything.
    let after = stat.iter().rposition(|&byte| byte == b')')?;
    std::str::from_utf8(&stat[after + 1..]).ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// Elsewhere orphans are not adopted: the program's process group is what can be named.
#[cfg(not(target_os = "linux"))]
fn kill_children(program: Pid) {
    let _ = rustix::process::kill_process_group(program, Signal::KILL);
}
