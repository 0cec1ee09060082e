//! Paths as links in a terminal (OSC 8). Pure.

use std::path::Path;

use selftest_text::escape;

/// Formats a path, as a link to the file if `folder` is given, from which relative paths start.
pub(super) fn link_to_file(path: &Path, folder: Option<&Path>) -> String {
    let shown = escape::terminal(&path.display().to_string(), 4_096);
    let Some(folder) = folder else { return shown };
    // Percent-encoded except for letters, digits and `/._-`, so that nothing in it can end the
    // link.
    let target = escape::link_target(&folder.join(path).to_string_lossy());
    format!("\u{1b}]8;;file://{}\u{1b}\\{shown}\u{1b}]8;;\u{1b}\\", target.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_holds_the_whole_path_and_ends() {
        let path = Path::new("docs/a \u{1b}\\b.md");
        assert_eq!(link_to_file(Path::new("a/b.md"), None), "a/b.md");
        let link = link_to_file(path, Some(Path::new("/home/é")));
        assert_eq!(
            link,
            "\u{1b}]8;;file:///home/%C3%A9/docs/a%20%1B%5Cb.md\u{1b}\\docs/a \\b.md\u{1b}]8;;\u{1b}\\"
        );
    }
}
