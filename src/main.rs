//! The binary: parse, dispatch, print the failure, return the exit code.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
