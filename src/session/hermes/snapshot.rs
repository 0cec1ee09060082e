//! To be written.

use crate::session::ReadError;
use crate::session::feed::Feed;
use crate::session::source::Source;

pub(in crate::session) fn read(_source: &Source, _feed: &mut Feed<'_>) -> Result<(), ReadError> {
    Err(ReadError::Unrecognised("to be written".to_owned()))
}
