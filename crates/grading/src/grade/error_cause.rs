//! Causes of failed tool calls, finer than the specification's nine classes.
//!
//! They are derived from the formats in which agents report their own errors, the kind of check
//! that failed, error messages and exit codes.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::ErrorClass;
use crate::english::EnglishPatterns;

/// Cause of a failed call. If two causes match, the one listed first wins.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorCause {
    /// The text to replace is missing from the file or occurs more than once.
    EditMismatch,
    /// The file was not read before it was edited.
    NotReadYet,
    /// The file has changed since it was read.
    StaleFile,
    /// The arguments do not match the tool's parameters.
    BadArguments,
    /// The output or the file exceeds the tool's limit.
    TooLarge,
    /// The tool does not exist.
    ToolNotFound,
    /// A person or a policy refused the call.
    Refused,
    /// A program, module or package is missing.
    MissingDependency,
    /// Tests failed.
    TestFailure,
    /// A linter or formatter reported problems.
    LintFailure,
    /// Code does not compile or has type errors.
    CompileError,
    /// Code or data could not be parsed.
    SyntaxError,
    /// A server limited the request rate.
    RateLimit,
    /// A server returned a status of 400 or more.
    HttpStatus,
    /// The connection failed.
    NetworkError,
    /// Access was denied.
    PermissionDenied,
    /// A file or path does not exist, or is a folder.
    FileNotFound,
    /// A time limit was exceeded.
    Timeout,
    /// The program was killed or ran out of memory.
    Killed,
    /// A Git command failed.
    GitFailure,
    /// A container could not be run.
    ContainerFailure,
    /// A program ended with an exception of its own.
    Exception,
    /// A program ended with an exit code other than 0 and no further information.
    CommandFailed,
    /// Any other cause.
    #[default]
    Unknown,
}

selftest_text::named!(ErrorCause);

/// The kind of check that a failed command ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailedCheck {
    Tests,
    Build,
    Lint,
}

/// Facts about a failed call besides its message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FailedCall {
    pub(super) exit_code: Option<i64>,
    /// True if the tool runs commands.
    pub(super) is_shell: bool,
    pub(super) check: Option<FailedCheck>,
}

/// Number of bytes examined at each end of an error.
const MAX_LOOKED_AT: usize = 3000;

/// Patterns in order of priority; the first match decides.
const PATTERNS: [(ErrorCause, &str); 21] = [
    (
        ErrorCause::EditMismatch,
        r"(?i)string to replace not found|matches of the string to replace|no replacement was performed|did not appear verbatim|old_?(?:str|string|text)\S* (?:was )?not (?:found|unique)|could not find (?:the )?(?:exact )?(?:old|string|text|match|context|expected)|failed to (?:find|apply) (?:context|expected|patch|hunk|edit)|hunk #?\d+ failed|patch (?:failed|does not apply)|search (?:block|string|text|content) (?:was |is )?not found|0 occurrences found|multiple occurrences|no changes to make|old_string and new_string are|invalid context|no sufficiently similar match",
    ),
    (
        ErrorCause::NotReadYet,
        r"(?i)file has not been read yet|(?:must|need to) (?:first )?(?:read|view|open) (?:the |this )?file|read it first before",
    ),
    (
        ErrorCause::StaleFile,
        r"(?i)(?:has been |was )(?:modified|changed) (?:since|externally|by)|file (?:content )?(?:has )?changed since|unexpectedly modified",
    ),
    (
        ErrorCause::Refused,
        r"(?i)^\W*(?:the )?user (?:doesn.t want|rejected|declined|denied|cancelled|refused|chose not)|rejected by (?:the )?user|you haven.t granted|requires approval|user did not (?:allow|approve)|operation cancelled by user",
    ),
    (
        ErrorCause::BadArguments,
        r"(?i)InputValidationError|required parameter|missing (?:a )?required (?:argument|param|property|field)|invalid (?:arguments?|parameters?|params|tool input|input) (?:for|to|:)|(?:parameter|argument|property) `?\w+`? (?:is missing|is required|must be)|unexpected keyword argument|params must have|must NOT have additional properties|validation errors? for|invalid_type|failed to parse (?:tool|function) (?:arguments|call)",
    ),
    (
        ErrorCause::TooLarge,
        r"(?i)exceeds (?:the )?maximum (?:allowed )?(?:tokens|size|length|limit)|file (?:content|is) (?:too large|\([\d.]+ ?[KM]B\) exceeds)|output too large|response too large|too many (?:lines|results|matches)",
    ),
    (
        ErrorCause::ToolNotFound,
        r"(?i)no such tool|unknown tool|tool (?:\S+ )?(?:does not exist|not found|is not available)|unknown function|invalid tool name",
    ),
    (
        ErrorCause::RateLimit,
        r"(?i)rate.?limit|too many requests|quota exceeded|overloaded|\b429\b.{0,40}(?:status|error|request)|(?:status|http|code)\D{0,12}\b429\b",
    ),
    (
        ErrorCause::MissingDependency,
        r"(?i)JAVA_HOME is (?:not set|not defined|set to an invalid)|JAVA_HOME environment variable is not|no 'java' command could be found|Unable to locate a Java Runtime|No matching toolchains found|SDK location not found|bad interpreter|env: \S+: No such file or directory|spawn \S+ ENOENT|You must install or update \.NET|\.NET SDK was not found|rustup could not choose|could not find gem|bundler: failed to load|ERR_MODULE_NOT_FOUND|executable doesn't exist|browserType\.launch|command not found|\b(?:binary|interpreter) (?:was )?not found|: not found\s*$|No module named|ModuleNotFoundError|Cannot find (?:module|package)|could not (?:find|resolve) (?:module|package|dependency)|is not recognized as an internal|no such (?:command|subcommand)|unresolved (?:import|module)|package \S+ is not (?:installed|in)|none of PyTorch|missing dependenc|Missing script|cannot find -l|fatal error: \S+\.h: No such file|executable (?:file )?not found|no required module provides",
    ),
    (
        ErrorCause::ContainerFailure,
        r"(?i)docker daemon|docker: |Error response from daemon|pull access denied|no such (?:container|image|service)|failed to solve|docker-compose: |podman: ",
    ),
    (
        ErrorCause::TestFailure,
        r"(?m)^error: (?:test failed, to rerun|\d+ targets? failed)|\b[1-9]\d* (?:tests? |specs? )?failed\b|=+ (?:FAILURES|ERRORS) =+|^FAILED |^--- FAIL|^FAIL\s|test result: FAILED|FAILED \((?:failures|errors)=|\b[1-9]\d* failing\b|Tests: +[1-9]\d* failed|short test summary info|[1-9]\d* failures?\b|There (?:was|were) \d+ failures?",
    ),
    // These must come before the compiler messages of the same form.
    (
        ErrorCause::GitFailure,
        r"(?m)^error: (?:your local changes|failed to push|pathspec '|cannot (?:lock ref|pull|rebase|delete branch))",
    ),
    (
        ErrorCause::CompileError,
        r"(?m)\berror TS\d+|^error(?:\[E\d+\])?: |could not compile|: error: |undefined reference to|\bcannot find symbol\b|COMPILATION ERROR|BUILD FAILED|BUILD FAILURE|Failed to (?:build|compile)|Build failed|Module build failed|^\S+\.go:\d+:\d+: |Type error: |error\[call-non-callable\]|error\[[a-z-]+\]: |npm ERR! code ELIFECYCLE",
    ),
    (
        ErrorCause::LintFailure,
        r"(?m)^\s*(?:\S+:\d+:\d+:? )?[A-Z]{1,4}\d{3,4} |✖ \d+ problems?|\b\d+ problems? \(\d+ errors?|Found \d+ (?:errors?|diagnostics?)\b|would reformat|Code style issues|clippy::|eslint|rubocop|\[[a-z-]+/[a-z-]+\]$|shellcheck|pylint|flake8|--fix`? option",
    ),
    (
        ErrorCause::SyntaxError,
        r"(?i)SyntaxError|IndentationError|syntax error|invalid syntax|unexpected (?:token|eof|end of)|JSONDecodeError|parse error|unterminated string|unmatched|failed to parse|unexpected indent",
    ),
    (
        ErrorCause::HttpStatus,
        r"(?i)status (?:code )?[45]\d\d\b|\bHTTP(?:/[\d.]+)? [45]\d\d\b|\b[45]\d\d (?:client|server) error|(?:error|code|status)[ :=]+[45]\d\d\b|internal server error|bad gateway|service unavailable|\b40[134] (?:unauthori|forbidden|not found)|returned error: [45]\d\d",
    ),
    (
        ErrorCause::GitFailure,
        r"(?mi)^fatal: |nothing to commit|merge conflict|CONFLICT \(|not a git repository|failed to push|non-fast-forward|pathspec .* did not match|index\.lock|no PR found|no pull requests? found",
    ),
    (
        ErrorCause::Killed,
        r"(?i)out of memory|MemoryError|heap limit|oom-?kill|\bkilled\b|signal 9|SIGKILL|SIGTERM|segmentation fault|core dumped|is not running, so cannot be killed",
    ),
    (ErrorCause::FileNotFound, r"(?i)EISDIR|is a directory|ENOTDIR|not a directory|no such file"),
    (
        ErrorCause::Exception,
        r"(?m)^Traceback \(most recent call last\)|^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception)\b:?|^\s+at \S+ \(.*:\d+:\d+\)|panicked at|Uncaught|Unhandled|thread '.*' panicked",
    ),
    (
        ErrorCause::CommandFailed,
        r"(?i)\bcommand failed\b|exit(?:ed with)?(?: code| status)\D{0,4}[1-9]",
    ),
];

static SET: LazyLock<EnglishPatterns> =
    LazyLock::new(|| EnglishPatterns::new(PATTERNS.map(|(_, text)| text)));

impl ErrorCause {
    /// Determines the cause of a failed call from its message, the class of the message, and other
    /// facts.
    pub(super) fn classify(words: &str, class: ErrorClass, call: FailedCall) -> Self {
        let head = &words[..words.floor_char_boundary(MAX_LOOKED_AT)];
        let first = |text: &str| PATTERNS.get(SET.first(text)?).map(|(cause, _)| *cause);
        let tail = || {
            let from = words.ceil_char_boundary(words.len().saturating_sub(MAX_LOOKED_AT));
            // A short message is already covered by its head.
            (from > 0).then(|| first(&words[from..])).flatten()
        };
        // Program output may contain anything, so the kind of check takes precedence, unless the
        // check could not run.
        let by_words = match (first(head), tail()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let did_not_run = matches!(
            by_words,
            Some(
                ErrorCause::MissingDependency
                    | ErrorCause::Refused
                    | ErrorCause::BadArguments
                    | ErrorCause::ContainerFailure
            )
        ) || class == ErrorClass::Timeout;
        if let Some(check) = call.check.filter(|_| !did_not_run) {
            return match check {
                FailedCheck::Tests => ErrorCause::TestFailure,
                FailedCheck::Build => ErrorCause::CompileError,
                FailedCheck::Lint => ErrorCause::LintFailure,
            };
        }
        let by_class = match class {
            ErrorClass::FileNotFound => Some(ErrorCause::FileNotFound),
            ErrorClass::PermissionDenied => Some(ErrorCause::PermissionDenied),
            ErrorClass::Timeout => Some(ErrorCause::Timeout),
            ErrorClass::ApiError => Some(ErrorCause::HttpStatus),
            ErrorClass::SyntaxError => Some(ErrorCause::SyntaxError),
            ErrorClass::NetworkError => Some(ErrorCause::NetworkError),
            ErrorClass::ToolNotFound => Some(ErrorCause::ToolNotFound),
            ErrorClass::CommandFailed | ErrorClass::Unknown => None,
        };
        match by_words {
            // Error formats of the agent itself, and causes more specific than the class.
            Some(cause @ (ErrorCause::RateLimit | ErrorCause::ContainerFailure)) => cause,
            Some(cause) if cause < ErrorCause::SyntaxError => cause,
            found => by_class.or(found).unwrap_or_else(|| match call.exit_code {
                // Conventions of `timeout` (124), shells (126, 127) and signals (128 + n).
                Some(124) => ErrorCause::Timeout,
                Some(137 | 139 | 143) => ErrorCause::Killed,
                Some(126) => ErrorCause::PermissionDenied,
                Some(127) => ErrorCause::MissingDependency,
                Some(code) if code != 0 => ErrorCause::CommandFailed,
                _ if call.is_shell || class == ErrorClass::CommandFailed => {
                    ErrorCause::CommandFailed
                }
                _ => ErrorCause::Unknown,
            }),
        }
    }

    /// Returns advice for the owner of the agent, in one sentence without a full stop.
    pub fn advice(self) -> Option<&'static str> {
        Some(match self {
            ErrorCause::EditMismatch => {
                "have the agent read the lines again right before it edits them, and quote more of \
                 what stands around"
            }
            ErrorCause::NotReadYet => "tell the agent to read each file before its first edit",
            ErrorCause::StaleFile => {
                "formatters and other writers change files under the agent: run them at the end, \
                 or have it read again"
            }
            ErrorCause::BadArguments => "show an example call of the tool in its description",
            ErrorCause::TooLarge => {
                "tell the agent to read parts of large files and to narrow its searches"
            }
            ErrorCause::ToolNotFound => {
                "offer the tool, or name in the instructions those that there are"
            }
            ErrorCause::Refused => {
                "allow the commands that are always approved, and say in the instructions which \
                 are not wanted"
            }
            ErrorCause::MissingDependency => {
                "install what is missing before the session, or say in the instructions how \
                 programs are started (such as `uv run`)"
            }
            ErrorCause::TestFailure => {
                "tests fail while work goes on; where they stay red, look at the sessions"
            }
            ErrorCause::LintFailure => "let a hook format and lint after each edit",
            ErrorCause::CompileError => "have the agent compile after small steps",
            ErrorCause::SyntaxError => {
                "have the agent write scripts into files in place of long one-liners"
            }
            ErrorCause::RateLimit => "run fewer agents at once, or ask for a higher limit",
            ErrorCause::HttpStatus => "check addresses and credentials that the agent is given",
            ErrorCause::NetworkError => "check what the agent's sandbox may connect to",
            ErrorCause::PermissionDenied => "check what the agent's sandbox may read and write",
            ErrorCause::FileNotFound => {
                "say in the instructions where things are, and have the agent list before it reads"
            }
            ErrorCause::Timeout => {
                "raise the time limit, or have the agent run long commands in the background"
            }
            ErrorCause::Killed => "give the commands more memory, or smaller inputs",
            ErrorCause::GitFailure => {
                "say in the instructions which state git is in and who commits"
            }
            ErrorCause::ContainerFailure => "start the containers before the session",
            ErrorCause::Exception => "look at the sessions: programs that the agent ran crashed",
            ErrorCause::CommandFailed | ErrorCause::Unknown => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str, exit_code: Option<i64>, is_shell: bool) -> ErrorCause {
        let call = FailedCall { exit_code, is_shell, check: None };
        ErrorCause::classify(words, ErrorClass::classify(words, exit_code), call)
    }

    #[test]
    fn agents_own_shapes() {
        for (words, cause) in [
            ("String to replace not found in file.\nString: def main():", ErrorCause::EditMismatch),
            (
                "Found 2 matches of the string to replace, but replace_all is false.",
                ErrorCause::EditMismatch,
            ),
            (
                "No replacement was performed, old_str `x` did not appear verbatim in /a.py.",
                ErrorCause::EditMismatch,
            ),
            (
                "File has not been read yet. Read it first before writing to it.",
                ErrorCause::NotReadYet,
            ),
            (
                "File has been modified since read, either by the user or by a linter.",
                ErrorCause::StaleFile,
            ),
            (
                "InputValidationError: Task failed due to the following issue:\nThe required \
                 parameter `prompt` is missing",
                ErrorCause::BadArguments,
            ),
            ("Error: No such tool available: AskUserQuestion", ErrorCause::ToolNotFound),
            (
                "File content (28561 tokens) exceeds maximum allowed tokens (25000).",
                ErrorCause::TooLarge,
            ),
            ("EISDIR: illegal operation on a directory, read", ErrorCause::FileNotFound),
            ("Request failed with status code 404", ErrorCause::HttpStatus),
            ("something else", ErrorCause::Unknown),
        ] {
            assert_eq!(of(words, None, false), cause, "{words}");
        }
    }

    #[test]
    fn commands_by_what_they_print() {
        for (words, code, cause) in [
            (
                "============ test session starts =====\nE   FileNotFoundError: x\n=== 1 failed, 2 \
                 passed in 0.1s ===",
                Some(1),
                ErrorCause::TestFailure,
            ),
            (
                "/bin/bash: line 1: pytest: command not found",
                Some(127),
                ErrorCause::MissingDependency,
            ),
            (
                "ModuleNotFoundError: No module named 'requests'",
                Some(1),
                ErrorCause::MissingDependency,
            ),
            (
                "SIM115 Use a context manager for opening files\n   --> a.py:191:25",
                Some(1),
                ErrorCause::LintFailure,
            ),
            ("src/a.ts(217,9): error TS2322: Type 'x'", Some(2), ErrorCause::CompileError),
            ("error[E0308]: mismatched types", Some(101), ErrorCause::CompileError),
            (
                "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
                Some(1),
                ErrorCause::ContainerFailure,
            ),
            (
                "On branch master\nnothing to commit, working tree clean",
                Some(1),
                ErrorCause::GitFailure,
            ),
            ("error: failed to push some refs to 'origin'", Some(1), ErrorCause::GitFailure),
            (
                "error: pathspec 'x' did not match any file(s) known to git",
                Some(1),
                ErrorCause::GitFailure,
            ),
            ("error: test failed, to rerun pass `--lib`", Some(101), ErrorCause::TestFailure),
            ("error: cannot find macro `x` in this scope", Some(101), ErrorCause::CompileError),
            ("error: target shim binary not found", Some(1), ErrorCause::MissingDependency),
            ("rm: cannot remove 'x': Permission denied", Some(1), ErrorCause::PermissionDenied),
            ("cat: x: No such file or directory", Some(1), ErrorCause::FileNotFound),
            ("Command timed out after 2m 0s", None, ErrorCause::Timeout),
            ("", Some(137), ErrorCause::Killed),
            ("curl: (7) Failed to connect: Connection refused", Some(7), ErrorCause::NetworkError),
            (
                "Traceback (most recent call last):\n  File \"a\"\nKeyError: 'x'",
                Some(1),
                ErrorCause::Exception,
            ),
            ("hm", Some(3), ErrorCause::CommandFailed),
            ("hm", None, ErrorCause::CommandFailed),
        ] {
            assert_eq!(of(words, code, true), cause, "{words}");
        }
    }

    #[test]
    fn what_was_checked_decides_unless_it_could_not_run() {
        let check = |check, words| {
            let call = FailedCall { exit_code: Some(1), is_shell: true, check: Some(check) };
            ErrorCause::classify(words, ErrorClass::classify(words, Some(1)), call)
        };
        assert_eq!(check(FailedCheck::Lint, "a.py: bad"), ErrorCause::LintFailure);
        assert_eq!(check(FailedCheck::Tests, "Permission denied in x"), ErrorCause::TestFailure);
        assert_eq!(check(FailedCheck::Build, "no"), ErrorCause::CompileError);
        let missing = check(FailedCheck::Tests, "pytest: command not found");
        assert_eq!(missing, ErrorCause::MissingDependency);
    }

    #[test]
    fn names_are_those_of_the_classes_where_there_is_one() {
        for &class in ErrorClass::ALL {
            assert!(
                ErrorCause::from_name(class.name()).is_some() || class == ErrorClass::ApiError,
                "{class}"
            );
        }
        for &cause in ErrorCause::ALL {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.name());
        }
    }
}
