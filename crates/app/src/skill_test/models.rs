//! Tells the system under test which model to use, where several are compared. Pure.

use anyhow::anyhow;
use selftest_config::ResolvedConfig;
use selftest_harness::sut::skill::model_flag;
use selftest_harness::sut::sut_settings::ProgramSettings;
use selftest_text::escape::terminal;

use crate::error::AppError;

/// What stands for the model in a command line.
const PLACEHOLDER: &str = "{model}";

/// Returns the configuration with this model of the system under test.
pub(super) fn with_model(
    resolved: &ResolvedConfig,
    model: &str,
) -> Result<ResolvedConfig, AppError> {
    let mut named = resolved.clone();
    let sut = &mut named.config.sut;
    let section = sut.program_section();
    if let Some(chat) = &mut sut.chat {
        model.clone_into(&mut chat.model);
        return Ok(named);
    }
    let program = sut.command.as_mut().map(|command| &mut command.program).or(sut.acp.as_mut());
    let Some(program) = program else {
        return Err(AppError::usage(anyhow!("--models needs an agent whose model can be set"))
            .hint(Some("test a program (`sut.command`, `sut.acp`) or `sut.chat`")));
    };
    if tell(program, model) {
        return Ok(named);
    }
    let shown = terminal(&program.run.join(" "), 100);
    Err(AppError::usage(anyhow!("--models: no way is known to set the model of `{shown}`")).hint(
        Some(format!("write {{model}} in {section}.run or in a value of {section}.environment")),
    ))
}

/// Tells a program the model: where it says so itself, else by the flag of a known agent. Returns
/// false if neither is there.
fn tell(program: &mut ProgramSettings, model: &str) -> bool {
    let mut is_told = false;
    for text in program.run.iter_mut().chain(program.environment.values_mut()) {
        if text.contains(PLACEHOLDER) {
            *text = text.replace(PLACEHOLDER, model);
            is_told = true;
        }
    }
    if let (false, Some(flag)) = (is_told, model_flag(&program.run)) {
        program.run.extend([flag.to_owned(), model.to_owned()]);
        is_told = true;
    }
    is_told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(run: &[&str]) -> (bool, String) {
        let run = run.iter().map(|&word| word.to_owned()).collect();
        let mut program = ProgramSettings { run, ..ProgramSettings::default() };
        let is_told = tell(&mut program, "m-1");
        (is_told, program.run.join(" "))
    }

    #[test]
    fn agents_are_told_their_model() {
        assert_eq!(told(&["claude", "-p"]), (true, "claude -p --model m-1".to_owned()));
        let named = told(&["python3", "agent.py", "--brain={model}"]);
        assert_eq!(named, (true, "python3 agent.py --brain=m-1".to_owned()));
        assert!(!told(&["python3", "agent.py"]).0);
    }
}
