//! To be written.

use super::ReadError;
use super::feed::Feed;
use super::source::Source;

pub(super) fn read(_source: &Source, _feed: &mut Feed<'_>) -> Result<(), ReadError> {
    Err(ReadError::Unrecognised("to be written".to_owned()))
}
