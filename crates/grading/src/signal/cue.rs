//! Cue words that can indicate a remark. A cue may be anywhere in the remark; the words around it
//! decide.

/// The remark that a word may belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
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

/// Returns the cue for a word.
pub(super) fn cue(word: &str) -> Option<Cue> {
    Some(match word {
        "thank" | "thanks" | "thx" | "ty" | "thankyou" | "thanx" | "thnx" | "tysm" | "tyvm" => {
            Cue::Thanks
        }
        "perfect" | "awesome" | "nice" | "great" | "excellent" | "amazing" => Cue::Praise,
        "job" | "work" => Cue::Job,
        "appreciate" | "appreciated" => Cue::Appreciate,
        "love" => Cue::Love,
        "needed" | "wanted" => Cue::Wanted,
        "asked" | "meant" | "said" | "requested" => Cue::Asked,
        "wrong" => Cue::Wrong,
        "still" => Cue::Still,
        "no" | "nope" | "nah" => Cue::No,
        "misunderstood" | "misunderstand" | "misunderstanding" => Cue::Misunderstood,
        "again" => Cue::Again,
        "come" | "c'mon" | "cmon" => Cue::Come,
        "hell" | "heck" | "fuck" => Cue::Hell,
        "ugh" | "ughh" | "ughhh" | "uggh" | "ugggh" | "argh" | "arghh" | "wtf" | "ffs" | "fgs" => {
            Cue::Outcry
        }
        "seriously" => Cue::Seriously,
        "annoying" | "frustrating" | "ridiculous" => Cue::Annoying,
        "annoyed" | "frustrated" | "unhappy" | "upset" | "disappointed" => Cue::Annoyed,
        _ => return None,
    })
}
