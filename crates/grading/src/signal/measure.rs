//! Measures the rules on labelled messages, beside the dumbest baseline: single words.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::{
    AgentTurn, MessageSignals, Objection, RequestWords, classify_objection, classify_signals,
};
use crate::grade::Proportion;

/// What a label says of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum LabelledSignal {
    /// Objects to what the agent has done.
    Objection,
    /// Thanks or praises.
    Gratitude,
    /// Asks the same again.
    Repetition,
    /// Is clearly dissatisfied.
    Frustration,
}

selftest_text::named!(LabelledSignal);

/// A message with labels. Signals without a label are not measured on it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LabelledMessage {
    /// The message of a person.
    pub message: String,
    /// The preceding message of the same person, if any.
    #[serde(default)]
    pub previous: Option<String>,
    /// True if the agent called tools between the two; some objections count only then.
    #[serde(default = "yes")]
    pub worked: bool,
    /// True if the agent's last words were a question.
    #[serde(default)]
    pub asked: bool,
    /// True if the person had just refused a call of the agent.
    #[serde(default)]
    pub refused: bool,
    /// Objects to what the agent has done.
    #[serde(default)]
    pub objection: Option<bool>,
    /// Thanks or praises.
    #[serde(default)]
    pub gratitude: Option<bool>,
    /// Asks the same again.
    #[serde(default)]
    pub repetition: Option<bool>,
    /// Is clearly dissatisfied.
    #[serde(default)]
    pub frustration: Option<bool>,
}

fn yes() -> bool {
    true
}

impl LabelledMessage {
    fn label(&self, signal: LabelledSignal) -> Option<bool> {
        match signal {
            LabelledSignal::Objection => self.objection,
            LabelledSignal::Gratitude => self.gratitude,
            LabelledSignal::Repetition => self.repetition,
            LabelledSignal::Frustration => self.frustration,
        }
    }
}

/// Precision and recall of the rules and of the baseline for one signal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SignalMeasure {
    /// The signal.
    pub signal: LabelledSignal,
    /// Number of messages with a label.
    pub messages: u64,
    /// The rules.
    pub rules: Accuracy,
    /// Single words, such as *no* and *wrong*.
    pub words: Accuracy,
    /// Messages that the rules misread, in order.
    pub misread: Vec<MisreadMessage>,
}

/// The accuracy of a reading against labels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Accuracy {
    /// Share of the flagged messages that are labelled so.
    pub precision: Proportion,
    /// Share of the messages labelled so that are flagged.
    pub recall: Proportion,
}

/// A message that the rules misread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MisreadMessage {
    /// The message.
    pub message: String,
    /// Its label.
    pub label: bool,
}

/// Measures every signal that has a label.
pub fn measure_signals(messages: &[LabelledMessage]) -> Vec<SignalMeasure> {
    let mut tallies: BTreeMap<LabelledSignal, SignalTally> = BTreeMap::new();
    for message in messages {
        let previous = message.previous.as_deref();
        let request = previous.map(RequestWords::from_message);
        let turn = AgentTurn {
            has_worked: message.worked,
            has_asked: message.asked,
            was_refused: message.refused,
        };
        let objection = classify_objection(&message.message, request.as_ref(), turn).0;
        let signals = classify_signals(&message.message, previous, None);
        for signal in LabelledSignal::ALL {
            if let Some(label) = message.label(*signal) {
                let tally = tallies.entry(*signal).or_default();
                tally.add(message, label, reads(*signal, objection, &signals), *signal);
            }
        }
    }
    tallies.into_iter().map(|(signal, tally)| tally.finish(signal)).collect()
}

fn reads(signal: LabelledSignal, objection: Option<Objection>, signals: &MessageSignals) -> bool {
    match signal {
        LabelledSignal::Objection => objection.is_some(),
        LabelledSignal::Gratitude => signals.gratitude,
        LabelledSignal::Repetition => signals.repetition == Some(true),
        LabelledSignal::Frustration => signals.frustration,
    }
}

/// The dumbest reading: a single word anywhere, or the same text.
fn by_words(signal: LabelledSignal, message: &LabelledMessage) -> bool {
    let text = message.message.to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '\'').collect();
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    match signal {
        LabelledSignal::Objection => has(&["no", "not", "wrong"]),
        LabelledSignal::Gratitude => has(&["thanks", "thank", "great", "perfect"]),
        LabelledSignal::Repetition => message.previous.as_deref() == Some(&message.message),
        LabelledSignal::Frustration => has(&["wrong", "wtf", "seriously", "still"]),
    }
}

#[derive(Debug, Default)]
struct SignalTally {
    messages: u64,
    rules: HitTally,
    words: HitTally,
    misread: Vec<MisreadMessage>,
}

impl SignalTally {
    fn add(&mut self, message: &LabelledMessage, label: bool, read: bool, signal: LabelledSignal) {
        self.messages += 1;
        self.rules.add(read, label);
        self.words.add(by_words(signal, message), label);
        if read != label {
            self.misread.push(MisreadMessage { message: message.message.clone(), label });
        }
    }

    fn finish(self, signal: LabelledSignal) -> SignalMeasure {
        let Self { messages, rules, words, misread } = self;
        let (rules, words) = (rules.finish(), words.finish());
        SignalMeasure { signal, messages, rules, words, misread }
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct HitTally {
    hits: u64,
    flagged: u64,
    labelled: u64,
}

impl HitTally {
    fn add(&mut self, flagged: bool, label: bool) {
        self.hits += u64::from(flagged && label);
        self.flagged += u64::from(flagged);
        self.labelled += u64::from(label);
    }

    fn finish(self) -> Accuracy {
        let Self { hits, flagged, labelled } = self;
        Accuracy {
            precision: Proportion::new(hits, flagged),
            recall: Proportion::new(hits, labelled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(message: &str, objection: bool) -> LabelledMessage {
        LabelledMessage {
            message: message.to_owned(),
            previous: Some("add a button".to_owned()),
            worked: true,
            asked: false,
            refused: false,
            objection: Some(objection),
            gratitude: None,
            repetition: None,
            frustration: None,
        }
    }

    #[test]
    fn rules_and_words_are_counted() {
        let messages = [
            labelled("no, i mean the other one", true),
            labelled("it still doesn't work", true),
            labelled("meh", true),
            labelled("i'm not sure", false),
        ];
        let measures = measure_signals(&messages);
        let [one] = &measures[..] else { panic!("{measures:?}") };
        assert_eq!((one.signal, one.messages), (LabelledSignal::Objection, 4));
        let counts = |share: Proportion| (share.count, share.of);
        assert_eq!(counts(one.rules.precision), (2, 2));
        assert_eq!(counts(one.rules.recall), (2, 3));
        assert_eq!(counts(one.words.precision), (1, 2));
        let misread = MisreadMessage { message: "meh".to_owned(), label: true };
        assert_eq!(one.misread, [misread]);
        assert_eq!(measure_signals(&[]), []);
    }
}
