//! Assembles the answers of agents that print a line for each text, call and result.

use jiff::Timestamp;

use super::blocks::{ContentBlocks, MessageContext};
use super::event::{EventOrigin, ToolCall, ToolResult};
use super::feed::SessionFeed;
use super::text::Text;

/// The answer that is being assembled: what is said and called before the next result, and the
/// results.
#[derive(Default)]
pub(super) struct PrintedAnswer {
    blocks: ContentBlocks<'static>,
    time: Option<Timestamp>,
    /// Pieces of a text or a thought that is printed as it is generated.
    said: String,
    thought: String,
}

impl PrintedAnswer {
    /// Adds a text.
    pub(super) fn say(
        &mut self,
        text: &Text<'_>,
        time: Option<Timestamp>,
        feed: &mut SessionFeed<'_>,
    ) {
        self.start(time, feed);
        self.blocks.say(text.clone().into_owned());
    }

    /// Adds a thought.
    pub(super) fn think(
        &mut self,
        thought: &Text<'_>,
        time: Option<Timestamp>,
        feed: &mut SessionFeed<'_>,
    ) {
        self.start(time, feed);
        self.blocks.think(thought.clone().into_owned());
    }

    /// Adds a piece to the text before it.
    pub(super) fn say_piece(
        &mut self,
        piece: &str,
        time: Option<Timestamp>,
        feed: &mut SessionFeed<'_>,
    ) {
        if piece.is_empty() {
            return;
        }
        if self.blocks.has_results() {
            self.start(time, feed);
        }
        self.time = self.time.or(time);
        add_piece(&mut self.said, piece);
    }

    /// Adds a piece to the thought before it.
    pub(super) fn think_piece(
        &mut self,
        piece: &str,
        time: Option<Timestamp>,
        feed: &mut SessionFeed<'_>,
    ) {
        if piece.is_empty() {
            return;
        }
        if self.blocks.has_results() || !self.said.is_empty() {
            self.start(time, feed);
        }
        self.time = self.time.or(time);
        add_piece(&mut self.thought, piece);
    }

    /// Returns the text whose pieces were added last.
    pub(super) fn pieces(&self) -> &str {
        &self.said
    }

    /// Adds a call.
    pub(super) fn call(
        &mut self,
        call: ToolCall<'_>,
        time: Option<Timestamp>,
        feed: &mut SessionFeed<'_>,
    ) {
        self.start(time, feed);
        self.blocks.call(call.into_owned());
    }

    /// Adds the result of a call.
    pub(super) fn result(&mut self, result: ToolResult<'_>) {
        self.join_pieces();
        self.blocks.result(result.into_owned());
    }

    /// Sends the answer.
    pub(super) fn flush(&mut self, feed: &mut SessionFeed<'_>) {
        self.join_pieces();
        let (blocks, time) = (std::mem::take(&mut self.blocks), self.time.take());
        if !blocks.is_empty() {
            blocks.send_answer(&MessageContext::new(EventOrigin::Agent, time), feed);
        }
    }

    /// Begins the next answer if results have ended this one.
    fn start(&mut self, time: Option<Timestamp>, feed: &mut SessionFeed<'_>) {
        self.join_pieces();
        if self.blocks.has_results() {
            self.flush(feed);
        }
        self.time = self.time.or(time);
    }

    /// Ends the text and the thought whose pieces were added.
    pub(super) fn join_pieces(&mut self) {
        let (thought, said) = (std::mem::take(&mut self.thought), std::mem::take(&mut self.said));
        self.blocks.think(Text::from(thought));
        self.blocks.say(Text::from(said));
    }
}

/// Bytes of joined pieces above which the middle is left out, as in every long text.
const MAX_PIECES: usize = 256 * 1024;

fn add_piece(all: &mut String, piece: &str) {
    all.push_str(piece);
    if all.len() > MAX_PIECES {
        let bounded = Text::from(std::mem::take(all));
        bounded.as_str().clone_into(all);
    }
}
