//! The binary: parse, dispatch, return the exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The sandbox of the `command` adapter starts this same binary again.
    if let Some(code) = selftest_sandbox::run_if_requested(std::env::args_os().skip(1)) {
        return code;
    }
    match selftest::cli::Cli::read(std::env::args_os()) {
        Ok(cli) => selftest::execute(cli).into(),
        Err(error) => selftest::print_usage(&error).into(),
    }
}
