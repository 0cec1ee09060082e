//! Built-in prompts for grading sessions and drafting skills. A project can override each one with
//! a file of the same name in its own `prompts/`.

use selftest_models::prompts::BuiltInTemplates;

/// Templates of `prompts/` embedded in this binary, as pairs of path and text.
pub const BUILT_IN: BuiltInTemplates = &[
    ("grade/session_v1.md", include_str!("../../../prompts/grade/session_v1.md")),
    ("skill/draft_v1.md", include_str!("../../../prompts/skill/draft_v1.md")),
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
