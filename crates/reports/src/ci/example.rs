//! A run as tab-separated lines of case and status.

use super::CiRunView;
use selftest_text::escape::terminal;

/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 200;

/// Renders the report. Names come from the project or a model, so they are escaped.
pub(super) fn render(run: &CiRunView<'_>) -> String {
    let cases = run.cases();
    let lines = cases.iter().map(|case| {
        format!("{}\t{}\n", terminal(case.name(), MAX_NAME), <&str>::from(case.status))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use crate::ci::{CaseSources, RenderContext, ReportFileKind, ReportRequest, render};
    use crate::fixture;

    #[test]
    fn a_new_format_is_requested_and_rendered() {
        let request: ReportRequest = "example=out.tsv".parse().unwrap();
        assert_eq!(request, ReportRequest::File(ReportFileKind::Example, "out.tsv".into()));
        let (document, sources) = (fixture::document(), CaseSources::default());
        let context = RenderContext { sources: &sources, json_link: "run.json" };
        let text = render(ReportFileKind::Example, &document, context).unwrap();
        assert_eq!(text.lines().count(), document.cases.len());
        assert!(text.lines().all(|line| line.split('\t').count() == 2), "{text}");
    }
}
