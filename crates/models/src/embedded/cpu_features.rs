//! Checks that the CPU supports the instructions that llama.cpp was compiled for.
//!
//! llama.cpp's kernels are chosen at build time: a statically linked library cannot select them at
//! startup. The check rejects an older CPU before it hits an illegal instruction.

use super::llama;
use crate::ModelError;

/// Returns an error if instructions are missing.
pub(super) fn check() -> Result<(), ModelError> {
    check_against(&llama::compiled_features(), cpu_supports)
}

fn check_against(wanted: &[&'static str], has: impl Fn(&str) -> bool) -> Result<(), ModelError> {
    let missing: Vec<&str> = wanted.iter().copied().filter(|name| !has(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let what = format!("the embedded engine needs a processor with {}", missing.join(", "));
    let hint = "use a model server (ollama/NAME, openai/NAME), or build selftest on this machine \
                with RUSTFLAGS=-Ctarget-cpu=native";
    Err(ModelError::engine(what, Some(hint.to_owned())))
}

#[cfg(target_arch = "x86_64")]
fn cpu_supports(name: &str) -> bool {
    match name {
        "SSSE3" => std::is_x86_feature_detected!("ssse3"),
        "AVX" => std::is_x86_feature_detected!("avx"),
        "AVX2" => std::is_x86_feature_detected!("avx2"),
        "FMA" => std::is_x86_feature_detected!("fma"),
        "F16C" => std::is_x86_feature_detected!("f16c"),
        "BMI2" => std::is_x86_feature_detected!("bmi2"),
        "AVX-512" => std::is_x86_feature_detected!("avx512f"),
        _ => true,
    }
}

/// Builds for other architectures target the oldest processors.
#[cfg(not(target_arch = "x86_64"))]
fn has(_: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_these_tests_has_all_of_it() {
        check().unwrap();
    }

    #[test]
    fn what_is_missing_is_named_with_a_way_out() {
        let error = check_against(&["AVX", "AVX2", "FMA"], |name| name == "AVX").unwrap_err();
        assert_eq!(error.to_string(), "the embedded engine needs a processor with AVX2, FMA");
        assert!(error.hint().unwrap().contains("ollama/NAME"));
    }
}
