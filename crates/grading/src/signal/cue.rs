//! The words that a remark can be known by. Each stands in the middle or at an end of one; what
//! stands around it decides.

use selftest_text::words::WordMap;

/// What a word may be a part of.
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

/// All of them.
pub(super) static CUES: WordMap<Cue, 1024> = WordMap::new(&[
    ("thank", Cue::Thanks),
    ("thanks", Cue::Thanks),
    ("thx", Cue::Thanks),
    ("ty", Cue::Thanks),
    ("thankyou", Cue::Thanks),
    ("thanx", Cue::Thanks),
    ("thnx", Cue::Thanks),
    ("tysm", Cue::Thanks),
    ("tyvm", Cue::Thanks),
    ("perfect", Cue::Praise),
    ("awesome", Cue::Praise),
    ("nice", Cue::Praise),
    ("great", Cue::Praise),
    ("excellent", Cue::Praise),
    ("amazing", Cue::Praise),
    ("job", Cue::Job),
    ("work", Cue::Job),
    ("appreciate", Cue::Appreciate),
    ("appreciated", Cue::Appreciate),
    ("love", Cue::Love),
    ("needed", Cue::Wanted),
    ("wanted", Cue::Wanted),
    ("asked", Cue::Asked),
    ("meant", Cue::Asked),
    ("said", Cue::Asked),
    ("requested", Cue::Asked),
    ("wrong", Cue::Wrong),
    ("still", Cue::Still),
    ("no", Cue::No),
    ("nope", Cue::No),
    ("nah", Cue::No),
    ("misunderstood", Cue::Misunderstood),
    ("misunderstand", Cue::Misunderstood),
    ("misunderstanding", Cue::Misunderstood),
    ("again", Cue::Again),
    ("come", Cue::Come),
    ("c'mon", Cue::Come),
    ("cmon", Cue::Come),
    ("hell", Cue::Hell),
    ("heck", Cue::Hell),
    ("fuck", Cue::Hell),
    ("ugh", Cue::Outcry),
    ("ughh", Cue::Outcry),
    ("ughhh", Cue::Outcry),
    ("uggh", Cue::Outcry),
    ("ugggh", Cue::Outcry),
    ("argh", Cue::Outcry),
    ("arghh", Cue::Outcry),
    ("wtf", Cue::Outcry),
    ("ffs", Cue::Outcry),
    ("fgs", Cue::Outcry),
    ("seriously", Cue::Seriously),
    ("annoying", Cue::Annoying),
    ("frustrating", Cue::Annoying),
    ("ridiculous", Cue::Annoying),
    ("annoyed", Cue::Annoyed),
    ("frustrated", Cue::Annoyed),
    ("unhappy", Cue::Annoyed),
    ("upset", Cue::Annoyed),
    ("disappointed", Cue::Annoyed),
]);
