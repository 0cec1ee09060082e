//! The rights of a confined program and their encoding as process arguments. Pure, apart from
//! listing folders.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};

use super::error::PolicyArgumentError;
use crate::limits::SandboxLimits;

/// System folders and files that every program may read if they exist: libraries and programs. Of
/// `/etc`, only what libraries read, because it also holds keys and arbitrary files of the
/// administrator.
const SYSTEM_PATHS: &[&str] = &[
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libx32",
    "/usr/libexec",
    "/usr/include",
    "/usr/share",
    "/usr/games",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/libexec",
    "/usr/local/include",
    "/usr/local/share",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/bin",
    "/sbin",
    "/proc",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/sys/devices/system",
    "/sys/kernel/mm/transparent_hugepage",
    "/dev/random",
    "/dev/urandom",
    "/System",
    "/Library",
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/java",
    "/etc/ld-musl-aarch64.path",
    "/etc/ld-musl-x86_64.path",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/machine-info",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/static",
    "/etc/terminfo",
    "/etc/timezone",
];

/// Device files that every program may read and write.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];

/// System secrets, never readable as part of a granted folder.
const SYSTEM_SECRETS: &[&str] = &[
    "/etc/shadow",
    "/root/.ssh",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/kubernetes",
    "/etc/docker",
    "/etc/krb5.keytab",
    "/etc/NetworkManager",
];

/// User secrets and histories, never readable as part of a granted folder.
const HOME_SECRETS: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".config",
    ".gnupg",
    ".docker",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".vault-token",
    ".terraform.d",
    ".password-store",
    ".mozilla",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".local/share/keyrings",
    ".gem/credentials",
    ".m2/settings.xml",
];

/// Toolchains installed under the home folder that need more than their `bin`.
const TOOLCHAINS: &[&str] = &[
    ".pyenv",
    ".nvm",
    ".rbenv",
    ".asdf",
    ".volta",
    ".bun",
    ".deno",
    ".sdkman",
    ".rustup",
    ".local/share/mise",
    ".local/share/uv",
    ".local/share/pipx",
    "miniconda3",
    "anaconda3",
    "miniforge3",
    "mambaforge",
    "go",
];

/// Strength of the sandbox. The caller picks what the kernel supports.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    serde::Serialize,
    serde::Deserialize,
    strum::Display,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SandboxLevel {
    /// No sandbox.
    Off,
    /// Landlock and system call filters, as far as the kernel supports them.
    Inner,
    /// Additionally namespaces and a private file system.
    #[default]
    Full,
}

/// The rights of a confined program. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a right or not, and a flag of its own")]
pub struct SandboxPolicy {
    /// Readable and executable, except for secret and protected paths.
    pub read: Vec<PathBuf>,
    /// Readable and executable by explicit configuration, even if secret, but not if protected.
    pub allow: Vec<PathBuf>,
    /// Writable, regardless of all other rules.
    pub write: Vec<PathBuf>,
    /// Not readable through `read`.
    pub secret: Vec<PathBuf>,
    /// Never readable: hints, rubrics, verdicts and reports.
    pub protected: Vec<PathBuf>,
    /// TCP ports that the program may connect to, on any machine. Mutually exclusive with
    /// `addresses`.
    pub ports: Vec<u16>,
    /// Addresses that the program may connect to over TCP.
    pub addresses: Vec<SocketAddr>,
    /// Host names with their addresses, for `/etc/hosts` in the sandbox if any address is listed.
    pub hosts: Vec<(String, IpAddr)>,
    /// True if names may be looked up over UDP; applies only if a port is granted.
    pub name_lookups: bool,
    /// True if the program's processes may listen and connect to each other in a private network.
    pub local_ports: bool,
    /// The strength with which all of this is enforced.
    pub level: SandboxLevel,
    /// Resource limits of its processes.
    pub limits: SandboxLimits,
    /// Path of the control group that the program is put into.
    pub cgroup: Option<PathBuf>,
    /// True if that group counts processes, so that no other limit has to.
    pub cgroup_counts_processes: bool,
    /// True if that group counts memory, shared memory included.
    pub cgroup_counts_memory: bool,
    /// File in which denied attempts are recorded.
    pub notes_file: Option<PathBuf>,
    /// True for a trial: sets everything up without starting the program.
    pub is_trial: bool,
}

/// Readable paths in the form Landlock needs: it has rules that allow, none that deny.
#[cfg(unix)]
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PathGrants {
    /// Readable with everything below.
    pub(super) whole: Vec<PathBuf>,
    /// Folders that may only be listed, because something below is denied. Parents precede their
    /// subfolders.
    pub(super) listable: Vec<PathBuf>,
    /// Symlinks in such folders.
    pub(super) links: Vec<PathBuf>,
    /// Paths that were left out.
    pub(super) denied: Vec<PathBuf>,
}

impl SandboxPolicy {
    /// Creates a policy for a program that works in this project. `path` and `home` are the
    /// harness's `PATH` and `HOME` variables.
    pub fn for_project(project: &Path, path: Option<&OsStr>, home: Option<&Path>) -> Self {
        let project = resolve_existing(project);
        let mut read: Vec<PathBuf> = SYSTEM_PATHS.iter().map(PathBuf::from).collect();
        read.extend(toolchains(path.unwrap_or_default(), home));
        read.push(project.clone());
        let mut secret: Vec<PathBuf> = SYSTEM_SECRETS.iter().map(PathBuf::from).collect();
        secret.extend(
            home.into_iter().flat_map(|home| HOME_SECRETS.iter().map(|name| home.join(name))),
        );
        let secret = secret
            .iter()
            .map(|path| resolve_existing(path))
            // A project inside a secret folder, such as one under `~/.config`, must stay readable.
            .filter(|path| !project.starts_with(path))
            .collect();
        let write = DEVICES.iter().map(PathBuf::from).collect();
        Self { read, write, secret, ..Self::default() }
    }

    /// Protects a folder, unless it contains something readable, such as a project inside the
    /// folder for temporary files. In that case its other contents are unreadable anyway.
    pub fn protect_unless_needed(&mut self, folder: &Path) {
        let folder = resolve_existing(folder);
        let readable = self.read.iter().chain(&self.allow);
        if !readable.into_iter().any(|path| resolve_existing(path).starts_with(&folder)) {
            self.protected.push(folder);
        }
    }

    /// Encodes the policy as process arguments; the inverse of [`SandboxPolicy::from_arguments`].
    pub fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments = Vec::new();
        for (flag, paths) in [
            ("--read", &self.read),
            ("--allow", &self.allow),
            ("--write", &self.write),
            ("--secret", &self.secret),
            ("--protected", &self.protected),
        ] {
            for path in paths {
                arguments.extend([OsString::from(flag), path.into()]);
            }
        }
        for port in &self.ports {
            arguments.extend([OsString::from("--port"), port.to_string().into()]);
        }
        for address in &self.addresses {
            arguments.extend([OsString::from("--address"), address.to_string().into()]);
        }
        for (name, ip) in &self.hosts {
            arguments.extend([OsString::from("--host"), format!("{ip} {name}").into()]);
        }
        arguments.extend(["--walls".into(), self.level.to_string().into()]);
        // Serialising cannot fail because all keys are strings. An empty argument would not parse.
        let limits = serde_json::to_string(&self.limits).unwrap_or_default();
        arguments.extend(["--limits".into(), limits.into()]);
        for (flag, path) in [("--notes", &self.notes_file), ("--group", &self.cgroup)] {
            if let Some(path) = path {
                arguments.extend([flag.into(), path.into()]);
            }
        }
        for (flag, holds) in [
            ("--lookups", self.name_lookups),
            ("--local", self.local_ports),
            ("--counted", self.cgroup_counts_processes),
            ("--memory-counted", self.cgroup_counts_memory),
            ("--trial", self.is_trial),
        ] {
            if holds {
                arguments.push(flag.into());
            }
        }
        arguments.push("--".into());
        arguments
    }

    /// Decodes a policy, and returns the remaining arguments: the program and its arguments.
    pub fn from_arguments(
        arguments: &[OsString],
    ) -> Result<(Self, &[OsString]), PolicyArgumentError> {
        let invalid = |flag, expected| PolicyArgumentError::Value { flag, expected };
        let mut policy = Self::default();
        let mut rest = arguments;
        loop {
            let (flag, after) = rest.split_first().ok_or(PolicyArgumentError::NoSeparator)?;
            if flag == "--" {
                return Ok((policy, after));
            }
            let switch = match flag.to_str() {
                Some("--lookups") => Some(&mut policy.name_lookups),
                Some("--local") => Some(&mut policy.local_ports),
                Some("--counted") => Some(&mut policy.cgroup_counts_processes),
                Some("--memory-counted") => Some(&mut policy.cgroup_counts_memory),
                Some("--trial") => Some(&mut policy.is_trial),
                _ => None,
            };
            if let Some(switch) = switch {
                *switch = true;
                rest = after;
                continue;
            }
            let (value, after) = after.split_first().ok_or(PolicyArgumentError::NoValue)?;
            rest = after;
            let paths = match flag.to_str() {
                Some("--read") => &mut policy.read,
                Some("--allow") => &mut policy.allow,
                Some("--write") => &mut policy.write,
                Some("--secret") => &mut policy.secret,
                Some("--protected") => &mut policy.protected,
                Some("--port") => {
                    let port = value.to_str().and_then(|port| port.parse().ok());
                    policy.ports.push(port.ok_or_else(|| invalid("--port", "a port"))?);
                    continue;
                }
                Some("--address") => {
                    let address = value.to_str().and_then(|address| address.parse().ok());
                    policy
                        .addresses
                        .push(address.ok_or_else(|| invalid("--address", "an address"))?);
                    continue;
                }
                Some("--host") => {
                    let host = value.to_str().and_then(|host| host.split_once(' '));
                    let host =
                        host.and_then(|(ip, name)| Some((name.to_owned(), ip.parse().ok()?)));
                    policy
                        .hosts
                        .push(host.ok_or_else(|| invalid("--host", "an address and a name"))?);
                    continue;
                }
                Some("--walls") => {
                    let walls = value.to_str().and_then(|word| word.parse().ok());
                    policy.level = walls.ok_or_else(|| invalid("--walls", "a word"))?;
                    continue;
                }
                Some("--notes") => {
                    policy.notes_file = Some(value.into());
                    continue;
                }
                Some("--group") => {
                    policy.cgroup = Some(value.into());
                    continue;
                }
                Some("--limits") => {
                    let limits = value.to_str().and_then(|json| serde_json::from_str(json).ok());
                    policy.limits = limits.ok_or_else(|| invalid("--limits", "limits"))?;
                    continue;
                }
                _ => return Err(PolicyArgumentError::UnknownFlag(flag.clone())),
            };
            paths.push(value.into());
        }
    }

    /// Returns the readable paths as given, which may traverse symlinks.
    #[cfg(target_os = "linux")]
    pub(super) fn requested_paths(&self) -> Vec<PathBuf> {
        self.read.iter().chain(&self.allow).cloned().collect()
    }

    /// Maximum size of an in-memory folder, in bytes.
    #[cfg(target_os = "linux")]
    pub(super) fn memory_folder_bytes(&self) -> u64 {
        u64::from(self.limits.memory_mib.min(512)) << 20
    }

    /// Returns the readable paths, with folders split up if something below is denied.
    #[cfg(unix)]
    pub(super) fn grants(&self) -> PathGrants {
        let mut grants = PathGrants::default();
        let protected: Vec<PathBuf> =
            self.protected.iter().map(|path| resolve_existing(path)).collect();
        let mut denied = protected.clone();
        denied.extend(self.secret.iter().map(|path| resolve_existing(path)));
        for (roots, denied) in [(&self.read, &denied), (&self.allow, &protected)] {
            for root in roots {
                // Landlock rules apply to files, not to names: a path that does not exist has
                // nothing to grant.
                if let Ok(root) = root.canonicalize() {
                    add_grants(&root, denied, &mut grants);
                }
            }
        }
        grants
    }
}

#[cfg(unix)]
fn add_grants(path: &Path, denied: &[PathBuf], grants: &mut PathGrants) {
    if denied.iter().any(|denied| path.starts_with(denied)) {
        grants.denied.push(path.to_owned());
        return;
    }
    if !denied.iter().any(|denied| denied.starts_with(path)) {
        grants.whole.push(path.to_owned());
        return;
    }
    let Ok(entries) = path.read_dir() else { return };
    grants.listable.push(path.to_owned());
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            // Granting a symlink would grant its target, wherever that is. When the program follows
            // it, the kernel checks the target.
            Ok(kind) if kind.is_symlink() => {
                if !denied.contains(&path) {
                    grants.links.push(path);
                }
            }
            Ok(_) => add_grants(&path, denied, grants),
            Err(_) => {}
        }
    }
}

/// Resolves symlinks as far as the path exists, so that a path that does not exist yet is covered
/// too.
pub(super) fn resolve_existing(path: &Path) -> PathBuf {
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => resolve_existing(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Returns the folders that the programs on a `PATH` need: the entries themselves, library folders
/// next to a `bin`, and known toolchains under the home folder.
pub fn toolchains(path: &OsStr, home: Option<&Path>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for entry in std::env::split_paths(path).filter(|entry| entry.is_absolute()) {
        let known = home.and_then(|home| {
            TOOLCHAINS.iter().map(|name| home.join(name)).find(|root| entry.starts_with(root))
        });
        if let Some(root) = known {
            folders.push(root);
        } else if let (Some("bin" | "sbin" | "shims"), Some(parent)) =
            (entry.file_name().and_then(OsStr::to_str), entry.parent())
            // `/bin` would add the siblings `/lib` and so on, which `SYSTEM_PATHS` already has; `~/bin`
            // would add siblings in the home folder.
            && parent.components().count() > 1
            && Some(parent) != home
        {
            let beside = ["lib", "lib64", "libexec", "pyvenv.cfg"];
            folders.extend(beside.iter().map(|name| parent.join(name)));
            if home.is_some_and(|home| parent == home.join(".cargo")) {
                folders.extend(parent.parent().map(|home| home.join(".rustup")));
            }
        }
        folders.push(entry);
    }
    // Programs in ~/.local/bin are mostly symlinks into these folders.
    if let Some(home) = home
        && folders.contains(&home.join(".local/bin"))
    {
        folders.extend(["uv", "pipx", "mise"].map(|name| home.join(".local/share").join(name)));
    }
    folders.sort();
    folders.dedup();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn arguments_round_trip() {
        let mut policy =
            SandboxPolicy::for_project(Path::new("/work"), None, Some(Path::new("/home/me")));
        policy.allow.push("/data".into());
        policy.protected.push("/work/reports".into());
        policy.ports = vec![8080, 11434];
        policy.name_lookups = true;
        policy.addresses = vec!["127.0.0.1:11434".parse().unwrap(), "[::1]:443".parse().unwrap()];
        policy.hosts = vec![("api.example.com".to_owned(), "::1".parse().unwrap())];
        policy.level = SandboxLevel::Inner;
        policy.limits.cpu_seconds = 7;
        policy.limits.total_memory_mib = 8;
        policy.cgroup = Some("/sys/fs/cgroup/a/case-1".into());
        policy.cgroup_counts_processes = true;
        policy.cgroup_counts_memory = true;
        policy.local_ports = true;
        policy.notes_file = Some("/tmp/notes".into());
        policy.is_trial = true;
        let mut arguments = policy.to_arguments();
        arguments.extend(["agent".into(), "--read".into()]);
        let (back, program) = SandboxPolicy::from_arguments(&arguments).unwrap();
        assert_eq!(back, policy);
        assert_eq!(program, ["agent", "--read"]);
        for broken in [
            vec!["--read"],
            vec!["--port", "x", "--"],
            vec!["--address", "localhost:80", "--"],
            vec!["--host", "localhost", "--"],
            vec!["--what", "x", "--"],
            vec!["--limits", "", "--"],
            vec![],
        ] {
            let broken: Vec<OsString> = broken.into_iter().map(OsString::from).collect();
            assert!(SandboxPolicy::from_arguments(&broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn a_project_sees_itself_and_no_secret_of_its_home() {
        let (home, project) = (Path::new("/home/me"), Path::new("/home/me/.config/agent"));
        let policy =
            SandboxPolicy::for_project(project, Some(OsStr::new("/opt/x/bin")), Some(home));
        for readable in ["/usr/bin", "/opt/x/bin", "/opt/x/lib", "/home/me/.config/agent"] {
            assert!(policy.read.contains(&readable.into()), "{readable}");
        }
        assert!(policy.write.contains(&"/dev/null".into()));
        // The project is below `~/.config`.
        assert!(!policy.secret.contains(&home.join(".config")));
        for secret in [home.join(".ssh"), home.join(".netrc"), "/etc/shadow".into()] {
            assert!(policy.secret.contains(&secret), "{}", secret.display());
        }
        let elsewhere = SandboxPolicy::for_project(Path::new("/work"), None, Some(home));
        assert!(elsewhere.secret.contains(&home.join(".config")));
    }

    #[test]
    fn a_folder_that_the_program_needs_is_not_protected() {
        let mut policy = SandboxPolicy {
            read: vec!["/nowhere/temporary/project".into()],
            allow: vec!["/nowhere/data/model".into()],
            ..SandboxPolicy::default()
        };
        for folder in ["/nowhere/temporary", "/nowhere/data", "/nowhere/temporary/project"] {
            policy.protect_unless_needed(Path::new(folder));
            assert_eq!(policy.protected, [] as [PathBuf; 0], "{folder}");
        }
        policy.protect_unless_needed(Path::new("/nowhere/temporary/project/reports"));
        policy.protect_unless_needed(Path::new("/nowhere/temp"));
        let expected = ["/nowhere/temporary/project/reports", "/nowhere/temp"].map(PathBuf::from);
        assert_eq!(policy.protected, expected);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_asked_for_in_memory_and_on_disk() {
        let mut policy = SandboxPolicy {
            read: vec!["/a".into()],
            allow: vec!["/b".into()],
            write: vec!["/c".into()],
            ..SandboxPolicy::default()
        };
        assert_eq!(policy.requested_paths(), [PathBuf::from("/a"), "/b".into()]);
        policy.limits.memory_mib = 3;
        assert_eq!(policy.memory_folder_bytes(), 3 * 1024 * 1024);
        policy.limits.memory_mib = 8192;
        assert_eq!(policy.memory_folder_bytes(), 512 * 1024 * 1024);
    }

    #[test]
    fn what_does_not_exist_yet_is_resolved_as_far_as_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        assert_eq!(resolve_existing(&root.join("link")), root.join("real"));
        assert_eq!(resolve_existing(&root.join("link/a/b")), root.join("real/a/b"));
        // Nothing is known of what `..` leads to from a folder that does not exist.
        let upward = root.join("missing/../link");
        assert_eq!(resolve_existing(&upward), root.join("missing/../link"));
    }

    #[test]
    fn denied_paths_split_their_folders() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["docs/reports", "docs/guide", "src"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("README.md"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        std::os::unix::fs::symlink("/nowhere", root.join("denied-link")).unwrap();
        let policy = SandboxPolicy {
            read: vec![root.clone()],
            // The second does not exist yet.
            protected: vec![
                root.join("docs/reports"),
                root.join("reports/selftest"),
                root.join("denied-link"),
            ],
            ..SandboxPolicy::default()
        };
        let mut grants = policy.grants();
        grants.whole.sort();
        assert_eq!(
            grants.whole,
            [root.join("README.md"), root.join("docs/guide"), root.join("src")]
        );
        assert_eq!(grants.listable, [root.clone(), root.join("docs")]);
        assert_eq!(grants.links, [root.join("link")]);
        assert_eq!(grants.denied, [root.join("docs/reports")]);
    }

    #[test]
    fn an_explicit_word_beats_a_secret_but_not_protection() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".config/agent")).unwrap();
        let mut policy = SandboxPolicy {
            allow: vec![root.join(".config/agent")],
            secret: vec![root.join(".config")],
            ..SandboxPolicy::default()
        };
        assert_eq!(policy.grants().whole, [root.join(".config/agent")]);
        policy.protected.push(root.clone());
        assert_eq!(policy.grants().whole, [] as [PathBuf; 0]);
    }

    #[test]
    fn toolchains_without_credentials() {
        let home = Path::new("/home/me");
        let path =
            OsStr::new("/home/me/.pyenv/shims:/home/me/.cargo/bin:/home/me/bin:/usr/bin:rel");
        let found = toolchains(path, Some(home));
        for expected in
            ["/home/me/.pyenv", "/home/me/.cargo/bin", "/home/me/.rustup", "/home/me/bin"]
        {
            assert!(found.contains(&PathBuf::from(expected)), "{expected} in {found:?}");
        }
        for denied in [
            "/home/me",
            "/home/me/.cargo",
            "/home/me/lib",
            "/home/me/.local/share/uv",
            "/",
            "/.rustup",
            "rel",
        ] {
            assert!(!found.contains(&PathBuf::from(denied)), "{denied} in {found:?}");
        }
        let of = |path: &str| toolchains(OsStr::new(path), Some(home));
        // What is beside a `bin` that is not at the top, and of no other folder.
        assert_eq!(of("/bin:/opt/tools"), [PathBuf::from("/bin"), "/opt/tools".into()]);
        let beside = ["bin", "lib", "lib64", "libexec", "pyvenv.cfg"];
        assert_eq!(of("/opt/bin"), beside.map(|name| Path::new("/opt").join(name)));
        let local = of("/home/me/.local/bin");
        assert!(local.contains(&home.join(".local/share/pipx")), "{local:?}");
    }
}
