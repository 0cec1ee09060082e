//! The file system that a confined program sees: an empty one into which its granted paths are
//! bind-mounted. What was not granted does not exist in it.
//!
//! [`FileSystemView::of`] plans the view. [`mount_view`] sets it up, once, in a mount namespace of its own.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io::{Error, Result};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    unmount,
};

use super::kernel;
use super::policy::{PathGrants, SandboxPolicy};

/// Mount point of the host's file system while the view is being set up.
const HOST_ROOT: &str = "/.old";

/// Kernel files that reveal information about others or have side effects. Masked as container
/// runtimes do.
const MASKED_FILES: &[&str] = &[
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/kallsyms",
    "/proc/kmsg",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
];

/// The file of host names and addresses, which libraries read before sending queries.
const HOSTS: &str = "/etc/hosts";

/// The file mounted in its place.
pub(super) const OWN_HOSTS: &str = "/.hosts";

/// Devices that every program may use.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// Symlinks in `/dev` that programs expect.
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// In-memory folders of the program's own: writable, and discarded with it.
pub(super) const OWN_FOLDERS: &[&str] = &["/tmp", "/dev/shm"];

/// Folders with more entries than this are bound as a whole, and what is denied is masked. Binding
/// each entry separately would take as long as the program itself.
const MAX_SEPARATE_BINDS: usize = 200;

/// The paths of the file system that a program sees. Sorted, so that folders precede their
/// contents.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileSystemView {
    /// Bind-mounted from the same path on the host.
    pub(super) bound_paths: BTreeSet<PathBuf>,
    /// Bind-mounted and then masked by something unreadable.
    pub(super) masked_paths: BTreeSet<PathBuf>,
    /// Symlinks with their targets.
    pub(super) links: BTreeSet<(PathBuf, PathBuf)>,
    /// Folders in which only the names that are part of the view can be seen.
    pub(super) folders: BTreeSet<PathBuf>,
}

impl FileSystemView {
    /// Plans the view of these grants. `asked` contains the paths as given, which may traverse
    /// symlinks.
    pub(super) fn of(grants: &PathGrants, asked: &[PathBuf]) -> Self {
        let mut view = Self::default();
        // Number of visible entries per folder, to find those that are too large to bind piece by
        // piece.
        let mut crowds: HashMap<&Path, usize> = HashMap::new();
        for path in grants.whole.iter().chain(&grants.listable).chain(&grants.links) {
            if let Some(above) = path.parent() {
                *crowds.entry(above).or_default() += 1;
            }
        }
        for folder in &grants.listable {
            if view.is_bound(folder) {
                continue;
            }
            if crowds.get(folder.as_path()).is_some_and(|&count| count > MAX_SEPARATE_BINDS) {
                let denied = grants.denied.iter().filter(|path| path.starts_with(folder));
                view.masked_paths.extend(denied.cloned());
                view.bound_paths.insert(folder.clone());
            } else {
                view.folders.insert(folder.clone());
            }
        }
        // Sorted so that a folder is bound before the paths below it, which then need no mount.
        let mut whole: Vec<&PathBuf> = grants.whole.iter().collect();
        whole.sort();
        for path in whole {
            // Both are set up afresh, not taken from the host.
            let is_made = ["/proc", "/dev"].iter().any(|folder| path.starts_with(folder));
            if !is_made && !view.is_bound(path) {
                view.bound_paths.insert(path.clone());
            }
        }
        for path in &grants.links {
            if !view.is_bound(path)
                && let Ok(target) = path.read_link()
            {
                view.links.insert((path.clone(), target));
            }
        }
        for path in asked {
            view.add_links(path);
        }
        view
    }

    fn is_bound(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.bound_paths.contains(above))
    }

    /// Adds the symlinks that a path traverses, one after the other.
    fn add_links(&mut self, path: &Path) {
        // The limit of the kernel (MAXSYMLINKS).
        let mut left = 40;
        let mut waiting = vec![path.to_owned()];
        while let Some(path) = waiting.pop() {
            let mut walked = PathBuf::from("/");
            for component in path.components() {
                match component {
                    Component::Normal(name) => walked.push(name),
                    Component::ParentDir => _ = walked.pop(),
                    _ => continue,
                }
                if self.is_bound(&walked) || walked.starts_with("/proc") {
                    break;
                }
                let Ok(target) = walked.read_link() else { continue };
                left -= 1;
                if left == 0 {
                    return;
                }
                let rest = path.strip_prefix(&walked).unwrap_or(Path::new(""));
                let above = walked.parent().unwrap_or(Path::new("/"));
                waiting.push(above.join(&target).join(rest));
                self.links.insert((walked, target));
                break;
            }
        }
    }
}

/// Makes the view the root of this process, with `folder` as the working directory. Returns false
/// if it has no `/proc`, which some containers do not allow.
pub(super) fn mount_view(
    view: &FileSystemView,
    policy: &SandboxPolicy,
    folder: &Path,
) -> Result<bool> {
    // Without this, the mounts below would propagate to the host.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // `pivot_root` needs a mount point as the new root.
    mount_tmpfs(Path::new("/tmp"), policy.memory_folder_bytes())?;
    fs::create_dir(format!("/tmp{HOST_ROOT}"))?;
    rustix::process::pivot_root("/tmp", format!("/tmp{HOST_ROOT}"))?;
    std::env::set_current_dir("/")?;

    for own in OWN_FOLDERS {
        create_folder(Path::new(own))?;
        mount_tmpfs(Path::new(own), policy.memory_folder_bytes())?;
    }
    for folder in &view.folders {
        create_folder(folder)?;
    }
    for path in &view.bound_paths {
        bind_mount(path)?;
    }
    for path in &view.masked_paths {
        mask(path)?;
    }
    for (path, target) in &view.links {
        if let Some(above) = path.parent() {
            create_folder(above)?;
        }
        // A link that already exists came with its folder.
        let _ = symlink(target, path);
    }
    let writable: Vec<&PathBuf> =
        policy.write.iter().filter(|path| !path.starts_with("/dev")).collect();
    for path in &writable {
        bind_mount(path)?;
    }
    mount_hosts(policy)?;
    let has_proc = mount_proc()?;
    for device in DEVICES {
        bind_mount(&Path::new("/dev").join(device))?;
    }
    for (path, target) in DEVICE_LINKS {
        symlink(target, path)?;
    }
    if has_proc && !policy.cgroup_counts_processes {
        limit_processes(policy.limits.processes);
    }
    // A lazy unmount, because the old root still has mounts below it.
    unmount(HOST_ROOT, UnmountFlags::DETACH)?;
    fs::remove_dir(HOST_ROOT)?;
    // Everything becomes read-only recursively, then the writable mounts are opened again. `nosuid`
    // stays set on all of them.
    let closed = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID;
    kernel::set_mount_attributes(Path::new("/"), true, closed, 0)?;
    for path in OWN_FOLDERS.iter().map(Path::new).chain(writable.into_iter().map(PathBuf::as_path))
    {
        kernel::set_mount_attributes(path, false, 0, libc::MOUNT_ATTR_RDONLY)?;
    }
    std::env::set_current_dir(folder)?;
    Ok(has_proc)
}

/// Mounts a file system in memory with a maximum size.
fn mount_tmpfs(path: &Path, bytes: u64) -> Result<()> {
    let data = format!("size={bytes},nr_inodes=65536,mode=0755");
    let data = std::ffi::CString::new(data).map_err(Error::other)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount("tmpfs", path, "tmpfs", flags, Some(data.as_c_str()))?)
}

fn host_path(path: &Path) -> PathBuf {
    Path::new(HOST_ROOT).join(path.strip_prefix("/").unwrap_or(path))
}

/// Creates a folder that is not writable, even inside one of the program's own folders.
fn create_folder(path: &Path) -> Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o555).create(path)
}

/// Binds a path to the same place. Skips paths that no longer exist.
fn bind_mount(path: &Path) -> Result<()> {
    let from = host_path(path);
    let Ok(found) = from.symlink_metadata() else { return Ok(()) };
    // A mount point must exist, and be of the same kind as what is mounted.
    if path.symlink_metadata().is_err() {
        if found.is_dir() {
            create_folder(path)?;
        } else {
            if let Some(above) = path.parent() {
                create_folder(above)?;
            }
            fs::File::create(path)?;
        }
    }
    mount_bind_recursive(&from, path)
        .map_err(|error| Error::other(format!("cannot bind {}: {error}", path.display())))
}

fn mask(path: &Path) -> Result<()> {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    let by = if found.is_dir() {
        let by = Path::new("/.hidden-folder");
        if !by.exists() {
            fs::DirBuilder::new().mode(0o000).create(by)?;
        }
        by
    } else {
        let by = Path::new("/.hidden-file");
        if !by.exists() {
            use std::os::unix::fs::OpenOptionsExt as _;
            fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(by)?;
        }
        by
    };
    Ok(mount_bind_recursive(by, path)?)
}

/// Limits the number of processes, including those of root, to whom the per-user limit does not
/// apply.
fn limit_processes(most: u32) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|it| it.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    // Before Linux 6.14, `pid_max` was shared by the whole machine.
    if version >= (6, 14) {
        // The kernel rejects lower values, because it reserves some PIDs.
        let most = most.max(302);
        let _ = fs::write("/proc/sys/kernel/pid_max", most.to_string());
    }
}

/// Replaces `/etc/hosts`, so that no name is looked up outside. Without listed addresses, the
/// machine's own file stays.
fn mount_hosts(policy: &SandboxPolicy) -> Result<()> {
    if policy.addresses.is_empty() {
        return Ok(());
    }
    let own = Path::new(OWN_HOSTS);
    fs::write(own, render_hosts(&policy.hosts))?;
    let file = Path::new(HOSTS);
    if file.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
        // If the folder is bind-mounted and therefore read-only, the link stays.
        let _ = fs::remove_file(file);
    }
    if let Some(above) = file.parent() {
        create_folder(above)?;
    }
    if !file.exists() && fs::File::create(file).is_err() {
        return Ok(());
    }
    Ok(mount_bind_recursive(own, file.canonicalize()?)?)
}

fn render_hosts(hosts: &[(String, IpAddr)]) -> String {
    let mut lines = String::new();
    for (name, ip) in hosts {
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{ip} {name}");
    }
    // A listed name must resolve to the looked-up addresses only. A program would also try the
    // other address, and that would be a denied attempt.
    if hosts.iter().all(|(name, _)| name != "localhost") {
        lines += "127.0.0.1 localhost\n::1 localhost\n";
    }
    lines + "127.0.0.1 selftest\n"
}

/// Mounts `/proc` of the PID namespace, masking the files that affect or reveal the host.
fn mount_proc() -> Result<bool> {
    let path = Path::new("/proc");
    create_folder(path)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if mount("proc", path, "proc", flags, None).is_err() {
        return Ok(false);
    }
    for file in MASKED_FILES {
        if Path::new(file).exists() {
            mount_bind_recursive(host_path(Path::new("/dev/null")), *file)?;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_holds_what_was_granted_and_the_links_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["project/src", "project/reports", "real/lib"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("project/README.md"), "x").unwrap();
        symlink("README.md", root.join("project/link")).unwrap();
        symlink("real", root.join("alias")).unwrap();
        let asked = [root.join("project"), root.join("alias/lib")];
        let policy = SandboxPolicy {
            read: asked.to_vec(),
            protected: vec![root.join("project/reports")],
            ..SandboxPolicy::default()
        };
        let view = FileSystemView::of(&policy.grants(), &asked);
        let paths = |paths: &[&str]| paths.iter().map(|path| root.join(path)).collect();
        assert_eq!(view.bound_paths, paths(&["project/README.md", "project/src", "real/lib"]));
        assert_eq!(view.folders, paths(&["project"]));
        let links: Vec<_> = view.links.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(links, [root.join("alias"), root.join("project/link")]);
        assert!(view.masked_paths.is_empty());
    }

    #[test]
    fn names_mean_what_was_looked_up() {
        let host = |name: &str, ip: &str| (name.to_owned(), ip.parse().unwrap());
        assert_eq!(
            render_hosts(&[
                host("api.example.com", "192.0.2.1"),
                host("api.example.com", "2001:db8::1")
            ]),
            "192.0.2.1 api.example.com\n2001:db8::1 api.example.com\n127.0.0.1 localhost\n\
             ::1 localhost\n127.0.0.1 selftest\n"
        );
        let local = render_hosts(&[host("localhost", "127.0.0.1")]);
        assert_eq!(local, "127.0.0.1 localhost\n127.0.0.1 selftest\n");
    }

    #[test]
    fn a_crowded_folder_is_bound_whole_and_its_answers_are_covered() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for number in 0..=MAX_SEPARATE_BINDS {
            fs::write(root.join(number.to_string()), "x").unwrap();
        }
        fs::write(root.join(".env"), "x").unwrap();
        let policy = SandboxPolicy {
            read: vec![root.clone()],
            secret: vec![root.join(".env")],
            ..SandboxPolicy::default()
        };
        let view = FileSystemView::of(&policy.grants(), &[]);
        assert_eq!(view.bound_paths, BTreeSet::from([root.clone()]));
        assert_eq!(view.masked_paths, BTreeSet::from([root.join(".env")]));
    }
}
