//! Brings up the loopback interface of a new network namespace, where it starts down.

use std::fs::File;
use std::io::{Error, Read as _, Result, Write as _};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Index of the loopback interface in every network namespace.
const LOOPBACK: u32 = 1;

/// Length of a netlink message that changes an interface: the header and `ifinfomsg`.
const MESSAGE: u32 = 32;

/// Brings the interface up, which assigns `127.0.0.1` and `::1`. Needs `CAP_NET_ADMIN` in this
/// network namespace.
pub(super) fn bring_up() -> Result<()> {
    // Protocol 0 is NETLINK_ROUTE, for which rustix has no constant.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut socket = File::from(socket);
    socket.write_all(&link_up_message())?;
    let mut answer = [0; 256];
    let read = socket.read(&mut answer)?;
    match reply_error(&answer[..read]) {
        Some(0) => Ok(()),
        Some(error) => Err(Error::from_raw_os_error(-error)),
        None => Err(Error::other("the kernel said nothing of use about the loopback interface")),
    }
}

fn link_up_message() -> Vec<u8> {
    const UP: u32 = libc::IFF_UP.cast_unsigned();
    // NLM_F_REQUEST and NLM_F_ACK.
    const FLAGS: u16 = 1 | 4;
    let mut message = MESSAGE.to_ne_bytes().to_vec();
    message.extend(libc::RTM_NEWLINK.to_ne_bytes());
    message.extend(FLAGS.to_ne_bytes());
    // Sequence number, and the sender's port, which the kernel fills in.
    message.extend([1_u32, 0].map(u32::to_ne_bytes).concat());
    // Unspecified address family and device type.
    message.extend([0; 4]);
    // Interface flags, and the mask of flags to change.
    message.extend([LOOPBACK, UP, UP].map(u32::to_ne_bytes).concat());
    message
}

/// Returns the error number in a reply: negative, or 0 for success.
fn reply_error(answer: &[u8]) -> Option<i32> {
    // `nlmsghdr` is 16 bytes with the type at offset 4; `nlmsgerr` follows it and starts with the
    // error.
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    let error = i32::from_ne_bytes(*answer.get(16..)?.first_chunk()?);
    (i32::from(kind) == libc::NLMSG_ERROR).then_some(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_form_of_the_kernel() {
        assert_eq!(link_up_message().len(), MESSAGE as usize);
        let of = |kind: u16, error: i32| {
            let mut answer = 36_u32.to_ne_bytes().to_vec();
            answer.extend(kind.to_ne_bytes());
            answer.extend([0; 10]);
            answer.extend(error.to_ne_bytes());
            reply_error(&answer)
        };
        assert_eq!([of(2, 0), of(2, -1), of(3, 0)], [Some(0), Some(-1), None]);
        assert_eq!(reply_error(&[0; 12]), None);
    }
}
