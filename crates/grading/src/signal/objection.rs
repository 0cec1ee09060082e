//! Detects objections to what the agent has just done, by what the person does or says about the
//! work: takes it back, asks for the same again, corrects it, reports that it is wrong. Tone does not
//! count: people swear in good spirits and correct politely.
//!
//! Interruptions, and edits of what the agent has written, come from the session and are counted
//! where outcomes are tracked. The first message of a session cannot object to anything, but only the
//! caller can tell that it is the first.

use super::correction::{corrects, takes_back};
use super::output::is_failed_output;
use super::request::{AgentTurn, Objection, RequestWords, starts_routinely};
use super::vocabulary::leaves_it;
use super::{
    MAX_EXAMINED_BYTES, fault, good_news, languages, message_ends, message_text, sentences,
    without_quotes,
};

/// Returns the objection in a message, if any, and the request to pass in with the next message.
/// `previous` is the preceding message by the same user, `turn` what the agent did since.
///
/// What the person does comes first, then what the words refer to: the request, the work, a fault.
pub fn classify_objection(
    message: &str,
    previous: Option<&RequestWords>,
    turn: AgentTurn,
) -> (Option<Objection>, RequestWords) {
    let texts = message_ends(message);
    let start = without_attachments(&texts[0]);
    let bare = without_quotes(start);
    let beginning = message_text::corrected(&bare);
    let request = RequestWords::from_message(message);
    let objection = if takes_back(start) || takes_back(&beginning) {
        Some(Objection::Reverts)
    } else if previous.is_some_and(|it| it.is_repeated_by(&request, &bare, turn.has_worked)) {
        Some(Objection::AsksAgain)
    } else if corrects(&beginning, turn) || redirects(message, &beginning, turn) {
        Some(Objection::Corrects)
    } else if let Some(objection) = languages::objection(&bare, turn) {
        Some(objection)
    } else if fault::reports(&beginning, previous, turn)
        || texts.iter().any(|text| fault::is_called_wrong(text))
        || is_failed_output(message, &beginning, turn.has_worked)
    {
        Some(Objection::Complains)
    } else {
        None
    };
    // After a command that takes work back, the request that led to it is still the previous one.
    let is_command = start.starts_with('/') && objection == Some(Objection::Reverts);
    (objection, previous.filter(|_| is_command).cloned().unwrap_or(request))
}

/// Returns the command of the agent's program, or of its shell, by which the person takes work back,
/// if the text is one. Programs write these in the person's place.
pub fn command_that_takes_back(text: &str) -> Option<&str> {
    let text = &text[..text.floor_char_boundary(MAX_EXAMINED_BYTES)];
    let named = text.strip_prefix("<command-name>").unwrap_or(text);
    // The shell's commands keep their tag for the pattern, which asks for it.
    let shell = text.strip_prefix("<bash-input>");
    let is_command = named.starts_with('/') || shell.is_some();
    let is_revert = is_command && takes_back(&named.to_lowercase());
    let command = shell.unwrap_or(named);
    is_revert.then(|| command.split_once('<').map_or(command, |(command, _)| command).trim())
}

/// Returns true if the person has refused a call and then says what to do, in whatever words.
fn redirects(message: &str, beginning: &str, turn: AgentTurn) -> bool {
    turn.was_refused
        && !starts_routinely(beginning)
        && !leaves_it(beginning)
        && !message.trim_end().ends_with(['?', '？'])
        && !sentences(beginning).any(good_news::praises)
}

/// Returns the text after the notes that stand for attached pictures and pasted texts.
fn without_attachments(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some((_, after)) = rest
        .strip_prefix('[')
        .filter(|rest| rest.starts_with("image") || rest.starts_with("pasted text"))
        .and_then(|rest| rest.split_once(']'))
    {
        rest = after.trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify(message: &str, previous: Option<&str>) -> Option<Objection> {
        classify_after(message, previous, AgentTurn::default())
    }

    fn classify_after(message: &str, previous: Option<&str>, turn: AgentTurn) -> Option<Objection> {
        let previous = previous.map(RequestWords::from_message);
        classify_objection(message, previous.as_ref(), turn).0
    }

    #[test]
    fn commands_that_take_work_back() {
        for (text, expected) in [
            ("<bash-input>git checkout -- a.css</bash-input>", Some("git checkout -- a.css")),
            ("<bash-input> git reset --hard HEAD~1</bash-input>", Some("git reset --hard HEAD~1")),
            ("<command-name>/rewind</command-name>\n<command-args>", Some("/rewind")),
            ("/undo", Some("/undo")),
            ("/git reset --hard HEAD^", Some("/git reset --hard HEAD^")),
            ("/run pytest", None),
            ("<bash-input>git checkout main</bash-input>", None),
            ("<command-name>/clear</command-name>", None),
            ("revert that", None),
        ] {
            assert_eq!(command_that_takes_back(text), expected, "{text}");
        }
    }

    #[test]
    fn some_objections_need_work_before_them() {
        let request = "add a dark mode toggle to the header and to the settings";
        for (message, is_objection) in [
            ("the toggle is missing on mobile", true),
            ("looks exactly the same to me", true),
            ("none of the changes are showing", true),
            ("now the sidebar is empty", true),
            ("where did the search box go?", true),
            ("nice, but it only works on chrome", true),
            ("you mocked the header", true),
            ("add a dark mode toggle to the header", true),
            ("use the icon of the theme instead", true),
            ("no, in the header", true),
            ("$ npm ci\\nnpm error code 1\\nnpm error missing lock file\\nexit code: 1", true),
            ("❯ npm run dev\nsh: vite: command not found", true),
            ("slower than before", true),
            ("why is there a new dependency", true),
            ("the footer should get the same treatment", false),
            ("the old server is still running, leave it", false),
            ("is the cache empty after a restart?", false),
            ("what is missing for other themes?", false),
            ("the readme is outdated, update it", false),
            ("you made my day", false),
            ("in the error page, check the message too", false),
            ("now the settings page", false),
            ("no problem, later", false),
        ] {
            let message = message.replace("\\n", "\n");
            let found = |has_worked| {
                let turn = AgentTurn { has_worked, ..AgentTurn::default() };
                classify_after(&message, Some(request), turn).is_some()
            };
            assert_eq!((found(true), found(false)), (is_objection, false), "{message}");
        }
        let asked = AgentTurn { has_worked: true, has_asked: true, was_refused: false };
        assert_eq!(classify_after("no, in the header", Some(request), asked), None);
        let refused = AgentTurn { has_worked: true, has_asked: false, was_refused: true };
        let redirected = classify_after("look into the other folder first", None, refused);
        assert_eq!(redirected, Some(Objection::Corrects));
        for message in [
            "continue",
            "what does that command do?",
            "great work, i'll push it myself",
            "i will run it myself",
        ] {
            assert_eq!(classify_after(message, None, refused), None, "{message}");
        }
    }

    #[test]
    fn each_kind() {
        use Objection::{AsksAgain, Complains, Corrects, Reverts};
        for (message, previous, expected) in [
            ("it is broken again", None, Some(Complains)),
            ("No, I meant the other file", None, Some(Corrects)),
            ("no, i mean the second one", None, Some(Corrects)),
            ("you forgot the tests", None, Some(Corrects)),
            ("Why did you delete it?", None, Some(Corrects)),
            ("don't mock", None, Some(Corrects)),
            ("Don't mock the database, use the real one", None, Some(Corrects)),
            ("get not post", None, Some(Corrects)),
            ("use GET, not POST", None, Some(Corrects)),
            ("in the header, not the footer", None, Some(Corrects)),
            ("not the new button. this one", None, Some(Corrects)),
            ("please revert that", None, Some(Reverts)),
            ("undo", None, Some(Reverts)),
            ("/undo", None, Some(Reverts)),
            ("/rewind", None, Some(Reverts)),
            ("! git checkout -- src/a.py", None, Some(Reverts)),
            ("it still shows the old title, nothing changed", None, Some(Complains)),
            ("the list is not loading now", None, Some(Complains)),
            ("I loaded it but now I don't see the toolbar.", None, Some(Complains)),
            ("[Image #3] the logo text is still white", None, Some(Complains)),
            ("its not updating on the site", None, Some(Complains)),
            ("it lets me pick one but won't let me save", None, Some(Complains)),
            ("i have this error : Failed to compile.", None, Some(Complains)),
            ("Here is a bug that I am seeing in all of the pages.", None, Some(Complains)),
            ("I mean, you don't have to write all of them yet.", None, Some(Corrects)),
            ("this whole time I meant the other project", None, Some(Corrects)),
            ("why not using the server?", None, Some(Corrects)),
            ("check again", None, Some(Corrects)),
            ("just remove it. I want to edit it myself", None, Some(Reverts)),
            ("delete all changes", None, Some(Reverts)),
            ("run the tests", Some("run the tests!"), Some(AsksAgain)),
            ("again: run the tests please", Some("run the tests!"), Some(AsksAgain)),
        ] {
            assert_eq!(classify(message, previous), expected, "{message}");
        }
    }

    #[test]
    fn tone_series_and_answers_are_no_objection() {
        for (message, previous) in [
            ("jesus, everything works, you are a monster", None),
            ("holy shit that's fast", None),
            ("wtf this is so good lol", None),
            ("damn, nice", None),
            ("what the hell, it just works!", None),
            ("ugh, mondays. ok next: the footer", None),
            (
                "please change module 2 so that it handles case 2",
                Some("please change module 1 so that it handles case 1"),
            ),
            ("now add a test for b.py", Some("now add a test for a.py")),
            ("continue", Some("continue")),
            ("add an undo button", None),
            ("no, thanks", None),
            ("No, that's all for now. Thanks for your help!", None),
            ("No, that's okay.", None),
            ("No, I don't have it", None),
            ("Thanks again! Will do.", None),
            ("No", None),
            ("yes, do it", None),
            ("now the other one", None),
            ("yes, run the tests", Some("run the tests!")),
            ("don't worry about the docs", None),
            ("I'm not sure", None),
            ("it is not urgent", None),
            ("I wanted to use the larger certificate for part of it", None),
            ("if it does not work now, tell me", None),
            ("why did you choose sqlite?", None),
            ("i don't see why not", None),
            ("the build is still running", None),
            ("can you check that i get an error without a token?", None),
            ("remove the old parser", None),
            ("why not use sqlite?", None),
        ] {
            assert_eq!(classify(message, previous), None, "{message}");
        }
    }
}
