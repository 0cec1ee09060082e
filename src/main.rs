//! The binary: parse, dispatch, return the exit code.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // The sandbox of the `command` adapter starts this same binary again.
    if let Some(code) = selftest_harness::sut::confine::entry(std::env::args_os().skip(1)) {
        return code;
    }
    selftest::command::execute(selftest::cli::Cli::parse()).into()
}
