//! A configuration is whatever stands in the file: it is refused with words, or what it
//! resolves to can be shown and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use selftest_config::{
    ConfigErrors, ConfigSources, ParsedFileCache, ResolvedConfig, resolve, show,
};

fuzz_target!(|yaml: &str| {
    match load(yaml) {
        Ok(resolved) => {
            let shown = show(&resolved);
            let again = load(&shown).expect("what is shown can be read");
            assert_eq!(again.config, resolved.config);
        }
        Err(errors) => assert!(!errors.render(false).is_empty()),
    }
});

fn load(yaml: &str) -> Result<ResolvedConfig, ConfigErrors> {
    let file = Some(("fuzz.yaml".into(), yaml.to_owned()));
    let sources = ConfigSources { file, ..ConfigSources::default() };
    resolve(sources, &ParsedFileCache::default())
}
