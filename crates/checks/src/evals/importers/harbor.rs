//! Tasks of Harbor and Terminal-Bench: `task.toml`, `instruction.md`, `tests/test.sh` and a container.
//!
//! The sandbox stands in for a container of which nothing is needed but its file system and what this
//! machine has: a plain base image or Python, folders, copied files, installed programs. Any other task
//! is refused with the line that it needs.

use serde_json::{Value, json};

use super::{DialectEntry, SuiteSource};
use crate::evals::case::CaseReader;
use crate::evals::dialect::EvalsDialect;
use crate::evals::{CaseDemand, EvalCase, FileLocation, FileLookup, ShellLine, ShellUse};
use selftest_text::escape::terminal;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::Harbor,
    title: "Harbor, Terminal-Bench",
    files: "`task.toml`, `instruction.md`, `tests/test.sh`",
    yaml: None,
    carries: "instruction, files of the image, time limits, the tests with `reward.txt` or \
              `reward.json`: passed at a reward of 1",
    refuses: "images with services, or with packages that this machine lacks; MCP servers, several \
              steps, paths of the container outside of its working folder",
    is_file_name: |name| name == "task.toml",
    marks: &[],
    recognises: |source| {
        let document = source.text.value();
        source.name == "task.toml"
            || ["agent", "verifier", "environment"].iter().all(|key| document.get(*key).is_some())
    },
    read,
};

/// Base images of which a task needs nothing that a usual system lacks.
const PLAIN_IMAGES: [&str; 7] =
    ["ubuntu", "debian", "alpine", "busybox", "bash", "fedora", "buildpack-deps"];
/// Maximum number of files of the tests, which are handed over as words of a command.
const MAX_TESTS: usize = 40;
/// Maximum size of a file of the tests, in bytes.
const MAX_TEST: usize = 18_000;
/// Exit code of a verifier that left no reward.
const NO_REWARD: u8 = 77;
/// Timeout of tests, in seconds, if the task has none.
const TIMEOUT: f64 = 600.0;

/// Unpacks the tests, runs them in the folder of the case, and compares the reward with 1. `/tests` and
/// `/logs` of the container become folders of their own.
const VERIFIER: &str = r#"
d=$(mktemp -d) || exit 77
mkdir -p "$d/tests" "$d/logs/verifier" "$d/logs/agent" "$d/logs/artifacts" || exit 77
while [ $# -gt 1 ]; do
  mkdir -p "$d/tests/$(dirname "$1")"
  printf '%s' "$2" | sed -e "s#\(^\|[^[:alnum:]_.}/-]\)/logs/#\1$d/logs/#g" \
    -e "s#\(^\|[^[:alnum:]_.}/-]\)/tests/#\1$d/tests/#g" \
    -e "s#\(^\|[^[:alnum:]_.}/-]\)/tests\([\"' ]\|$\)#\1$d/tests\2#g" >"$d/tests/$1" || exit 77
  shift 2
done
bash "$d/tests/test.sh" >&2
r=
if [ -s "$d/logs/verifier/reward.json" ]; then
  r=$(tr -d ' \r\n' <"$d/logs/verifier/reward.json" | sed -n 's/.*"reward":\([-0-9.eE+]*\).*/\1/p')
elif [ -s "$d/logs/verifier/reward.txt" ]; then
  r=$(tr -d ' \r\n' <"$d/logs/verifier/reward.txt")
fi
rm -rf "$d"
[ -n "$r" ] || { echo "the tests left no reward"; exit 77; }
case $r in *[!-+0-9.eE]*) echo "the reward is no number"; exit 77 ;; esac
echo "reward $r"
awk "BEGIN { exit !($r >= 1) }"
"#;

fn read(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let Some(root) = source.text.root() else { return };
    let text = |path: &str, reader: &CaseReader<'_>| {
        reader.lookup.text(path, FileLocation::Evals).and_then(Result::ok)
    };
    root.describes(&["schema_version", "version", "metadata", "artifacts", "source", "solution"]);
    let task = root.fields("task");
    let name = task.as_ref().and_then(|task| {
        task.describes(&["description", "authors", "keywords"]);
        task.text("name")
    });
    let folder = reader.lookup.folder_name();
    let wanted = name.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned()).or(folder);
    let mut case = EvalCase {
        id: reader.unique(&wanted.unwrap_or_else(|| "task".to_owned())),
        ..EvalCase::default()
    };
    let mut refused = Vec::new();
    if let Some(agent) = root.fields("agent") {
        case.timeout_seconds = agent.get("timeout_sec").and_then(Value::as_f64);
    }
    let mut timeout = TIMEOUT;
    if let Some(verifier) = root.fields("verifier") {
        // Files that are kept after the run.
        verifier.describes(&["collect"]);
        timeout = verifier.get("timeout_sec").and_then(Value::as_f64).unwrap_or(timeout);
        if verifier.get("env").and_then(Value::as_object).is_some_and(|env| !env.is_empty()) {
            refused.push("its tests need variables of the environment".to_owned());
        }
    }
    if root.get("steps").is_some() {
        refused.push("it has several steps".to_owned());
    }
    if let Some(environment) = root.fields("environment") {
        let limits = [
            "build_timeout_sec",
            "cpus",
            "memory_mb",
            "storage_mb",
            "memory",
            "storage",
            "os",
            "allow_internet",
        ];
        environment.describes(&limits);
        let has = |key: &str| match environment.get(key) {
            Some(Value::Array(items)) => !items.is_empty(),
            Some(Value::Object(members)) => !members.is_empty(),
            // `gpus = 0` needs none.
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
            Some(_) => true,
            None => false,
        };
        for (key, what) in [
            ("mcp_servers", "MCP servers"),
            ("gpus", "GPUs"),
            ("docker_image", "a built image"),
            ("env", "variables of the environment"),
        ] {
            if has(key) {
                refused.push(format!("it needs {what}"));
            }
        }
    }
    let root_of_image = read_image(&mut case, &mut refused, reader);
    match text("instruction.md", reader) {
        Some(instruction) => case.prompt = without_root(&instruction, &root_of_image),
        None => refused.push("it has no instruction.md".to_owned()),
    }
    let tests = read_tests(&root_of_image, &mut refused, reader);
    // Checked after the paths of the working folder were made relative.
    if let Some(path) = container_path(&case.prompt) {
        refused.push(format!("its instruction names {path}, a path of the container"));
    }
    if !refused.is_empty() {
        return reader.refuse(&case.id, &refused.join("; "));
    }
    let mut run = ["sh", "-c", VERIFIER, "verify"].map(ToOwned::to_owned).to_vec();
    // The tests are words of the command, and not files of the case: the agent must not read them.
    for (path, content) in tests {
        run.extend([path, content]);
    }
    // A command of a check may run for an hour at most.
    let check = json!({"command": {"run": run, "timeout_seconds": timeout.clamp(1.0, 3_600.0),
        "undecided_exit": NO_REWARD}});
    case.demands.push(CaseDemand::typed("tests/test.sh gives a reward of 1", &check));
    case.shell.push(ShellLine::new(ShellUse::Check, "tests/test.sh", "bash tests/test.sh"));
    reader.add(case);
}

/// Reads the image. Returns its working folder, which the folder of the case stands for.
fn read_image(
    case: &mut EvalCase,
    refused: &mut Vec<String>,
    reader: &mut CaseReader<'_>,
) -> String {
    let names = reader.lookup.list("environment", FileLocation::Evals);
    if let Some(compose) = names.iter().find(|name| name.contains("compose")) {
        refused.push(format!("its environment has services: {}", terminal(compose, 60)));
    }
    let dockerfile = reader.lookup.text("environment/Dockerfile", FileLocation::Evals);
    let Some(Ok(dockerfile)) = dockerfile else { return "/app".to_owned() };
    let mut folder = "/".to_owned();
    let mut machine = ImageNeeds::default();
    // Copied after all lines were read, because the last WORKDIR is the folder of the case.
    let mut copies = Vec::new();
    for (line, number) in instructions(&dockerfile) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
        let rest = rest.trim();
        let shown = terminal(&line, 80);
        let mut needs = |what: &str| {
            refused.push(format!("its image {what} (Dockerfile, line {number}: `{shown}`)"));
        };
        match word.to_ascii_uppercase().as_str() {
            "FROM" => {
                let image = rest.split_whitespace().next().unwrap_or_default();
                let base = image.split(['@', ':']).next().unwrap_or_default();
                let base = base.rsplit('/').next().unwrap_or_default();
                let tag = image.rsplit_once(':').map_or("", |(_, tag)| tag);
                match python_of(base, tag) {
                    Some(version) => machine.python = Some(version),
                    None if PLAIN_IMAGES.contains(&base) => {}
                    None => needs("is not a plain system"),
                }
            }
            "WORKDIR" => folder = join(&folder, rest),
            "RUN" if machine.installs(rest) => {}
            "RUN" => needs("runs a command"),
            "ENV" if is_harmless(rest) => {}
            "COPY" | "ADD" => {
                let words: Vec<&str> = rest.split_whitespace().collect();
                match words.as_slice() {
                    [from, to] if !from.starts_with("--") && !from.contains('*') => {
                        copies.push(((*from).to_owned(), join(&folder, to), to.ends_with('/')));
                    }
                    _ => needs("copies more than one file by name"),
                }
            }
            // They change no file, and the harness starts no program of the image.
            "LABEL" | "MAINTAINER" | "CMD" | "ENTRYPOINT" | "SHELL" => {}
            _ => needs("needs more than files"),
        }
    }
    refused.extend(machine.lacking(reader.lookup));
    for (from, to, is_folder) in copies {
        let from = from.trim_start_matches("./").trim_end_matches('/').to_owned();
        let name = from.rsplit('/').next().unwrap_or(&from).to_owned();
        let is_file =
            reader.lookup.text(&format!("environment/{from}"), FileLocation::Evals).is_some();
        // As Docker does: a file that is copied to a folder keeps its name.
        let to = if is_file && (is_folder || to == folder) { join(&to, &name) } else { to };
        let Some(inside) = inside(&to, &folder) else {
            refused.push(format!(
                "its image copies to {}, outside of its working folder",
                terminal(&to, 60)
            ));
            continue;
        };
        if is_file {
            reader.file_at(case, inside, &format!("environment/{from}"), FileLocation::Evals);
            continue;
        }
        let from = if from == "." || from.is_empty() {
            "environment".to_owned()
        } else {
            format!("environment/{from}")
        };
        let entries = reader.lookup.list(&from, FileLocation::Evals);
        if entries.is_empty() {
            refused.push(format!("its image copies `{}`, which is not there", terminal(&from, 60)));
        }
        for entry in entries {
            let entry = entry.trim_end_matches('/');
            if entry == "Dockerfile" {
                continue;
            }
            let to = if inside.is_empty() { entry.to_owned() } else { format!("{inside}/{entry}") };
            reader.file_at(case, &to, &format!("{from}/{entry}"), FileLocation::Evals);
        }
    }
    if folder == "/" { "/app".to_owned() } else { folder }
}

/// Returns the instructions of a Dockerfile with their lines; continued lines are one.
fn instructions(text: &str) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut is_continued = false;
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        // Docker drops comments and blank lines within a continued line too.
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (part, continues) = match line.strip_suffix('\\') {
            Some(part) => (part.trim_end(), true),
            None => (line, false),
        };
        match found.last_mut().filter(|_| is_continued) {
            Some((whole, _)) => *whole = format!("{whole} {part}"),
            None => found.push((part.to_owned(), number)),
        }
        is_continued = continues;
    }
    found
}

/// What an image has beyond a plain system.
#[derive(Default)]
struct ImageNeeds {
    /// Version of its Python, such as `3.12`, if it is an image of Python.
    python: Option<String>,
    /// Packages of the system.
    packages: Vec<String>,
    /// Packages of Python, with their versions.
    python_packages: Vec<(String, Option<String>)>,
}

/// Packages of Debian whose program has another name. Those without a program are part of any system.
const PACKAGES: [(&str, &[&str]); 22] = [
    ("ca-certificates", &[]),
    ("locales", &[]),
    ("tzdata", &[]),
    ("coreutils", &[]),
    ("findutils", &["find"]),
    ("procps", &["ps"]),
    ("build-essential", &["gcc", "g++", "make"]),
    ("golang-go", &["go"]),
    ("golang", &["go"]),
    ("nodejs", &["node"]),
    ("python3-pip", &["pip3"]),
    ("python-is-python3", &["python"]),
    ("ripgrep", &["rg"]),
    ("sqlite3", &["sqlite3"]),
    ("xz-utils", &["xz"]),
    ("util-linux", &["flock"]),
    ("iproute2", &["ip"]),
    ("net-tools", &["netstat"]),
    ("dnsutils", &["dig"]),
    ("openssh-client", &["ssh"]),
    ("gnupg", &["gpg"]),
    ("p7zip-full", &["7z"]),
];

impl ImageNeeds {
    /// Records what a command installs. Returns false if it does anything else.
    fn installs(&mut self, command: &str) -> bool {
        command.split("&&").all(|part| {
            let words: Vec<&str> = part.split_whitespace().collect();
            let words = match words.as_slice() {
                ["DEBIAN_FRONTEND=noninteractive", rest @ ..] => rest,
                all => all,
            };
            match words {
                ["mkdir", rest @ ..] => {
                    rest.iter().all(|word| *word == "-p" || word.starts_with('/'))
                }
                ["apt-get" | "apt", "update" | "clean" | "autoremove", flags @ ..] => {
                    flags.iter().all(|flag| flag.starts_with('-'))
                }
                ["rm", "-rf", places @ ..] => {
                    places.iter().all(|place| place.starts_with("/var/lib/apt/lists"))
                }
                ["apt-get" | "apt", rest @ ..] => self.installs_packages(rest),
                ["pip" | "pip3", "install", rest @ ..]
                | ["python" | "python3", "-m", "pip", "install", rest @ ..] => {
                    self.installs_python(rest)
                }
                _ => false,
            }
        })
    }

    fn installs_packages(&mut self, words: &[&str]) -> bool {
        let (flags, names): (Vec<&str>, Vec<&str>) =
            words.iter().partition(|word| word.starts_with('-'));
        let known = ["-y", "--yes", "-q", "-qq", "-yq", "-yqq", "--no-install-recommends"];
        let ["install", names @ ..] = names.as_slice() else { return false };
        // A version, a release or a file is more than the name of a program.
        let is_name = |name: &&str| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '+'))
        };
        self.packages.extend(names.iter().map(|name| (*name).to_owned()));
        flags.iter().all(|flag| known.contains(flag)) && names.iter().all(is_name)
    }

    fn installs_python(&mut self, words: &[&str]) -> bool {
        let known =
            ["--no-cache-dir", "-q", "--quiet", "--upgrade", "-U", "--break-system-packages"];
        for word in words.iter().map(|word| word.trim_matches(['"', '\''])) {
            if known.contains(&word) {
                continue;
            }
            let (name, version) = match word.split_once("==") {
                Some((name, version)) => (name, Some(version.to_owned())),
                None => (word, None),
            };
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if name.is_empty() || name.starts_with(['-', '.']) || !name.chars().all(is_name) {
                return false;
            }
            self.python_packages.push((name.to_owned(), version));
        }
        true
    }

    /// Returns what this machine lacks of it.
    fn lacking(&self, lookup: &dyn FileLookup) -> Vec<String> {
        let mut lacking = Vec::new();
        let python = self.python.as_deref();
        if let Some(version) = python {
            let names = [format!("python{version}"), "python3".to_owned(), "python".to_owned()];
            lacking.extend(names.into_iter().find(|name| !lookup.has_program(name)));
        }
        for package in &self.packages {
            let found = PACKAGES.iter().find(|(name, _)| name == package);
            let has = match (found, package.strip_prefix("python3-")) {
                (Some((_, programs)), _) => programs.iter().all(|name| lookup.has_program(name)),
                (None, Some(name)) => lookup.has_python_package(None, name, None),
                (None, None) => lookup.has_program(package),
            };
            if !has {
                lacking.push(package.clone());
            }
        }
        for (name, version) in &self.python_packages {
            if !lookup.has_python_package(python, name, version.as_deref()) {
                let version = version.as_ref().map(|it| format!("=={it}")).unwrap_or_default();
                lacking.push(format!("{name}{version}"));
            }
        }
        let shown = |name: String| {
            format!("its image has `{}`, which this machine lacks", terminal(&name, 60))
        };
        lacking.into_iter().map(shown).collect()
    }
}

/// Returns the version of an image of Python: `3.12` of `python:3.12-slim`.
fn python_of(image: &str, tag: &str) -> Option<String> {
    let mut numbers = tag.split(['.', '-']);
    let (major, minor) = (numbers.next()?, numbers.next()?);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (image == "python" && is_number(major) && is_number(minor)).then(|| format!("{major}.{minor}"))
}

/// Returns true for variables that change nothing that is asked.
fn is_harmless(variables: &str) -> bool {
    const NAMES: [&str; 6] = [
        "DEBIAN_FRONTEND",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PIP_NO_CACHE_DIR",
        "LANG",
        "LC_ALL",
    ];
    let mut words = variables.split_whitespace();
    words.all(|word| word.split_once('=').is_some_and(|(name, _)| NAMES.contains(&name)))
}

fn join(folder: &str, path: &str) -> String {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    if path.starts_with('/') {
        return path.to_owned();
    }
    if path.is_empty() || path == "." {
        return folder.to_owned();
    }
    format!("{}/{path}", folder.trim_end_matches('/'))
}

/// Returns the path below a folder.
fn inside<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    if path == folder {
        return Some("");
    }
    path.strip_prefix(folder)?
        .strip_prefix('/')
        .filter(|rest| !rest.split('/').any(|part| part == ".."))
}

/// Makes the paths of the working folder relative, since the case has a folder of its own.
fn without_root(text: &str, root: &str) -> String {
    if root.len() < 2 {
        return text.to_owned();
    }
    // The folder as a word of its own, or before a path.
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(root) {
        let is_word = !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
        kept.push_str(before);
        let starts =
            !kept.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.'));
        // `/app/data.csv` becomes `data.csv`, `/app` itself `.`, and `/application` stays.
        rest = if let Some(below) = after.strip_prefix('/').filter(|_| starts) {
            below
        } else {
            kept.push_str(if is_word && starts { "." } else { root });
            after
        };
    }
    kept + rest
}

/// Returns the first absolute path of a container in a text, other than those of the verifier.
fn container_path(text: &str) -> Option<String> {
    const FOLDERS: [&str; 9] =
        ["/app", "/workspace", "/root", "/home/", "/opt/", "/srv/", "/data", "/etc/", "/var/"];
    let is_start = |at: usize| {
        !text[..at]
            .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '}'))
    };
    FOLDERS.iter().find_map(|folder| {
        let at = text.match_indices(folder).map(|(at, _)| at).find(|at| is_start(*at))?;
        let path: String = text[at..]
            .chars()
            .take_while(|c| !c.is_whitespace() && !"\"'`)".contains(*c))
            .collect();
        Some(format!("`{}`", terminal(&path, 60)))
    })
}

/// Returns the files of the tests with their texts.
fn read_tests(
    root: &str,
    refused: &mut Vec<String>,
    reader: &CaseReader<'_>,
) -> Vec<(String, String)> {
    let mut tests = Vec::new();
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        let path = format!("tests/{folder}");
        for name in reader.lookup.list(path.trim_end_matches('/'), FileLocation::Evals) {
            let inner = format!("{folder}{name}");
            if name.ends_with('/') {
                open.push(inner);
                continue;
            }
            match reader.lookup.text(&format!("tests/{inner}"), FileLocation::Evals) {
                Some(Ok(text)) if text.len() <= MAX_TEST && !text.contains('\0') => {
                    let text = without_root(&text, root);
                    if let Some(path) = container_path(&text) {
                        refused.push(format!(
                            "tests/{}: names {path}, a path of the container",
                            terminal(&inner, 60)
                        ));
                    }
                    let network =
                        // Programs that fetch what the tests need. Without a network they fail, and
                        // the agent would get the blame.
                        ["apt-get", "apt ", "pip install", "uvx ", "curl ", "wget ", "npm "];
                    if let Some(word) = network.iter().find(|word| text.contains(**word)) {
                        refused.push(format!(
                            "tests/{}: needs the network (`{}`)",
                            terminal(&inner, 60),
                            word.trim()
                        ));
                    }
                    tests.push((inner, text));
                }
                _ => refused.push(format!("tests/{} is not a short text", terminal(&inner, 60))),
            }
        }
        if tests.len() > MAX_TESTS {
            refused.push(format!("its tests have more than {MAX_TESTS} files"));
            break;
        }
    }
    if !tests.iter().any(|(path, _)| path == "test.sh") {
        refused.push("it has no tests/test.sh".to_owned());
    }
    tests.sort();
    tests
}
