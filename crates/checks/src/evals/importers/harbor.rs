//! Tasks of Harbor and Terminal-Bench: `task.toml`, `instruction.md`, `tests/test.sh` and a container.
//!
//! The sandbox stands in for a container of which nothing is needed but its file system: a plain
//! base image, folders and copied files. Any other task is refused with the line that it needs.

use serde_json::{Value, json};

use super::{DialectEntry, SuiteSource};
use crate::evals::case::CaseReader;
use crate::evals::dialect::EvalsDialect;
use crate::evals::{CaseDemand, EvalCase, FileLocation, ShellLine, ShellUse};
use selftest_text::escape::terminal;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::Harbor,
    title: "Harbor, Terminal-Bench",
    files: "`task.toml`, `instruction.md`, `tests/test.sh`",
    yaml: None,
    carries: "instruction, files of the image, time limits, the tests with `reward.txt` or \
              `reward.json`: passed at a reward of 1",
    refuses: "images with packages or services, MCP servers, several steps, paths of the container \
              outside of its working folder",
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
    root.describes(&["schema_version", "version", "metadata", "artifacts", "source"]);
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
                if !PLAIN_IMAGES.contains(&base) {
                    needs("is not a plain system");
                }
            }
            "WORKDIR" => folder = join(&folder, rest),
            "RUN" if is_folder_only(rest) => {}
            "RUN" => needs("runs a command"),
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

/// Returns true for a command that only makes folders.
fn is_folder_only(command: &str) -> bool {
    command.split("&&").all(|part| {
        let mut words = part.split_whitespace();
        words.next() == Some("mkdir") && words.all(|word| word == "-p" || word.starts_with('/'))
    })
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
