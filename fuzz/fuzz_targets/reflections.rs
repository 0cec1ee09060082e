//! Documents that agents submit as reflections: any document has a score between 0 and 1 that its issues
//! explain.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use selftest_grading::grade::reflection::{
    ReflectionRules, ReflectionSettings, SchemaFileError, grade_reflection, parse_reflections,
};

static RULES: LazyLock<ReflectionRules> = LazyLock::new(|| {
    // The defaults name no file.
    let rules = ReflectionRules::new(&ReflectionSettings::default(), |file| {
        Err(SchemaFileError::Unreadable { file: file.to_owned(), source: std::io::ErrorKind::NotFound.into() })
    });
    rules.expect("the defaults can be used")
});

fuzz_target!(|text: &str| {
    let Ok(documents) = parse_reflections(text) else {
        return;
    };
    for document in documents {
        let grade = grade_reflection(&document, RULES.for_agent(None));
        let lost: f64 = grade.issues.iter().map(|issue| issue.deduction).sum();
        assert!((grade.score.get() - (1.0 - lost)).abs() < 1e-9);
    }
});
