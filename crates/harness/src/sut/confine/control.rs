//! The way between the first process in the sandbox and its supervisor: that it may begin, what
//! stands, and the descriptor on which calls wait for an answer.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::calls::{Filters, Net};
use super::kernel;
use super::policy::{Policy, Walls};

/// Most bytes of the message.
const MESSAGE: usize = 4096;

/// What keeps a program in, as found when it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Standing {
    pub(super) walls: Walls,
    /// Version of Landlock's interface, 0 for none.
    pub(super) landlock: i32,
    /// Whether calls are filtered.
    pub(super) filtered: bool,
    /// Whether attempts are seen.
    pub(super) watched: bool,
    /// Whether there is a `/proc` of its own.
    pub(super) proc: bool,
}

/// What the program may use of the network.
pub(super) fn net(policy: &Policy) -> Net {
    let is_full = policy.walls == Walls::Full;
    if !policy.addresses.is_empty() {
        // Without a network of its own, Landlock keeps it from connecting by itself.
        return if is_full { Net::Listed } else { Net::Tcp };
    }
    match (policy.ports.is_empty(), is_full) {
        (true, true) => Net::Empty,
        (true, false) => Net::Closed,
        (false, _) if policy.lookups => Net::TcpAndLookups,
        (false, _) => Net::Tcp,
    }
}

/// Lets the first process go on, which is where it belongs now.
pub(super) fn let_go(control: &OwnedFd) -> std::io::Result<()> {
    Ok(rustix::io::write(control, b"go").map(drop)?)
}

/// Waits to be let go. False when the supervisor is gone.
pub(super) fn wait(control: &OwnedFd) -> bool {
    loop {
        match rustix::io::read(control, &mut [0; 2]) {
            Err(rustix::io::Errno::INTR) => {}
            read => return matches!(read, Ok(1..)),
        }
    }
}

/// Filters the calls of this process from here on, and tells the supervisor what stands.
pub(super) fn filter(
    policy: &Policy,
    control: &OwnedFd,
    mut standing: Standing,
) -> Result<(), String> {
    let Some(filters) = Filters::new(net(policy)) else {
        return tell(control, standing, None);
    };
    for program in &filters.refusing {
        if let Err(error) = seccompiler::apply_filter(program) {
            if policy.walls == Walls::Full {
                return Err(format!("cannot filter system calls: {error}"));
            }
            return tell(control, standing, None);
        }
    }
    standing.filtered = true;
    // The last one: sending is not watched, everything after it may be.
    let listener = kernel::install_with_listener(&filters.watched).ok();
    if listener.is_none() {
        seccompiler::apply_filter(&filters.unwatched)
            .map_err(|error| format!("cannot filter system calls: {error}"))?;
    }
    standing.watched = listener.is_some();
    tell(control, standing, listener.as_ref().map(AsFd::as_fd))
}

/// Tells the supervisor what stands.
pub(super) fn tell(
    control: &OwnedFd,
    standing: Standing,
    listener: Option<BorrowedFd<'_>>,
) -> Result<(), String> {
    let message = serde_json::to_vec(&standing).map_err(|error| error.to_string())?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = listener.into_iter().collect();
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    sendmsg(control, &[IoSlice::new(&message)], &mut ancillary, SendFlags::empty())
        .map(drop)
        .map_err(|error| format!("cannot reach the supervisor: {error}"))
}

/// What stands, and the listener where calls wait. `None` when the process ended without a word.
pub(super) fn hear(control: BorrowedFd<'_>) -> Option<(Standing, Option<OwnedFd>)> {
    let mut message = [0; MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let mut parts = [IoSliceMut::new(&mut message)];
    let length = recvmsg(control, &mut parts, &mut ancillary, flags).ok()?.bytes;
    let listener = ancillary.drain().find_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Some((serde_json::from_slice(message.get(..length)?).ok()?, listener))
}
