//! The system calls a confined program may not make, and those the supervisor inspects before the
//! kernel continues them. Builds rule tables and seccomp programs; installs nothing.
//!
//! A seccomp filter sees only the numbers in a call's arguments. What is passed by pointer (paths,
//! addresses) is inspected by the supervisor, for evidence and for better errors. That inspection
//! is never the only barrier between the program and a file, because the kernel reads the memory
//! again afterwards (TOCTOU). With namespaces, addresses are not read twice: the supervisor makes
//! the connection itself.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the kernel's numbers, whose types differ from machine to machine"
)]
#![allow(
    clippy::unnecessary_cast,
    reason = "the kernel's numbers, whose types differ from machine to machine"
)]

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// Network access of a program, as far as system calls are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NetworkAccess {
    /// An empty network namespace.
    Empty,
    /// A network namespace with a loopback interface, on which the program may listen.
    Loopback,
    /// An empty network namespace. TCP sockets are created outside by the supervisor, which
    /// connects them to listed addresses.
    Listed,
    /// A network namespace with a loopback interface. For a listed address, the supervisor replaces
    /// the program's socket with one created outside.
    LoopbackAndListed,
    /// The host's network, none of which may be used.
    Denied,
    /// The host's network, TCP only.
    Tcp,
    /// TCP, plus UDP for name lookups.
    TcpAndLookups,
}

impl NetworkAccess {
    /// Returns true if the program has its own network namespace.
    pub(super) const fn has_own_namespace(self) -> bool {
        matches!(self, Self::Empty | Self::Loopback | Self::Listed | Self::LoopbackAndListed)
    }

    /// Returns true if the namespace has a loopback interface.
    pub(super) const fn has_loopback(self) -> bool {
        matches!(self, Self::Loopback | Self::LoopbackAndListed)
    }

    /// Returns true if listed addresses are reached through sockets created outside.
    const fn has_listed_addresses(self) -> bool {
        matches!(self, Self::Listed | Self::LoopbackAndListed)
    }
}

/// Calls that no program under test needs. An attempt is recorded as evidence.
pub(super) const DENIED_CALLS: &[(i64, &str)] = &[
    (libc::SYS_ptrace, "ptrace"),
    (libc::SYS_process_vm_readv, "process_vm_readv"),
    (libc::SYS_process_vm_writev, "process_vm_writev"),
    (libc::SYS_process_madvise, "process_madvise"),
    (libc::SYS_pidfd_getfd, "pidfd_getfd"),
    (libc::SYS_kcmp, "kcmp"),
    (libc::SYS_keyctl, "keyctl"),
    (libc::SYS_add_key, "add_key"),
    (libc::SYS_request_key, "request_key"),
    (libc::SYS_bpf, "bpf"),
    (libc::SYS_userfaultfd, "userfaultfd"),
    (libc::SYS_mount, "mount"),
    (libc::SYS_umount2, "umount2"),
    (libc::SYS_pivot_root, "pivot_root"),
    (libc::SYS_chroot, "chroot"),
    (libc::SYS_move_mount, "move_mount"),
    (libc::SYS_open_tree, "open_tree"),
    (libc::SYS_fsopen, "fsopen"),
    (libc::SYS_fsconfig, "fsconfig"),
    (libc::SYS_fsmount, "fsmount"),
    (libc::SYS_fspick, "fspick"),
    (libc::SYS_mount_setattr, "mount_setattr"),
    (libc::SYS_unshare, "unshare"),
    (libc::SYS_setns, "setns"),
    (libc::SYS_shmget, "shmget"),
    (libc::SYS_shmat, "shmat"),
    (libc::SYS_shmctl, "shmctl"),
    (libc::SYS_semget, "semget"),
    (libc::SYS_semop, "semop"),
    (libc::SYS_semtimedop, "semtimedop"),
    (libc::SYS_semctl, "semctl"),
    (libc::SYS_msgget, "msgget"),
    (libc::SYS_msgsnd, "msgsnd"),
    (libc::SYS_msgrcv, "msgrcv"),
    (libc::SYS_msgctl, "msgctl"),
    (libc::SYS_kexec_load, "kexec_load"),
    (libc::SYS_init_module, "init_module"),
    (libc::SYS_finit_module, "finit_module"),
    (libc::SYS_delete_module, "delete_module"),
    (libc::SYS_reboot, "reboot"),
    (libc::SYS_swapon, "swapon"),
    (libc::SYS_swapoff, "swapoff"),
    (libc::SYS_acct, "acct"),
    (libc::SYS_quotactl, "quotactl"),
    (libc::SYS_quotactl_fd, "quotactl_fd"),
    (libc::SYS_settimeofday, "settimeofday"),
    (libc::SYS_clock_settime, "clock_settime"),
    (libc::SYS_adjtimex, "adjtimex"),
    (libc::SYS_clock_adjtime, "clock_adjtime"),
    (libc::SYS_sethostname, "sethostname"),
    (libc::SYS_setdomainname, "setdomainname"),
    (libc::SYS_open_by_handle_at, "open_by_handle_at"),
    (libc::SYS_fanotify_init, "fanotify_init"),
    (libc::SYS_fanotify_mark, "fanotify_mark"),
    (libc::SYS_vhangup, "vhangup"),
    (libc::SYS_syslog, "syslog"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_iopl, "iopl"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_ioperm, "ioperm"),
];

/// Calls that programs use for speed and can do without; they fail with `ENOSYS`. A filter cannot
/// inspect their arguments, or they create sockets and namespaces that bypass the other rules.
const UNSUPPORTED_CALLS: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_perf_event_open,
];

const SETUID: u64 = 0o4000;
const SETGID: u64 = 0o2000;

/// Mask for the type of a socket; the higher bits are flags such as `SOCK_CLOEXEC`.
const SOCKET_TYPE: u64 = 0xf;

/// The seccomp programs for one process.
pub(super) struct SeccompFilters {
    /// Filters that deny calls without recording them.
    pub(super) denying: Vec<BpfProgram>,
    /// Filter whose matching calls wait for the supervisor. If the kernel does not support that,
    /// [`SeccompFilters::unwatched`] is installed instead.
    pub(super) watched: BpfProgram,
    /// Filter that denies what the supervisor would deny by the numeric arguments alone.
    pub(super) unwatched: BpfProgram,
}

/// The CPU architecture of this build; `None` if the library has no filters for it.
fn architecture() -> Option<TargetArch> {
    std::env::consts::ARCH.try_into().ok()
}

impl SeccompFilters {
    /// Builds the filters; `None` if the architecture has none.
    pub(super) fn new(net: NetworkAccess) -> Option<Self> {
        let closed = merge_rules(denied_rules(net), rules_denied_by_argument());
        let mut refusing =
            vec![compile(unsupported_rules(), SeccompAction::Errno(libc::ENOSYS as u32))?];
        refusing.push(compile(unrecorded_rules(net), SeccompAction::Errno(libc::EPERM as u32))?);
        // The x32 ABI reaches the same kernel functions with call numbers missing from these
        // tables.
        #[cfg(target_arch = "x86_64")]
        refusing.push(deny_x32());
        let unwatched = compile(closed.clone(), SeccompAction::Errno(libc::EPERM as u32))?;
        // seccompiler has no `SECCOMP_RET_USER_NOTIF` action. Compile with the one for tracers,
        // then patch its return value.
        let trace = SeccompAction::Trace(0);
        let mut watched = compile(merge_rules(closed, inspected_rules(net)), trace.clone())?;
        let trace = u32::from(trace);
        for step in &mut watched {
            if step.code == (libc::BPF_RET | libc::BPF_K) as u16 && step.k == trace {
                step.k = libc::SECCOMP_RET_USER_NOTIF;
            }
        }
        Some(Self { denying: refusing, watched, unwatched })
    }
}

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

fn compile(rules: SyscallRules, action: SeccompAction) -> Option<BpfProgram> {
    // The tables list what to deny or inspect, so a call without a matching rule is allowed.
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture()?).ok()?;
    filter.try_into().ok()
}

/// Builds a condition on the lower 32 bits of an argument: flags and families are `int`, and the
/// kernel ignores the upper half.
fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> SeccompCondition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        .expect("every argument in these tables is one of six")
}

fn arg_equals(argument: u8, value: u64) -> SeccompCondition {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn arg_differs(argument: u8, value: u64) -> SeccompCondition {
    condition(argument, SeccompCmpOp::Ne, value)
}

/// Matches if all of these bits are set.
fn arg_has_bits(argument: u8, bits: u64) -> SeccompCondition {
    condition(argument, SeccompCmpOp::MaskedEq(bits), bits)
}

fn rule<const N: usize>(conditions: [SeccompCondition; N]) -> SeccompRule {
    SeccompRule::new(conditions.into()).expect("every rule in these tables has conditions")
}

fn unsupported_rules() -> SyscallRules {
    UNSUPPORTED_CALLS.iter().map(|&number| (number, Vec::new())).collect()
}

/// Calls denied without evidence, because programs make them in good faith.
fn unrecorded_rules(net: NetworkAccess) -> SyscallRules {
    let mut rules = mode_rules(SETGID);
    let [unix, datagram] = [libc::AF_UNIX, libc::SOCK_DGRAM].map(|it| it as u64);
    let of_type = |kind| condition(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind);
    // Each datagram on a Unix socket can name another socket in the file system, with no `connect`
    // call to inspect. Blocking them costs `syslog` and the like, which has no receiver in the
    // sandbox anyway.
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        rules.insert(call, vec![rule([arg_equals(0, unix), of_type(datagram)])]);
    }
    // Fast Open defers the connection until data is sent, past the check on `connect`.
    let [tcp, deferred] = [libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT].map(|it| it as u64);
    rules.insert(libc::SYS_setsockopt, vec![rule([arg_equals(1, tcp), arg_equals(2, deferred)])]);
    if net.has_listed_addresses() {
        // Sockets created outside would reveal the host's network interfaces.
        let [first, last] = INTERFACE_REQUESTS;
        let interfaces = [(SeccompCmpOp::Ge, first), (SeccompCmpOp::Le, last)];
        let interfaces = interfaces.map(|(operator, value)| condition(1, operator, value));
        rules.insert(libc::SYS_ioctl, vec![rule(interfaces)]);
    }
    if net == NetworkAccess::Tcp {
        // Every name lookup starts with a datagram socket, so a denied one is not evidence.
        let sockets = [libc::AF_INET, libc::AF_INET6]
            .map(|family| rule([arg_equals(0, family as u64), of_type(datagram)]));
        rules.entry(libc::SYS_socket).or_default().extend(sockets);
    }
    rules
}

/// Range of `ioctl` requests that query or change network interfaces.
const INTERFACE_REQUESTS: [u64; 2] = [0x8910, 0x89ff];

/// Calls that set a file's mode, with the index of the mode argument.
const MODE_CALLS: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_openat, 3),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Returns the index of the argument with `O_CREAT`, for calls that open files. Without that flag
/// the mode argument is whatever happens to be in the register.
fn creation_flags_argument(number: i64) -> Option<u8> {
    match number {
        libc::SYS_openat => Some(2),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => Some(1),
        _ => None,
    }
}

/// Rules for calls that would give a file a mode with this bit.
fn mode_rules(bit: u64) -> SyscallRules {
    let mode = |&(number, mode): &(i64, u8)| {
        let rule = match creation_flags_argument(number) {
            Some(flags) => {
                rule([arg_has_bits(flags, libc::O_CREAT as u64), arg_has_bits(mode, bit)])
            }
            None => rule([arg_has_bits(mode, bit)]),
        };
        (number, vec![rule])
    };
    MODE_CALLS.iter().map(mode).collect()
}

/// `clone` flags that create namespaces.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// `ioctl` requests that push characters into a terminal's input.
const TERMINAL_INPUT: [u64; 2] = [libc::TIOCSTI as u64, libc::TIOCLINUX as u64];

/// Calls that send data, with the index of the flags argument.
const SEND_CALLS: [(i64, u8); 3] =
    [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];

const FAST_OPEN: u64 = libc::MSG_FASTOPEN as u64;

/// Socket options with which a program chooses the route of its packets: through other machines, or
/// over another interface, where the same address may belong to a different host.
const ROUTING_OPTIONS: &[(i32, i32)] = &[
    (libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
    (libc::SOL_SOCKET, 62),   // SO_BINDTOIFINDEX
    (libc::IPPROTO_IP, 50),   // IP_UNICAST_IF
    (libc::IPPROTO_IPV6, 76), // IPV6_UNICAST_IF
    (libc::IPPROTO_IP, libc::IP_OPTIONS),
    (libc::IPPROTO_IPV6, libc::IPV6_RTHDR),
    (libc::IPPROTO_IPV6, libc::IPV6_RTHDRDSTOPTS),
    (libc::IPPROTO_IPV6, libc::IPV6_HOPOPTS),
    (libc::IPPROTO_IPV6, libc::IPV6_DSTOPTS),
    // An older option that sets all of the above at once.
    (libc::IPPROTO_IPV6, libc::IPV6_2292PKTOPTIONS),
];

/// Calls denied for certain arguments only, and recorded as evidence; [`denial_reason`] describes
/// which.
fn rules_denied_by_argument() -> SyscallRules {
    let mut rules = mode_rules(SETUID);
    let namespaces =
        NAMESPACES.map(|flag| rule([arg_has_bits(0, u64::from(flag.cast_unsigned()))]));
    rules.insert(libc::SYS_clone, namespaces.into());
    rules.extend(
        SEND_CALLS.map(|(number, flags)| (number, vec![rule([arg_has_bits(flags, FAST_OPEN)])])),
    );
    rules.insert(
        libc::SYS_ioctl,
        TERMINAL_INPUT.map(|request| rule([arg_equals(1, request)])).into(),
    );
    let ways = ROUTING_OPTIONS
        .iter()
        .map(|&(level, name)| rule([arg_equals(1, level as u64), arg_equals(2, name as u64)]));
    rules.insert(libc::SYS_setsockopt, ways.collect());
    let on_files = INODE_COMMANDS.map(|command| rule([arg_equals(1, command as u64)]));
    rules.insert(libc::SYS_fcntl, on_files.into());
    rules
}

/// `fcntl` commands that act on the file behind a descriptor, even one that only reads: leases stall
/// every other process that opens it, notifications and hints are kept in the inode.
const INODE_COMMANDS: [i32; 4] = [
    libc::F_SETLEASE,
    libc::F_NOTIFY,
    1036, // F_SET_RW_HINT
    1038, // F_SET_FILE_RW_HINT
];

/// Returns why a call is denied by its numeric arguments alone; covers calls that are not forbidden
/// entirely.
pub(super) fn denial_reason(number: i64, arguments: &[u64; 6]) -> Option<&'static str> {
    // Must mirror `closed_for_some`, or a call would be denied without
    // evidence.
    let has = |argument: u8, bits: u64| arguments[usize::from(argument)] & bits == bits;
    let creates =
        creation_flags_argument(number).is_none_or(|flags| has(flags, libc::O_CREAT as u64));
    if MODE_CALLS.iter().any(|&(known, mode)| known == number && creates && has(mode, SETUID)) {
        return Some("that gives a file the setuid bit");
    }
    let is_namespace = |flag: &i32| has(0, u64::from(flag.cast_unsigned()));
    if number == libc::SYS_clone && NAMESPACES.iter().any(is_namespace) {
        return Some("clone into a namespace of its own");
    }
    if SEND_CALLS.iter().any(|&(known, flags)| known == number && has(flags, FAST_OPEN)) {
        return Some("that connects while it sends (MSG_FASTOPEN)");
    }
    let option = || [arguments[1], arguments[2]].map(|it| it as i32);
    if number == libc::SYS_setsockopt
        && ROUTING_OPTIONS.iter().any(|&(level, name)| option() == [level, name])
    {
        return Some("setsockopt that sends packets another way");
    }
    if number == libc::SYS_fcntl && INODE_COMMANDS.contains(&(arguments[1] as i32)) {
        return Some("fcntl that leases or marks a file");
    }
    let writes_input = || TERMINAL_INPUT.contains(&(arguments[1] & u64::from(u32::MAX)));
    (number == libc::SYS_ioctl && writes_input()).then_some("ioctl that types into the terminal")
}

/// Merges two tables; a call in both gets the rules of each.
fn merge_rules(mut rules: SyscallRules, more: SyscallRules) -> SyscallRules {
    for (number, mut conditions) in more {
        let known = rules.entry(number).or_default();
        known.append(&mut conditions);
    }
    rules
}

/// Calls that are denied and recorded as evidence.
fn denied_rules(net: NetworkAccess) -> SyscallRules {
    let mut rules: SyscallRules =
        DENIED_CALLS.iter().map(|&(number, _)| (number, Vec::new())).collect();
    let [unix, inet, inet6, netlink] =
        [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|it| it as u64);
    let mut sockets = vec![
        rule([
            arg_differs(0, unix),
            arg_differs(0, inet),
            arg_differs(0, inet6),
            arg_differs(0, netlink),
        ]),
        // Programs list network interfaces over rtnetlink; every other netlink protocol is denied.
        rule([arg_equals(0, netlink), arg_differs(2, libc::NETLINK_ROUTE as u64)]),
    ];
    if net == NetworkAccess::Denied {
        sockets.extend([inet, inet6].map(|family| rule([arg_equals(0, family)])));
    }
    for family in [inet, inet6] {
        for kind in [libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP] {
            let kind = condition(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind as u64);
            sockets.push(rule([arg_equals(0, family), kind]));
        }
        // Protocol 0 is the default for the socket type. Others, such as MPTCP, are not covered by
        // Landlock's TCP rules.
        let [tcp, udp] = [libc::IPPROTO_TCP, libc::IPPROTO_UDP].map(|it| it as u64);
        sockets.push(rule([
            arg_equals(0, family),
            arg_differs(2, 0),
            arg_differs(2, tcp),
            arg_differs(2, udp),
        ]));
    }
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, vec![rule([arg_differs(0, unix)])]);
    if !matches!(net, NetworkAccess::Empty | NetworkAccess::Loopback) {
        // Landlock controls `bind`, but `listen` on an unbound socket picks a port without one.
        rules.insert(libc::SYS_listen, Vec::new());
    }
    rules
}

/// Calls that the supervisor inspects and then denies or lets the kernel continue.
fn inspected_rules(net: NetworkAccess) -> SyscallRules {
    // Opens with O_DIRECTORY skip the supervisor; the kernel's own rules decide about them.
    let folder = libc::O_DIRECTORY as u64;
    let no_folder = |flags| rule([condition(flags, SeccompCmpOp::MaskedEq(folder), 0)]);
    let mut rules = SyscallRules::from([
        (libc::SYS_openat, vec![no_folder(2)]),
        (libc::SYS_execve, Vec::new()),
        (libc::SYS_execveat, Vec::new()),
        (libc::SYS_connect, Vec::new()),
        // Locks of files that the machine shares would outlast a case's welcome.
        (libc::SYS_flock, Vec::new()),
        // Process 0 means the caller's own process group, and for `prlimit64` the caller itself.
        (libc::SYS_kill, vec![rule([arg_differs(0, 0)])]),
        (libc::SYS_rt_sigqueueinfo, Vec::new()),
        (libc::SYS_prlimit64, vec![rule([arg_differs(0, 0)])]),
    ]);
    if net == NetworkAccess::Listed {
        let stream = condition(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), libc::SOCK_STREAM as u64);
        let family = |family: i32| rule([arg_equals(0, family as u64), stream.clone()]);
        rules.insert(libc::SYS_socket, [libc::AF_INET, libc::AF_INET6].map(family).into());
    }
    if net.has_loopback() {
        // Landlock denies every `bind` on TCP. The supervisor binds instead, to the address it has
        // read.
        rules.insert(libc::SYS_bind, Vec::new());
    }
    if net.has_own_namespace() {
        // `sendto` without an address goes to the connected peer, which was checked on `connect`.
        let address = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)
            .expect("it is one of six arguments");
        rules.insert(libc::SYS_sendto, vec![rule([address])]);
    }
    #[cfg(target_arch = "x86_64")]
    rules.extend([(libc::SYS_open, vec![no_folder(1)]), (libc::SYS_creat, Vec::new())]);
    rules
}

/// Denies calls of the x32 ABI, whose numbers have this bit set.
#[cfg(target_arch = "x86_64")]
fn deny_x32() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned(),
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates a filter for a call, like the kernel's interpreter as far as filters use it.
    fn decision(program: &[sock_filter], number: i64, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(u32::try_from(number).unwrap().to_ne_bytes());
        data.extend(
            match architecture().unwrap() {
                TargetArch::x86_64 => 0xc000_003e_u32,
                TargetArch::aarch64 => 0xc000_00b7,
                TargetArch::riscv64 => 0xc000_00f3,
            }
            .to_ne_bytes(),
        );
        data.extend(0_u64.to_ne_bytes());
        data.extend(arguments.iter().flat_map(|argument| argument.to_ne_bytes()));
        let (mut at, mut held) = (0, 0_u32);
        loop {
            let step = &program[at];
            at += 1;
            let code = u32::from(step.code);
            match code & 7 {
                libc::BPF_LD => {
                    let bytes = &data[step.k as usize..][..4];
                    held = u32::from_ne_bytes(bytes.try_into().unwrap());
                }
                libc::BPF_ALU => held &= step.k,
                libc::BPF_RET => return step.k,
                _ if code & 0xf0 == libc::BPF_JA => at += step.k as usize,
                _ => {
                    let holds = match code & 0xf0 {
                        libc::BPF_JEQ => held == step.k,
                        libc::BPF_JGE => held >= step.k,
                        libc::BPF_JGT => held > step.k,
                        other => panic!("unknown jump {other}"),
                    };
                    at += usize::from(if holds { step.jt } else { step.jf });
                }
            }
        }
    }

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    const WAITS: u32 = libc::SECCOMP_RET_USER_NOTIF;

    /// The strictest decision of all programs wins, as in the kernel.
    fn decided(net: NetworkAccess, number: i64, arguments: [u64; 6]) -> u32 {
        let filters = SeccompFilters::new(net).unwrap();
        let programs = filters.denying.iter().chain([&filters.watched]);
        programs.map(|program| decision(program, number, arguments)).min().unwrap()
    }

    fn refused(error: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | error.cast_unsigned()
    }

    fn socket(net: NetworkAccess, family: i32, kind: i32, protocol: i32) -> u32 {
        let arguments = [family, kind, protocol, 0, 0, 0].map(|it| u64::from(it.cast_unsigned()));
        decided(net, libc::SYS_socket, arguments)
    }

    #[test]
    fn sockets_are_of_the_plain_kinds() {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        for net in [NetworkAccess::Empty, NetworkAccess::Tcp, NetworkAccess::TcpAndLookups] {
            for family in [libc::AF_INET, libc::AF_INET6] {
                assert_eq!(socket(net, family, libc::SOCK_STREAM | flags, 0), ALLOWED);
                assert_eq!(socket(net, family, libc::SOCK_STREAM, libc::IPPROTO_TCP), ALLOWED);
                assert_eq!(socket(net, family, libc::SOCK_STREAM, libc::IPPROTO_MPTCP), WAITS);
                assert_eq!(socket(net, family, libc::SOCK_STREAM, 132), WAITS, "SCTP");
                assert_eq!(socket(net, family, libc::SOCK_RAW | flags, 1), WAITS);
                let udp = if net == NetworkAccess::Tcp { refused(libc::EPERM) } else { ALLOWED };
                assert_eq!(socket(net, family, libc::SOCK_DGRAM | flags, 0), udp, "{net:?}");
            }
            for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
                assert_eq!(socket(net, libc::AF_UNIX, kind, 0), ALLOWED);
            }
            let datagram = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
            assert_eq!(socket(net, libc::AF_UNIX, datagram, 0), refused(libc::EPERM));
            assert_eq!(socket(net, libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE), ALLOWED);
            assert_eq!(socket(net, libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT), WAITS);
            for family in [libc::AF_VSOCK, libc::AF_PACKET, libc::AF_ALG, libc::AF_TIPC, 45] {
                assert_eq!(socket(net, family, libc::SOCK_STREAM, 0), WAITS, "{family}");
            }
        }
        assert_eq!(socket(NetworkAccess::Denied, libc::AF_INET, libc::SOCK_STREAM, 0), WAITS);
        assert_eq!(socket(NetworkAccess::Denied, libc::AF_UNIX, libc::SOCK_STREAM, 0), ALLOWED);
        assert_eq!(decided(NetworkAccess::Empty, libc::SYS_listen, [0; 6]), ALLOWED);
        assert_eq!(decided(NetworkAccess::Tcp, libc::SYS_listen, [0; 6]), WAITS);
        let fast = [3, 0, 0, u64::from(libc::MSG_FASTOPEN.cast_unsigned()), 1, 16];
        assert_eq!(decided(NetworkAccess::Tcp, libc::SYS_sendto, fast), WAITS);
        assert!(denial_reason(libc::SYS_sendto, &fast).is_some());
        assert_eq!(decided(NetworkAccess::Tcp, libc::SYS_sendto, [3, 0, 0, 0, 0, 0]), ALLOWED);
    }

    #[test]
    fn sockets_for_listed_addresses_are_made_by_the_supervisor() {
        let stream = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
        for family in [libc::AF_INET, libc::AF_INET6] {
            assert_eq!(socket(NetworkAccess::Listed, family, stream, 0), WAITS);
            assert_eq!(socket(NetworkAccess::Listed, family, stream, libc::IPPROTO_MPTCP), WAITS);
            assert_eq!(socket(NetworkAccess::Listed, family, libc::SOCK_DGRAM, 0), ALLOWED);
        }
        assert_eq!(decided(NetworkAccess::Listed, libc::SYS_listen, [0; 6]), WAITS);
        let ioctl =
            |request| decided(NetworkAccess::Listed, libc::SYS_ioctl, [3, request, 0, 0, 0, 0]);
        let (interfaces, waiting) = (0x8912, 0x541b);
        assert_eq!([ioctl(interfaces), ioctl(waiting)], [refused(libc::EPERM), ALLOWED]);
        assert_eq!(
            decided(NetworkAccess::Empty, libc::SYS_ioctl, [3, interfaces, 0, 0, 0, 0]),
            ALLOWED
        );
        let option = |level: i32, name: i32| {
            let arguments = [3, level, name, 0, 0, 0].map(|it| u64::from(it.cast_unsigned()));
            let is_refused = denial_reason(libc::SYS_setsockopt, &arguments).is_some();
            (decided(NetworkAccess::Listed, libc::SYS_setsockopt, arguments), is_refused)
        };
        for &(level, name) in ROUTING_OPTIONS {
            assert_eq!(option(level, name), (WAITS, true));
        }
        let deferred = option(libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT);
        assert_eq!(deferred, (refused(libc::EPERM), false));
        assert_eq!(option(libc::IPPROTO_TCP, libc::TCP_NODELAY), (ALLOWED, false));
        assert_eq!(option(libc::SOL_SOCKET, libc::SO_KEEPALIVE), (ALLOWED, false));
    }

    #[test]
    fn ports_of_its_own_are_had_by_the_supervisor() {
        for (net, listen) in
            [(NetworkAccess::Loopback, ALLOWED), (NetworkAccess::LoopbackAndListed, WAITS)]
        {
            assert_eq!(socket(net, libc::AF_INET, libc::SOCK_STREAM, 0), ALLOWED);
            assert_eq!(socket(net, libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP), WAITS);
            assert_eq!(decided(net, libc::SYS_bind, [0; 6]), WAITS);
            assert_eq!(decided(net, libc::SYS_connect, [0; 6]), WAITS);
            assert_eq!(decided(net, libc::SYS_listen, [0; 6]), listen);
            assert!(net.has_own_namespace());
        }
        // Sockets created outside would also reveal the host's interfaces here.
        let interfaces = [3, 0x8912, 0, 0, 0, 0];
        assert_eq!(
            decided(NetworkAccess::LoopbackAndListed, libc::SYS_ioctl, interfaces),
            refused(libc::EPERM)
        );
        assert_eq!(decided(NetworkAccess::Empty, libc::SYS_bind, [0; 6]), ALLOWED);
    }

    #[test]
    fn modes_and_namespaces_are_looked_at_by_bits() {
        let mode = |mode| decided(NetworkAccess::Empty, libc::SYS_fchmodat, [0, 0, mode, 0, 0, 0]);
        assert_eq!(mode(0o755), ALLOWED);
        assert_eq!([mode(0o4755), mode(0o2755)], [WAITS, refused(libc::EPERM)]);
        assert!(denial_reason(libc::SYS_fchmodat, &[0, 0, 0o4755, 0, 0, 0]).is_some());
        assert!(denial_reason(libc::SYS_fchmodat, &[0, 0, 0o755, 0, 0, 0]).is_none());
        let open = |flags: i32, mode| {
            let flags = u64::from(flags.cast_unsigned());
            decided(NetworkAccess::Empty, libc::SYS_openat, [0, 0, flags, mode, 0, 0])
        };
        assert_eq!(open(libc::O_RDONLY, 0o4755), WAITS);
        assert_eq!(open(libc::O_WRONLY | libc::O_CREAT, 0o644), WAITS);
        assert_eq!(open(libc::O_WRONLY | libc::O_CREAT, 0o4755), WAITS);
        let created = libc::O_WRONLY | libc::O_CREAT;
        for (flags, is_refused) in [(created, true), (libc::O_RDONLY, false)] {
            let arguments = [0, 0, u64::from(flags.cast_unsigned()), 0o4755, 0, 0];
            assert_eq!(denial_reason(libc::SYS_openat, &arguments).is_some(), is_refused);
        }
        assert_eq!(open(libc::O_DIRECTORY, 0), ALLOWED);
        let clone = |flags: i32| {
            let flags = u64::from(flags.cast_unsigned());
            decided(NetworkAccess::Empty, libc::SYS_clone, [flags, 0, 0, 0, 0, 0])
        };
        assert_eq!(clone(libc::CLONE_VM | libc::CLONE_THREAD | libc::SIGCHLD), ALLOWED);
        assert_eq!(clone(libc::CLONE_NEWUSER | libc::SIGCHLD), WAITS);
        let new_user = [u64::from(libc::CLONE_NEWUSER.cast_unsigned()), 0, 0, 0, 0, 0];
        assert!(denial_reason(libc::SYS_clone, &new_user).is_some());
        assert!(denial_reason(libc::SYS_clone, &[0; 6]).is_none());
    }

    #[test]
    fn others_are_out_of_reach() {
        for (number, name) in DENIED_CALLS {
            assert_eq!(decided(NetworkAccess::Empty, *number, [0; 6]), WAITS, "{name}");
            let filters = SeccompFilters::new(NetworkAccess::Empty).unwrap();
            let without = decision(&filters.unwatched, *number, [0; 6]);
            assert_eq!(without, refused(libc::EPERM), "{name}");
        }
        assert_eq!(decided(NetworkAccess::Empty, libc::SYS_prlimit64, [0; 6]), ALLOWED);
        assert_eq!(decided(NetworkAccess::Empty, libc::SYS_prlimit64, [7, 0, 0, 0, 0, 0]), WAITS);
        for number in [libc::SYS_io_uring_setup, libc::SYS_clone3] {
            assert_eq!(decided(NetworkAccess::Empty, number, [0; 6]), refused(libc::ENOSYS));
        }
        for number in [libc::SYS_read, libc::SYS_write, libc::SYS_futex, libc::SYS_newfstatat] {
            assert_eq!(decided(NetworkAccess::Empty, number, [0; 6]), ALLOWED);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn there_is_no_second_interface() {
        let x32 = 0x4000_0000 + libc::SYS_read;
        assert_eq!(decided(NetworkAccess::Empty, x32, [0; 6]), refused(libc::ENOSYS));
    }
}
