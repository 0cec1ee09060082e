//! The binary: parse, dispatch, print the failure, return the exit code.

fn main() -> std::process::ExitCode {
    if let Some(code) = selftest::sut::confine::entry(std::env::args_os().skip(1)) {
        return code;
    }
    std::process::ExitCode::SUCCESS
}
