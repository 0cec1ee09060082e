//! Requested reports and their syntax: `junit=out.xml`, `github`. Pure.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use selftest_text::one_line;
use strum::VariantArray as _;

/// A report written to a file chosen by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::VariantArray)]
pub enum ReportFileKind {
    /// JUnit XML.
    Junit,
    /// A self-contained HTML page.
    Html,
    /// The Markdown report.
    Markdown,
    /// The JSON report.
    Json,
    /// The Common Test Report Format, JSON.
    Ctrf,
    /// Findings about the isolation, as SARIF 2.1.0.
    Sarif,
}

/// Names of the kinds without a file.
const GITHUB: &str = "github";
const OTLP: &str = "otlp";

impl ReportFileKind {
    /// Returns the name on the command line and the key in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Junit => "junit",
            Self::Html => "html",
            Self::Markdown => "md",
            Self::Json => "json",
            Self::Ctrf => "ctrf",
            Self::Sarif => "sarif",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|kind| kind.name() == name)
    }
}

/// A requested report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportRequest {
    /// A file.
    File(ReportFileKind, PathBuf),
    /// Step summary and annotations in GitHub Actions.
    Github,
    /// An OpenTelemetry collector at this base address.
    Otlp(String),
}

impl ReportRequest {
    /// Returns the name of the kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::File(kind, _) => kind.name(),
            Self::Github => GITHUB,
            Self::Otlp(_) => OTLP,
        }
    }

    /// Returns the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(_, path) => Some(path),
            Self::Github | Self::Otlp(_) => None,
        }
    }

    /// Returns the first kind that is requested twice.
    pub fn repeated(requests: &[Self]) -> Option<&'static str> {
        let kinds: Vec<&str> = requests.iter().map(Self::kind).collect();
        let twice = |at: usize| kinds[..at].contains(&kinds[at]);
        (0..kinds.len()).find(|at| twice(*at)).map(|at| requests[at].kind())
    }
}

impl FromStr for ReportRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (name.trim(), Some(path)),
            None => (text.trim(), None),
        };
        if name == GITHUB {
            return match path {
                None => Ok(Self::Github),
                Some(_) => Err("`github` takes no path: GitHub Actions sets the file".to_owned()),
            };
        }
        if name == OTLP {
            let has_scheme = |at: &&str| at.starts_with("http://") || at.starts_with("https://");
            return match path.map(str::trim).filter(has_scheme) {
                Some(endpoint) => Ok(Self::Otlp(endpoint.to_owned())),
                None => Err("`otlp` needs an address: otlp=http://127.0.0.1:4318".to_owned()),
            };
        }
        let Some(kind) = ReportFileKind::from_name(name) else {
            let known: Vec<&str> =
                ReportFileKind::VARIANTS.iter().map(|kind| kind.name()).collect();
            let others = [GITHUB, OTLP];
            let near =
                known.iter().chain(&others).find(|known| strsim::levenshtein(known, name) <= 2);
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(format!(
                "unknown report `{}`, expected one of: {}, {GITHUB}, {OTLP}{near}",
                one_line(name, 40),
                known.join(", ")
            ));
        };
        match path {
            Some(path) if !path.trim().is_empty() => Ok(Self::File(kind, PathBuf::from(path))),
            _ => Err(format!("`{name}` needs a path: {name}=PATH")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let read = |text: &str| text.parse::<ReportRequest>();
        assert_eq!(
            read("md=a=b.md"),
            Ok(ReportRequest::File(ReportFileKind::Markdown, "a=b.md".into()))
        );
        assert_eq!(read("github"), Ok(ReportRequest::Github));
        let otlp = ReportRequest::Otlp("http://[::1]:4318".to_owned());
        assert_eq!(read("otlp=http://[::1]:4318"), Ok(otlp));
        for (text, words) in [
            ("github=x", "takes no path"),
            ("otlp=127.0.0.1:4318", "`otlp` needs an address: otlp=http://127.0.0.1:4318"),
            ("json", "`json` needs a path: json=PATH"),
            ("json= ", "needs a path"),
            ("jsn=x", "did you mean `json`?"),
            ("pdf=x", "unknown report `pdf`, expected one of: "),
            ("", "unknown report ``"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_kind_that_is_asked_for_twice_is_found() {
        let requests: Vec<ReportRequest> =
            ["md=a", "github", "json=b", "md=c"].iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(ReportRequest::repeated(&requests), Some("md"));
        assert_eq!(ReportRequest::repeated(&requests[..3]), None);
    }
}
