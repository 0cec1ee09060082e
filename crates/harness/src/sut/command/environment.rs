//! The environment of a program under test: an allow-list, since keys live in variables.

use std::collections::BTreeMap;
use std::path::Path;

use crate::sut::Task;
use crate::sut::sut_settings::ProgramSettings;

/// Variables that are handed on when they are set; `LC_*` too.
const HANDED_ON: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "NO_COLOR",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "VOLTA_HOME",
    "JAVA_HOME",
    "VIRTUAL_ENV",
];

/// The same on Windows, where little starts without them.
const HANDED_ON_THERE: &[&str] =
    &["SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS"];

/// Further variables for the home folder there, and for the one of temporary files.
const HOMES_THERE: &[&str] = &["USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP"];

/// A variable, whose name Windows writes as it likes.
pub(super) fn variable<'a>(own: &'a BTreeMap<String, String>, name: &str) -> Option<&'a String> {
    own.get(name).or_else(|| {
        let same = |known: &str| cfg!(windows) && known.eq_ignore_ascii_case(name);
        own.iter().find_map(|(known, value)| same(known).then_some(value))
    })
}

/// Holds the path of the skill's file, where there is a skill to be used.
pub(super) const SKILL_FILE: &str = "SELFTEST_SKILL_FILE";

/// The variables of the harness's own environment that are handed on.
pub(super) fn handed_on(
    own: &BTreeMap<String, String>,
    besides: &[String],
) -> BTreeMap<String, String> {
    let handed_on = own.iter().filter_map(|(name, value)| {
        let known = if cfg!(windows) { name.to_ascii_uppercase() } else { name.clone() };
        let is_handed_on = HANDED_ON.contains(&known.as_str())
            || cfg!(windows) && HANDED_ON_THERE.contains(&known.as_str())
            || name.starts_with("LC_")
            || besides.contains(name);
        is_handed_on.then(|| (known, value.clone()))
    });
    handed_on.collect()
}

/// The variables of a program: the allow-list, then what the harness says, then the settings.
pub(super) fn environment(
    own: &BTreeMap<String, String>,
    settings: &ProgramSettings,
    scratch: &Path,
    task: &Task,
) -> BTreeMap<String, String> {
    let mut variables = handed_on(own, &settings.pass_environment);
    for (name, value) in [
        ("HOME", scratch.to_string_lossy().as_ref()),
        ("TMPDIR", scratch.to_string_lossy().as_ref()),
        ("SELFTEST_SESSION_ID", task.session_id.as_str()),
        ("SELFTEST_TASK_GROUP_ID", task.task_group_id.as_str()),
        ("SELFTEST_TASK_TYPE", task.task_type.as_str()),
    ] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    if cfg!(windows) {
        let home = |name: &&str| ((*name).to_owned(), scratch.to_string_lossy().into_owned());
        variables.extend(HOMES_THERE.iter().map(home));
    }
    variables.extend(settings.environment.clone());
    variables
}
