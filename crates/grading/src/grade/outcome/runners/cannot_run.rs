//! Recognises output of tests that could not run: the runner, its interpreter, a module, a file or
//! a service is missing. Such a run says nothing about the work.

use std::sync::LazyLock;

use crate::english::EnglishPatterns;
use crate::grade::ErrorClass;

/// Messages by which shells, interpreters, build tools and containers say that something is
/// missing.
const MISSING: [&str; 8] = [
    // Shells and launchers.
    r"(?im)command not found|: not found\s*$|is not recognized as (?:an internal|the name)|executable (?:file )?not found|No such file or directory\s*$|cannot execute(?: binary file|: required file not found)|bad interpreter|Exec format error|spawn \S+ ENOENT",
    // Java and its builds.
    r"(?im)JAVA_HOME is (?:not set|set to an invalid)|no 'java' command|Unable to locate a Java Runtime|No compiler is provided in this environment|Could not find (?:tools\.jar|or load main class org\.(?:gradle|apache\.maven))|Unsupported class file major version|Could not (?:resolve all|find) (?:files|dependencies|artifacts?)|Non-resolvable parent POM|Could not create service of type|No matching toolchains found|SDK location not found",
    // Python.
    r"(?im)No module named |ModuleNotFoundError|ImportError while (?:loading conftest|importing test module)|^ERROR: (?:file or directory )?not found|unrecognized arguments|^INTERNALERROR>|error: no such option|ERROR: usage:|django\.core\.exceptions\.ImproperlyConfigured",
    // JavaScript.
    r"(?im)Cannot find (?:module|package)|Missing script|missing script|ERR_MODULE_NOT_FOUND|npm ERR! enoent|Cannot find native binding|browserType\.launch: Executable doesn't exist|You must use Node|The engine .node. is incompatible|Couldn't find a script named|Command .\S+. not found",
    // Ruby, PHP, .NET, Rust, Go, C.
    r"(?im)Could not find (?:gem|\S+ in (?:any of the sources|locally))|bundler: failed to load|Could not open input file|You must install or update \.NET|A compatible .NET SDK was not found|framework .Microsoft\.\w+.*was not found|error: no such (?:sub)?command|is not installed for the toolchain|rustup could not choose|linker .\S+. not found|no required module provides|go: (?:cannot find main module|go\.mod file not found|download|updates to go\.mod)|CMake Error: The source directory|No CMAKE_\w+_COMPILER could be found",
    // make and its like.
    r"(?im)No rule to make target|No targets specified and no makefile found|Justfile does not contain recipe|No justfile found|Task \S+ not found|BUILD FILE NOT FOUND|no such target",
    // Containers and services.
    r"(?im)Cannot connect to the Docker daemon|Error response from daemon|docker: |No such (?:container|service|image)|permission denied while trying to connect to the docker|Connection refused|could not connect to server|ECONNREFUSED|Could not resolve host|Temporary failure in name resolution",
    // The machine.
    r"(?im)No space left on device|Cannot allocate memory|Operation timed out|timed out after",
];

static PATTERNS: LazyLock<EnglishPatterns> = LazyLock::new(|| EnglishPatterns::new(MISSING));

/// Number of bytes examined at each end.
const MAX_LOOKED_AT: usize = 4000;

/// Returns true if the output says that the check could not run. Meaningful only for a run without
/// a count of passed or failed tests.
pub(in crate::grade::outcome) fn could_not_run(output: &str) -> bool {
    let head = &output[..output.floor_char_boundary(MAX_LOOKED_AT)];
    let tail = &output[output.ceil_char_boundary(output.len().saturating_sub(MAX_LOOKED_AT))..];
    let by_class = || {
        matches!(
            ErrorClass::classify(output, None),
            ErrorClass::ToolNotFound
                | ErrorClass::FileNotFound
                | ErrorClass::PermissionDenied
                | ErrorClass::Timeout
                | ErrorClass::NetworkError
        )
    };
    PATTERNS.first(head).is_some() || PATTERNS.first(tail).is_some() || by_class()
}
