//! `scripts/prepare` on machines that have some of the tools and lack others: a `PATH` of
//! stand-ins, and a folder in which libraries are looked for instead of `/usr`. Nothing is
//! installed; `scripts/test-prepare` does that in real Debian roots.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Programs of every machine that the script needs for itself.
const BASE: [&str; 6] = ["bash", "chmod", "dirname", "env", "mkdir", "touch"];
/// Programs that only have to be there.
const COMPILER: [&str; 3] = ["cc", "c++", "cargo"];

const LIBCLANG: &str = "usr/lib/x86_64-linux-gnu/libclang-14.so.13";
const CPP_LIBRARY: &str = "usr/lib/x86_64-linux-gnu/libclang-cpp.so.14";
const CPP_LIBRARY_OF_LLVM: &str = "usr/lib/llvm-14/lib/libclang-cpp.so.14";
const HEADER: &str = "usr/lib/llvm-14/lib/clang/14.0.6/include/stddef.h";

struct Machine {
    folder: TempDir,
}

struct Prepared {
    success: bool,
    stdout: String,
    stderr: String,
    /// The commands that installed something, or tried to.
    installs: String,
}

impl Machine {
    /// A user's machine with a compiler and cargo.
    fn new() -> Self {
        let machine = Self { folder: TempDir::with_prefix("selftest-it-prepare-").unwrap() };
        fs::create_dir(machine.path("bin")).unwrap();
        let folders: Vec<PathBuf> =
            std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect();
        for name in BASE {
            let mut programs = folders.iter().map(|folder| folder.join(name));
            let program = programs.find(|path| path.is_file()).unwrap();
            symlink(program, machine.path("bin").join(name)).unwrap();
        }
        machine.programs(&COMPILER).program("id", "echo 1000")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(self, name: &str, body: &str) -> Self {
        // Written by another process: a file that this one holds open for writing while some test
        // forks could not be run.
        let status = Command::new("sh")
            .args(["-c", "printf '#!/bin/bash\n%s\n' \"$1\" > \"$0\" && chmod +x \"$0\""])
            .arg(self.path("bin").join(name))
            .arg(body)
            .status();
        assert!(status.unwrap().success());
        self
    }

    fn programs(self, names: &[&str]) -> Self {
        names.iter().fold(self, |machine, name| machine.program(name, ""))
    }

    fn file(self, path: &str) -> Self {
        let path = self.path("root").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        self
    }

    /// Root of Debian. `body` does what `apt-get` is asked for, in the folders `bin` and `root`.
    fn root(self, body: &str) -> Self {
        let body = format!(
            "echo \"apt-get $*\" >> {}; bin={}; root={}\n{body}",
            self.path("installs").display(),
            self.path("bin").display(),
            self.path("root").display(),
        );
        self.program("id", "echo 0").program("apt-get", &body)
    }

    /// Python with pip. `body` does what `pip install` is asked for, in the folder `target`.
    fn python(self, body: &str) -> Self {
        let body = format!(
            "if [ \"$3\" = --version ]; then exit 0; fi\n\
             echo \"python3 $*\" >> {}\n\
             while [ \"$1\" != --target ]; do shift; done; target=$2\n{body}",
            self.path("installs").display(),
        );
        self.program("python3", &body)
    }

    fn prepare(&self) -> Prepared {
        self.prepare_with(&[])
    }

    fn prepare_with(&self, environment: &[(&str, &Path)]) -> Prepared {
        let script = "source \"$1\"; libclang\n\
                      echo \"generator: ${CMAKE_GENERATOR:-}\"\n\
                      echo \"arguments: ${BINDGEN_EXTRA_CLANG_ARGS:-}\"\n\
                      echo \"cmake: $(command -v cmake)\"";
        let prepare = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/prepare");
        let output = Command::new(self.path("bin/bash"))
            .args(["-euo", "pipefail", "-c", script, "test"])
            .arg(prepare)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("LIBCLANG_SEARCH_ROOT", self.path("root"))
            .env("CARGO_TARGET_DIR", self.path("target"))
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        Prepared {
            success: output.status.success(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            installs: fs::read_to_string(self.path("installs")).unwrap_or_default(),
        }
    }
}

impl Prepared {
    #[track_caller]
    fn succeeds_with(&self, words: &[&str]) {
        assert!(self.success, "{}", self.stderr);
        for word in words {
            assert!(self.stdout.contains(word), "no {word:?} in\n{}", self.stdout);
        }
    }

    #[track_caller]
    fn fails_with(&self, words: &[&str]) {
        assert!(!self.success, "{}", self.stdout);
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in\n{}", self.stderr);
        }
    }
}

#[test]
fn nothing_is_installed_where_everything_is_there() {
    for names in [
        "usr/lib/llvm-14/lib/libclang.so",
        "usr/lib/llvm-14/lib/libclang-14.so.1",
        "usr/lib/x86_64-linux-gnu/libclang-14.so",
        LIBCLANG,
        "usr/lib64/libclang.so.18.1",
        "usr/local/lib/libclang.so",
        "Library/Developer/CommandLineTools/usr/lib/libclang.dylib",
    ] {
        let machine = Machine::new().programs(&["cmake", "make"]).file(names).root("false");
        let prepared = machine.prepare();
        prepared.succeeds_with(&[names, "generator: \n"]);
        assert_eq!((prepared.installs.as_str(), prepared.stderr.as_str()), ("", ""), "{names}");
    }
}

#[test]
fn llvm_s_cpp_library_is_not_taken_for_libclang() {
    let machine = || {
        let machine = Machine::new().programs(&["cmake", "make"]);
        machine.file(CPP_LIBRARY).file(CPP_LIBRARY_OF_LLVM).file("usr/lib/libclangBasic.so.14")
    };
    let prepared = machine().root(&format!("touch $root/{LIBCLANG}")).prepare();
    prepared.succeeds_with(&[LIBCLANG]);
    assert!(prepared.installs.contains("libclang-dev"), "{}", prepared.installs);

    let wheel = "mkdir -p $target/clang/native; touch $target/clang/native/libclang.so";
    let prepared = machine().python(wheel).prepare();
    prepared.succeeds_with(&["target/build-tools/clang/native/libclang.so"]);
    assert!(prepared.installs.contains("libclang==18.1.1"), "{}", prepared.installs);

    machine().prepare().fails_with(&["libclang is missing", "hint: "]);
}

#[test]
fn root_gets_debian_s_packages_with_a_new_list_where_the_old_one_does_not_do() {
    let machine = Machine::new().root(&format!(
        "if [ \"$1\" = update ]; then mkdir -p $root; touch $root/updated; exit; fi\n\
         [ -e $root/updated ] || exit 100\n\
         mkdir -p $root/usr/lib/x86_64-linux-gnu; touch $root/{LIBCLANG}\n\
         touch $bin/cmake $bin/make; chmod +x $bin/cmake $bin/make"
    ));
    let prepared = machine.prepare();
    prepared.succeeds_with(&[LIBCLANG]);
    let verbs: Vec<&str> =
        prepared.installs.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(verbs, ["install", "update", "install"]);
}

#[test]
fn a_user_gets_what_is_missing_from_pypi_and_uses_it_again() {
    let machine = Machine::new().python(
        "mkdir -p $target/cmake/data/bin $target/bin $target/clang/native\n\
         touch $target/cmake/data/bin/cmake $target/bin/ninja $target/clang/native/libclang.so\n\
         chmod +x $target/cmake/data/bin/cmake $target/bin/ninja",
    );
    let words = ["build-tools/clang/native/libclang.so", "generator: Ninja", "data/bin/cmake"];
    let prepared = machine.prepare();
    prepared.succeeds_with(&words);
    let again = machine.prepare();
    again.succeeds_with(&words);
    assert_eq!(again.installs, prepared.installs);
    assert_eq!(again.stderr, "");
}

#[test]
fn without_make_cmake_is_told_to_take_ninja() {
    let machine = Machine::new().programs(&["cmake", "ninja"]).file(LIBCLANG);
    machine.prepare().succeeds_with(&["generator: Ninja\n"]);
    let machine = Machine::new().programs(&["cmake"]).file(LIBCLANG);
    machine.prepare().fails_with(&["make", "is missing"]);
}

#[test]
fn a_libclang_without_headers_gets_those_of_the_compiler() {
    let machine = || {
        let gcc = "echo /usr/lib/gcc/x86_64-linux-gnu/12/include";
        Machine::new().programs(&["cmake", "make"]).program("gcc", gcc).file(LIBCLANG)
    };
    let arguments = "arguments: -I/usr/lib/gcc/x86_64-linux-gnu/12/include";
    machine().prepare().succeeds_with(&[arguments]);
    machine().file(HEADER).prepare().succeeds_with(&["arguments: \n"]);
}

#[test]
fn without_a_network_it_says_at_once_what_to_install() {
    let failing = "echo 'could not resolve' >&2; exit 1";
    for machine in [
        Machine::new().root(failing).python(failing),
        Machine::new().root(failing),
        Machine::new().python(failing),
        Machine::new(),
    ] {
        let prepared = machine.file(CPP_LIBRARY).prepare();
        prepared.fails_with(&["hint: ", "apt-get install cmake make g++ libclang-dev"]);
        let tries = !prepared.installs.is_empty();
        assert_eq!(prepared.stderr.contains("could not resolve"), tries, "{}", prepared.stderr);
    }
}

#[test]
fn what_cannot_be_installed_is_named() {
    let machine = Machine::new();
    fs::remove_file(machine.path("bin/c++")).unwrap();
    machine.prepare().fails_with(&["a C++ compiler is missing"]);
    let machine = Machine::new();
    fs::remove_file(machine.path("bin/cargo")).unwrap();
    machine.prepare().fails_with(&["cargo is missing"]);
}

#[test]
fn a_stated_path_of_libclang_is_the_only_one() {
    let machine = Machine::new().programs(&["cmake", "make"]).file(LIBCLANG);
    let empty = machine.path("root/usr");
    let prepared = machine.prepare_with(&[("LIBCLANG_PATH", &empty)]);
    prepared.fails_with(&["LIBCLANG_PATH is set, and there is no libclang in"]);
    let library = machine.path("root").join(LIBCLANG);
    for stated in [library.as_path(), library.parent().unwrap()] {
        machine.prepare_with(&[("LIBCLANG_PATH", stated)]).succeeds_with(&[LIBCLANG]);
    }
}
