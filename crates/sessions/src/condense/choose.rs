//! Which items are shown, and with how many bytes each: first a share of the room for each tier,
//! then what is left over to whoever still waits, then a common water level for the lengths.

use super::items::{Item, Kind, Tier};
use super::line;
use crate::Session;

/// Bytes of text for each unit of weight below which showing an item is not worth it: the more
/// room there is, the more an item must say.
fn floor(room: usize) -> usize {
    (room / 150).clamp(20, 80)
}

/// Shares of the room in percent, most important first. Without shares a session with a thousand
/// errors would show nothing else.
const SHARES: [(Tier, usize); 7] = [
    (Tier::Ends, 38),
    (Tier::UserFeedback, 12),
    (Tier::Error, 16),
    (Tier::Key, 16),
    (Tier::Prompt, 8),
    (Tier::Answer, 6),
    (Tier::Other, 4),
];

/// Rounds in which room that a tier does not need goes to the others.
const MAX_ROUNDS: usize = 6;

/// Most bytes of the text of each item; `None` where it is not shown. `gap` is what a line about
/// missing events takes.
pub(super) fn choose(
    session: &Session,
    items: &[Item],
    room: usize,
    gap: usize,
) -> Vec<Option<usize>> {
    // Label, a space, line end, and a gap before it.
    let fixed = |item: &Item| line::label(session, item).len() + 2 + gap;
    let mut queues = SHARES.map(|(tier, share)| {
        let members = (0..items.len()).filter(|&at| items[at].tier == tier).collect();
        let order =
            if tier == Tier::Ends { by_importance(items, members) } else { spread(&members) };
        (order.into_iter().peekable(), share)
    });
    let mut chosen = Vec::new();
    let (mut left, floor) = (room, floor(room));
    for round in 0..=MAX_ROUNDS {
        let available = left;
        for (queue, share) in &mut queues {
            // The last round is first come, first served.
            let mut mine =
                if round == MAX_ROUNDS { left } else { (available / 100 * *share).min(left) };
            while let Some(&at) = queue.peek() {
                let item = &items[at];
                let cost = fixed(item) + line::length(session, item, floor * item.weight);
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
        .map(|&at| (at, items[at].weight, line::said(session, &items[at]).len()))
        .collect();
    let labels: usize = chosen.iter().map(|&at| fixed(&items[at])).sum();
    let level = level(&lengths, room.saturating_sub(labels));
    let mut caps = vec![None; items.len()];
    for (at, weight, length) in lengths {
        caps[at] = Some(length.min(weight.saturating_mul(level)));
    }
    caps
}

/// From the outside to the middle: the first prompt, how it ended, the last prompt, and so on.
fn by_importance(items: &[Item], members: Vec<usize>) -> Vec<usize> {
    let (mut prompts, mut outcome): (Vec<usize>, Vec<usize>) =
        members.into_iter().partition(|&at| items[at].kind == Kind::Prompt);
    // The answer before results, the last before those before it.
    outcome.sort_by_key(|&at| (items[at].kind != Kind::Answer, std::cmp::Reverse(at)));
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

/// Both ends, then the middle, then the middles between those: each beginning of the order is
/// about evenly spaced, and a longer beginning holds the shorter ones.
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

/// The highest level `l` for which the sum of `min(length, weight · l)` stays within the room.
fn level(lengths: &[(usize, usize, usize)], room: usize) -> usize {
    let mut by_need: Vec<_> = lengths.iter().filter(|(_, weight, _)| *weight > 0).collect();
    by_need.sort_by_key(|(at, weight, length)| (length.div_ceil(*weight), *at));
    let mut weights: usize = by_need.iter().map(|(_, weight, _)| weight).sum();
    let mut left = room;
    for (_, weight, length) in by_need {
        // The least demanding of those that are left: does it get all it wants?
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
            let level = level(&lengths, room);
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
