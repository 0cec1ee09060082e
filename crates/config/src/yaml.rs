//! The kinds of YAML files of this crate. The parser is that of `selftest_checks`.

pub(crate) use selftest_checks::yaml::*;

/// A configuration file.
pub(crate) const CONFIG: YamlFileKind = YamlFileKind {
    max_bytes: 1 << 20,
    hint: "`selftest init` writes a commented configuration",
    schema: YamlSchema::V1_2,
};
