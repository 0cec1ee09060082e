//! Replies of models that draft skills: whatever is taken becomes a SKILL.md with the front matter
//! that the program wrote.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use selftest_grading::improve::draft::DraftReader;

static READER: LazyLock<DraftReader> = LazyLock::new(DraftReader::new);

fuzz_target!(|reply: &str| {
    if let Ok(draft) = READER.read(reply) {
        let file = draft.render();
        let start = format!("---\nname: {}\ndescription: ", draft.name);
        assert!(file.starts_with(&start), "{file}");
        assert!(!draft.name.is_empty() && !draft.name.contains(['/', '.', '\n']));
    }
});
