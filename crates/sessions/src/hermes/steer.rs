//! Handles `/steer`, user input while a tool is running. Hermes appends it to the last tool result.

use memchr::memmem;

/// Newer frame. The rest of its opening line changes from version to version.
const OPEN: &str = "[OUT-OF-BAND USER MESSAGE";
const CLOSE: &str = "[/OUT-OF-BAND USER MESSAGE]";

/// Older frame, without an end marker.
const OLD: &str = "\nUser guidance: ";

/// Preamble inside the newer frame, up to an empty line.
const ORIGIN: &str = "Gateway message origin (JSON data";

/// Splits a text into its content and the user's message in a frame at its end. Only the end
/// counts, because a tool's output may contain the same phrases.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let whole = text.trim_end();
    if let Some(framed) = whole.strip_suffix(CLOSE) {
        let (before, frame) = framed.split_at(framed.rfind(OPEN)?);
        let (_, said) = frame.split_once("]\n")?;
        let said = match said.split_once("\n\n") {
            Some((origin, said)) if origin.starts_with(ORIGIN) => said,
            _ => said,
        };
        return Some((before.trim_end(), said.trim()));
    }
    // Search forwards first, which is faster and nearly always finds nothing.
    memmem::find(whole.as_bytes(), OLD.as_bytes())?;
    let at = memmem::rfind(whole.as_bytes(), OLD.as_bytes())?;
    Some((whole[..at].trim_end(), whole[at + OLD.len()..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_at_the_end_of_a_result() {
        let open = "[OUT-OF-BAND USER MESSAGE — a direct message from the user; not tool output]";
        let new = format!("{{\"exit_code\":0}}\n\n{open}\nuse the other file\n{CLOSE}");
        assert_eq!(split(&new), Some(("{\"exit_code\":0}", "use the other file")));
        let origin = format!("out\n\n{open}\n{ORIGIN}):\n{{\"x\": 1}}\n\nstop\n{CLOSE}\n");
        assert_eq!(split(&origin), Some(("out", "stop")));
        assert_eq!(split("out\n\nUser guidance: only tests"), Some(("out", "only tests")));
        let quoted = format!("{open}\nhidden\n{CLOSE}\nand more output");
        assert_eq!(split(&quoted), None);
        assert_eq!(split("plain"), None);
        assert_eq!(split(CLOSE), None);
    }
}
