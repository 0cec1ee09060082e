//! Cue words that can indicate a remark. A cue may be anywhere in the remark; the words around it
//! decide.

/// The remark that a word may belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CueWord {
    /// *thanks*
    Thanks,
    /// *perfect*
    Praise,
    /// *good job*
    Job,
    /// *I appreciate it*
    Appreciate,
    /// *love it*
    Love,
    /// *exactly what I needed*, and *not what I wanted*
    Wanted,
    /// *not what I asked*
    Asked,
    /// *that's wrong*
    Wrong,
    /// *still wrong*
    Still,
    /// *no, that's not*
    No,
    /// *you misunderstood*
    Misunderstood,
    /// *try again*
    Again,
    /// *come on*
    Come,
    /// *what the hell*
    Hell,
    /// *ugh*
    Outcry,
    /// *seriously?*
    Seriously,
    /// *this is annoying*
    Annoying,
    /// *I'm frustrated*
    Annoyed,
}

impl CueWord {
    /// Returns true if the remark says something about the work. The others only have a tone.
    pub(super) fn is_about_work(self) -> bool {
        matches!(
            self,
            CueWord::Wrong
                | CueWord::Still
                | CueWord::No
                | CueWord::Asked
                | CueWord::Wanted
                | CueWord::Misunderstood
        )
    }
}

/// Returns the cue for a word.
pub(super) fn cue(word: &str) -> Option<CueWord> {
    Some(match word {
        "thank" | "thanks" | "thx" | "ty" | "thankyou" | "thanx" | "thnx" | "tysm" | "tyvm" => {
            CueWord::Thanks
        }
        "perfect" | "awesome" | "nice" | "great" | "excellent" | "amazing" => CueWord::Praise,
        "job" | "work" => CueWord::Job,
        "appreciate" | "appreciated" => CueWord::Appreciate,
        "love" => CueWord::Love,
        "needed" | "wanted" => CueWord::Wanted,
        "asked" | "meant" | "said" | "requested" => CueWord::Asked,
        "wrong" => CueWord::Wrong,
        "still" => CueWord::Still,
        "no" | "nope" | "nah" => CueWord::No,
        "misunderstood" | "misunderstand" | "misunderstanding" => CueWord::Misunderstood,
        "again" => CueWord::Again,
        "come" | "c'mon" | "cmon" => CueWord::Come,
        "hell" | "heck" | "fuck" => CueWord::Hell,
        "ugh" | "ughh" | "ughhh" | "uggh" | "ugggh" | "argh" | "arghh" | "wtf" | "ffs" | "fgs" => {
            CueWord::Outcry
        }
        "seriously" => CueWord::Seriously,
        "annoying" | "frustrating" | "ridiculous" => CueWord::Annoying,
        "annoyed" | "frustrated" | "unhappy" | "upset" | "disappointed" => CueWord::Annoyed,
        _ => return None,
    })
}
