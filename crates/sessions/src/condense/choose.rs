//! Chooses the items to show and the bytes for each. Each tier first gets a share of the room, the
//! rest goes to the tiers with items left, and a common level then limits the lengths.

use super::items::{ItemKind, ItemTier, TranscriptItem};
use super::line;
use crate::Session;

/// Returns the bytes of text, per unit of weight, that an item must get to be worth showing. The
/// minimum grows with the room.
fn min_length(room: usize) -> usize {
    (room / 150).clamp(20, 80)
}

/// Shares of the room in percent, most important first. Without them, a session with a thousand
/// errors would show nothing else.
const SHARES: [(ItemTier, usize); 7] = [
    (ItemTier::Outer, 38),
    (ItemTier::UserFeedback, 12),
    (ItemTier::Error, 16),
    (ItemTier::Key, 16),
    (ItemTier::Prompt, 8),
    (ItemTier::Answer, 6),
    (ItemTier::Other, 4),
];

/// Rounds in which unused room goes to other tiers.
const MAX_ROUNDS: usize = 6;

/// Returns the maximum bytes of each item's text; `None` if the item is not shown. `gap` is the
/// length of a line about missing events.
pub(super) fn choose_lengths(
    session: &Session,
    items: &[TranscriptItem],
    room: usize,
    gap: usize,
) -> Vec<Option<usize>> {
    // Label, space, line end, and a possible gap line before it.
    let fixed = |item: &TranscriptItem| line::label(session, item).len() + 2 + gap;
    let mut queues = SHARES.map(|(tier, share)| {
        let members = (0..items.len()).filter(|&at| items[at].tier == tier).collect();
        let order =
            if tier == ItemTier::Outer { by_importance(items, members) } else { spread(&members) };
        (order.into_iter().peekable(), share)
    });
    let mut chosen = Vec::new();
    let (mut left, floor) = (room, min_length(room));
    for round in 0..=MAX_ROUNDS {
        let available = left;
        for (queue, share) in &mut queues {
            // The last round is first come, first served.
            // Shares are of what was left when the round began, so that the order of the tiers
            // gives no advantage within a round.
            let mut mine =
                if round == MAX_ROUNDS { left } else { (available / 100 * *share).min(left) };
            while let Some(&at) = queue.peek() {
                let item = &items[at];
                // Reserve only the minimum length; the rest of the room is distributed at the end.
                let cost = fixed(item) + line::clipped_length(session, item, floor * item.weight);
                // An item that does not fit blocks its queue, so that less important ones cannot
                // overtake it.
                if cost > mine {
                    break;
                }
                queue.next();
                mine -= cost;
                left -= cost;
                chosen.push(at);
            }
        }
    }
    let lengths: Vec<(usize, usize, usize)> = chosen
        .iter()
        .map(|&at| (at, items[at].weight, line::item_text(session, &items[at]).len()))
        .collect();
    let labels: usize = chosen.iter().map(|&at| fixed(&items[at])).sum();
    // Texts shorter than the level need less, and what they leave goes to the longer ones.
    let level = fill_level(&lengths, room.saturating_sub(labels));
    let mut caps = vec![None; items.len()];
    for (at, weight, length) in lengths {
        caps[at] = Some(length.min(weight.saturating_mul(level)));
    }
    caps
}

/// Orders items from the outside to the middle: the first prompt, the outcome, the last prompt, and
/// so on.
fn by_importance(items: &[TranscriptItem], members: Vec<usize>) -> Vec<usize> {
    let (mut prompts, mut outcome): (Vec<usize>, Vec<usize>) =
        members.into_iter().partition(|&at| items[at].kind == ItemKind::Prompt);
    // The answer comes before the results, and later results before earlier ones.
    outcome.sort_by_key(|&at| (items[at].kind != ItemKind::Answer, std::cmp::Reverse(at)));
    let mut order = Vec::new();
    let mut outcome = outcome.into_iter();
    let mut from_front = true;
    while !prompts.is_empty() {
        let next = if from_front { prompts.remove(0) } else { prompts.remove(prompts.len() - 1) };
        from_front = !from_front;
        order.push(next);
        order.extend(outcome.next());
    }
    order.extend(outcome);
    order
}

/// Orders items by repeated bisection: both ends, the middle, the middles between those. Every
/// prefix of the order is spaced about evenly and contains the shorter prefixes.
fn spread(members: &[usize]) -> Vec<usize> {
    let Some(last) = members.len().checked_sub(1) else { return Vec::new() };
    let mut order = vec![members[0]];
    if last > 0 {
        order.push(members[last]);
    }
    let mut gaps = std::collections::VecDeque::from([(0, last)]);
    while let Some((low, high)) = gaps.pop_front() {
        if high - low < 2 {
            continue;
        }
        let middle = low.midpoint(high);
        order.push(members[middle]);
        gaps.extend([(low, middle), (middle, high)]);
    }
    order
}

/// Returns the highest level `l` for which the sum of `min(length, weight · l)` fits into the room.
fn fill_level(lengths: &[(usize, usize, usize)], room: usize) -> usize {
    let mut by_need: Vec<_> = lengths.iter().filter(|(_, weight, _)| *weight > 0).collect();
    by_need.sort_by_key(|(at, weight, length)| (length.div_ceil(*weight), *at));
    let mut weights: usize = by_need.iter().map(|(_, weight, _)| weight).sum();
    let mut left = room;
    for (_, weight, length) in by_need {
        // The remaining item with the lowest demand. If it does not fit, none of the others does.
        let level = left / weights;
        if length.div_ceil(*weight) > level {
            return level;
        }
        left -= length;
        weights -= weight;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_spread_is_even_and_whole() {
        let members: Vec<usize> = (100..109).collect();
        assert_eq!(spread(&members), [100, 108, 104, 102, 106, 101, 103, 105, 107]);
        assert_eq!(spread(&[]), Vec::<usize>::new());
        assert_eq!(spread(&[7]), [7]);
    }

    proptest! {
        #[test]
        fn a_level_uses_the_room_and_no_more(
            parts in prop::collection::vec((1..7_usize, 0..5000_usize), 1..60),
            room in 0..100_000_usize,
        ) {
            let lengths: Vec<_> =
                parts.iter().enumerate().map(|(at, &(weight, length))| (at, weight, length)).collect();
            let used = |level: usize| -> usize {
                parts.iter().map(|&(weight, length)| length.min(weight.saturating_mul(level))).sum()
            };
            let level = fill_level(&lengths, room);
            prop_assert!(used(level) <= room);
            // What is left is less than one byte for each unit of weight.
            let weights: usize = parts.iter().map(|(weight, _)| weight).sum();
            prop_assert!(level == usize::MAX || used(level) + weights > room);
        }

        #[test]
        fn a_spread_holds_everyone_once(count in 0..300_usize) {
            let members: Vec<usize> = (0..count).collect();
            let mut order = spread(&members);
            order.sort_unstable();
            prop_assert_eq!(order, members);
        }
    }
}
