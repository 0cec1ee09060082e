//! The environment of a program under test. It is an allow-list, because secrets are often stored
//! in variables.

use std::collections::BTreeMap;
use std::path::Path;

use crate::sut::SutTask;
use crate::sut::sut_settings::ProgramSettings;

/// Variables that are passed on if they are set, in addition to `LC_*`.
const PASSED_ON: &[&str] = &[
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

/// Further variables on Windows, where most programs need them to start.
const PASSED_ON_WINDOWS: &[&str] =
    &["SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS"];

/// Further variables on Windows for the home and temporary folders.
const HOMES_WINDOWS: &[&str] = &["USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP"];

/// Returns a variable. Names are case-insensitive on Windows.
pub(super) fn variable<'a>(own: &'a BTreeMap<String, String>, name: &str) -> Option<&'a String> {
    own.get(name).or_else(|| {
        let same = |known: &str| cfg!(windows) && known.eq_ignore_ascii_case(name);
        own.iter().find_map(|(known, value)| same(known).then_some(value))
    })
}

/// Variable with the path of the skill's file, if there is a skill.
pub(super) const SKILL_FILE: &str = "SELFTEST_SKILL_FILE";

/// Returns the variables of the harness's own environment that are passed on.
pub(super) fn passed_on(
    own: &BTreeMap<String, String>,
    besides: &[String],
) -> BTreeMap<String, String> {
    let handed_on = own.iter().filter_map(|(name, value)| {
        let known = if cfg!(windows) { name.to_ascii_uppercase() } else { name.clone() };
        let is_handed_on = PASSED_ON.contains(&known.as_str())
            || cfg!(windows) && PASSED_ON_WINDOWS.contains(&known.as_str())
            || name.starts_with("LC_")
            || besides.contains(name);
        is_handed_on.then(|| (known, value.clone()))
    });
    handed_on.collect()
}

/// Returns the variables of a program: the allow-list, overridden by those of the harness and then
/// by the settings.
pub(super) fn environment(
    own: &BTreeMap<String, String>,
    settings: &ProgramSettings,
    scratch: &Path,
    task: &SutTask,
) -> BTreeMap<String, String> {
    let mut variables = passed_on(own, &settings.pass_environment);
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
        variables.extend(HOMES_WINDOWS.iter().map(home));
    }
    variables.extend(settings.environment.clone());
    variables
}
