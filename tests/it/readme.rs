//! Every command of README.md works: blocks in `sh` and `console` are run from top to bottom
//! in a copy of the repository.
//!
//! A block after `<!-- needs: … -->` needs something that a test has not, such as a key; of it
//! only the command lines of `selftest` are checked. Building is not repeated: `cargo` is
//! answered by a stand-in that knows the binary that cargo has just built for these tests.

use std::fs;
use std::path::Path;

use crate::workspace::Workspace;

/// One fenced block with commands.
struct Block {
    /// Line of README.md, for messages.
    line: usize,
    commands: Vec<String>,
    needs: Option<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn blocks() -> Vec<Block> {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let (mut needs, mut open) = (None, None);
    for (number, line) in readme.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            open = match (open, language.trim()) {
                (None, "sh" | "console") => {
                    let needs = needs.take();
                    blocks.push(Block { line: number + 1, commands: Vec::new(), needs });
                    Some(language.trim())
                }
                (None, _) => Some("other"),
                (Some(_), _) => None,
            };
        } else if let Some(comment) = line.trim().strip_prefix("<!-- needs:") {
            needs = Some(comment.trim_end_matches("-->").trim().to_owned());
        } else if let (Some(kind @ ("sh" | "console")), Some(block)) = (open, blocks.last_mut()) {
            // In a console block only the lines after a prompt are commands.
            let command = if kind == "sh" { Some(line) } else { line.strip_prefix("$ ") };
            block.commands.extend(command.map(str::to_owned));
        } else if open.is_none() && !line.trim().is_empty() {
            // The comment counts for the block that follows directly.
            needs = None;
        }
    }
    assert!(!blocks.is_empty(), "README.md has no `sh` block");
    blocks
}

/// The arguments of every `selftest` in the block, however it is started.
fn command_lines(block: &Block) -> Vec<Vec<String>> {
    let text = block.commands.join("\n").replace("\\\n", " ");
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.split(" #").next().unwrap_or_default();
        for part in line.split([';', '|']).flat_map(|part| part.split("&&")) {
            let words: Vec<&str> = part.split_whitespace().collect();
            let start = words.iter().position(|word| {
                matches!(*word, "selftest" | "./scripts/selftest" | "./target/release/selftest")
            });
            let after_cargo = words.starts_with(&["cargo", "run"]);
            let start =
                if after_cargo { words.iter().position(|word| *word == "--") } else { start };
            if let Some(start) = start.filter(|_| !words.contains(&"--bin")) {
                let arguments = words[start + 1..].iter().take_while(|word| **word != ">");
                found.push(
                    arguments.map(|word| word.trim_matches(['"', '\'']).to_owned()).collect(),
                );
            }
        }
    }
    found
}

#[test]
fn the_two_scripts_are_there_and_can_be_run() {
    use std::os::unix::fs::PermissionsExt as _;
    for script in ["scripts/selftest", "scripts/test", ".ci/run"] {
        let mode = fs::metadata(root().join(script)).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{script} is not executable");
    }
}

#[test]
fn a_block_that_is_not_run_says_what_it_needs() {
    for block in blocks() {
        assert_ne!(block.needs.as_deref(), Some(""), "README.md:{}", block.line);
    }
}

#[test]
fn every_flag_in_the_readme_exists() {
    for block in blocks() {
        for arguments in command_lines(&block) {
            let mut help = arguments.clone();
            help.push("--help".to_owned());
            let run = Workspace::new().args(help).run();
            assert!(
                run.stderr.is_empty(),
                "README.md:{}: selftest {arguments:?}\n{}",
                block.line,
                run.stderr
            );
            let _ = run.exit(0);
        }
    }
}

// What the README promises is a run with the embedded model.
#[cfg(feature = "embedded")]
mod embedded {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::process::Command;

    use super::{blocks, root};
    use crate::doc_blocks::compare_outputs;

    #[test]
    fn every_command_in_the_readme_works() {
        let _turn = crate::embedded::turn();
        let folder = tempfile::tempdir().unwrap();
        let (copy, bin) = (folder.path().join("selftest"), folder.path().join("bin"));
        copy_of_the_work_tree(&copy);
        stand_in_for_cargo(&bin);
        let mut printed = BTreeMap::new();
        for block in blocks().iter().filter(|block| block.needs.is_none()) {
            // Tests that run the tests would not end.
            let commands: Vec<&str> = block
                .commands
                .iter()
                .map(String::as_str)
                .filter(|line| !line.contains("scripts/test"))
                .collect();
            let commands = commands.join("\n");
            let stdout = run_block(&copy, &bin, block.line, &commands);
            printed.insert(commands, stdout);
        }
        assert_eq!(compare_outputs("README.md", &printed, &copy), 1);
    }

    /// Runs commands and returns what they print.
    fn run_block(copy: &Path, bin: &Path, line: usize, commands: &str) -> String {
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", commands])
            .current_dir(copy)
            .env("PATH", path)
            .env("CARGO_TARGET_DIR", bin.parent().unwrap().join("target"))
            .env("SELFTEST_PROFILE", "dev")
            .env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"))
            .env("OLLAMA_HOST", crate::workspace::NOBODY)
            .env_remove("CI")
            .output()
            .unwrap();
        // The tiny model may well fail the tiny assistant; what must work is the run.
        let is_run = commands.contains("scripts/selftest");
        let works = match output.status.code() {
            Some(0) => true,
            Some(1 | 3) => is_run && copy.join("docs/reports/selftest/index.md").is_file(),
            _ => false,
        };
        assert!(
            works,
            "README.md:{line}: {}\n{commands}\n--- stdout\n{}\n--- stderr\n{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The files known to git, as they are on disk, with a history of their own.
    fn copy_of_the_work_tree(copy: &Path) {
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(listing.status.success(), "{}", String::from_utf8_lossy(&listing.stderr));
        for name in String::from_utf8(listing.stdout).unwrap().split_terminator('\0') {
            let (from, to) = (root().join(name), copy.join(name));
            if from.is_file() {
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(from, to).unwrap();
            }
        }
    }

    /// `cargo build` puts the tests' own binary where a build would, `cargo run` starts it.
    fn stand_in_for_cargo(bin: &Path) {
        let script = format!(
            "#!/bin/sh\n\
             set -eu\n\
             binary={binary}\n\
             verb=$1; shift\n\
             case $verb in\n\
             build) for profile in debug release; do\n\
               mkdir -p \"$CARGO_TARGET_DIR/$profile\"\n\
               ln -sf \"$binary\" \"$CARGO_TARGET_DIR/$profile/selftest\"\n\
             done ;;\n\
             run) while [ \"$1\" != -- ]; do shift; done; shift; exec \"$binary\" \"$@\" ;;\n\
             *) echo \"cargo $verb: no stand-in for it\" >&2; exit 1 ;;\n\
             esac\n",
            binary = env!("CARGO_BIN_EXE_selftest")
        );
        fs::create_dir_all(bin).unwrap();
        fs::write(bin.join("cargo"), script).unwrap();
        fs::set_permissions(bin.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_selftest"), bin.join("selftest")).unwrap();
    }
}
