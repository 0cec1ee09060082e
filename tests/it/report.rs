//! A run's JSON report as tests read it: the one place that knows its field names.

use std::fmt;

use serde_json::Value;

/// A parsed report.
pub(crate) struct Report(pub(crate) Value);

impl Report {
    #[track_caller]
    pub(crate) fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}")))
    }

    pub(crate) fn run_id(&self) -> String {
        self.0["run_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn summary(&self) -> &Value {
        &self.0["summary"]
    }

    /// Total, passed, failed, unscored.
    pub(crate) fn counts(&self) -> [u64; 4] {
        ["total", "passed", "failed", "unscored"].map(|field| {
            self.summary()[field].as_u64().unwrap_or_else(|| panic!("no {field}: {self}"))
        })
    }

    pub(crate) fn cases(&self) -> Vec<Case<'_>> {
        self.0["cases"].as_array().unwrap().iter().map(Case).collect()
    }

    /// The only case.
    #[track_caller]
    pub(crate) fn case(&self) -> Case<'_> {
        let mut cases = self.cases();
        assert_eq!(cases.len(), 1, "not exactly one case: {self}");
        cases.remove(0)
    }

    /// The case of a scenario.
    #[track_caller]
    pub(crate) fn case_of(&self, id: &str) -> Case<'_> {
        let found = self.cases().into_iter().find(|case| case.id() == id);
        found.unwrap_or_else(|| panic!("no case {id}: {self}"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

/// One case of a report.
pub(crate) struct Case<'a>(pub(crate) &'a Value);

impl<'a> Case<'a> {
    pub(crate) fn id(&self) -> &'a str {
        self.0["id"].as_str().unwrap()
    }

    /// `Some(true)`, `Some(false)`, or `None` for null; a missing field is a fault.
    #[track_caller]
    pub(crate) fn pass(&self) -> Option<bool> {
        self.0.get("pass").unwrap_or_else(|| panic!("no `pass`: {self}")).as_bool()
    }

    pub(crate) fn status(&self) -> &'a str {
        self.0["status"].as_str().unwrap_or_else(|| panic!("no `status`: {self}"))
    }

    /// Why it did not pass, in one line.
    pub(crate) fn reason(&self) -> &'a str {
        self.0["reason"].as_str().unwrap_or_else(|| panic!("no `reason`: {self}"))
    }

    pub(crate) fn unscored_reason(&self) -> Option<&'a str> {
        self.0["unscored_reason"].as_str()
    }

    pub(crate) fn prompt(&self) -> &'a str {
        self.0["prompt"].as_str().unwrap_or_else(|| panic!("no `prompt`: {self}"))
    }

    pub(crate) fn overall(&self) -> Option<f64> {
        self.0["scores"]["overall_score"].as_f64()
    }

    pub(crate) fn steps(&self) -> &'a [Value] {
        self.0["steps"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The judge's calls of the first step.
    pub(crate) fn judge_calls(&self) -> &'a [Value] {
        let calls = self.steps().first().and_then(|step| step["judgement"]["calls"].as_array());
        calls.map_or(&[], Vec::as_slice)
    }

    pub(crate) fn raw_replies(&self) -> Vec<&'a str> {
        self.judge_calls().iter().filter_map(|call| call["raw_reply"].as_str()).collect()
    }

    /// Why each rejected prompt of the generator was rejected.
    pub(crate) fn rejections(&self) -> Vec<&'a str> {
        let attempts = self.0["generation"]["attempts"].as_array();
        let attempts = attempts.map_or(&[][..], Vec::as_slice);
        attempts.iter().filter_map(|attempt| attempt["rejected"].as_str()).collect()
    }

    /// Remarks about the program under test.
    pub(crate) fn evidence_notes(&self) -> Vec<&'a str> {
        let notes = self.0["evidence"]["notes"].as_array();
        notes.map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str).collect()
    }

    /// Remarks, such as a reply flow that was not played.
    pub(crate) fn notes(&self) -> Vec<&'a str> {
        let notes = self.0["notes"].as_array().map_or(&[][..], Vec::as_slice);
        notes.iter().filter_map(Value::as_str).collect()
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}
