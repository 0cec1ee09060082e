//! The built-in prompts of generator, judge and assistant. A project overrides a prompt with a file
//! of the same name in its own `prompts/` folder.

use selftest_models::prompts::BuiltInTemplates;

/// The templates of `prompts/` compiled into the binary: path and text.
pub const BUILT_IN: BuiltInTemplates = &[
    ("generator/clear_summary.md", include_str!("../../../prompts/generator/clear_summary.md")),
    (
        "generator/docs_reorganization.md",
        include_str!("../../../prompts/generator/docs_reorganization.md"),
    ),
    (
        "generator/evidence_restriction.md",
        include_str!("../../../prompts/generator/evidence_restriction.md"),
    ),
    ("generator/generic.md", include_str!("../../../prompts/generator/generic.md")),
    ("judge/explanation.md", include_str!("../../../prompts/judge/explanation.md")),
    ("judge/likelihood.md", include_str!("../../../prompts/judge/likelihood.md")),
    ("judge/questions.md", include_str!("../../../prompts/judge/questions.md")),
    ("judge/rubric.md", include_str!("../../../prompts/judge/rubric.md")),
    ("judge/tool_calls.md", include_str!("../../../prompts/judge/tool_calls.md")),
    ("sut/read_info.md", include_str!("../../../prompts/sut/read_info.md")),
];

#[cfg(test)]
mod tests {
    use selftest_models::prompts::PromptLibrary;

    use super::*;

    #[test]
    fn every_built_in_template_loads() {
        let folder = tempfile::tempdir().unwrap();
        let mut library = PromptLibrary::new(folder.path(), BUILT_IN);
        for (name, _) in BUILT_IN {
            assert!(library.load(name).unwrap(), "{name}");
        }
        assert_eq!(library.digests().len(), BUILT_IN.len());
    }
}
