//! Where words may be in 64 bytes of a text: one bit for each byte, so that words are found without
//! looking at each byte by itself.

/// Bytes of a block.
const SIZE: usize = 64;

/// The runs of letters, digits and bytes outside of ASCII in a part of a text, as far as they are
/// ahead.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// Where it begins in the text.
    start: usize,
    /// Where the block after it begins: not in the middle of a run.
    next: usize,
    /// The first bytes of runs, the first byte of the block lowest.
    starts: u64,
    /// The first bytes behind them. None for a run that is longer than a block.
    ends: u64,
    /// Bytes outside of ASCII.
    wide: u64,
}

impl Block {
    /// Before the beginning of a text.
    pub(super) const BEFORE: Self = Self { start: 0, next: 0, starts: 0, ends: 0, wide: 0 };

    /// The block that begins there, which is not in the middle of a run.
    pub(super) fn at(bytes: &[u8], start: usize) -> Self {
        let rest = bytes.get(start..).unwrap_or_default();
        let (runs, wide) = if let Some(whole) = rest.first_chunk::<SIZE>() {
            look_at(whole)
        } else {
            let mut padded = [0; SIZE];
            padded[..rest.len()].copy_from_slice(rest);
            look_at(&padded)
        };
        let open = runs.leading_ones();
        if open as usize == SIZE {
            return Self { start, next: bytes.len(), starts: 1, ends: 0, wide };
        }
        // A run that may go on behind the block belongs to the next one.
        let whole = runs & (u64::MAX >> open);
        let (starts, ends) = (whole & !(whole << 1), !whole & (whole << 1));
        Self { start, next: start + SIZE - open as usize, starts, ends, wide }
    }

    /// The next run, which is behind then. Its end is its start where it is not certain that it is
    /// a word of ASCII.
    #[inline]
    pub(super) fn next_run(&mut self, bytes: &[u8]) -> Option<(usize, usize)> {
        while self.starts == 0 {
            if self.next >= bytes.len() {
                return None;
            }
            *self = Self::at(bytes, self.next);
        }
        let (first, behind) = (self.starts.trailing_zeros(), self.ends.trailing_zeros());
        self.starts &= self.starts - 1;
        let (start, end) = (self.start + first as usize, self.start + behind as usize);
        if self.ends == 0 || bytes.get(end) == Some(&b'\'') {
            return Some((start, start));
        }
        self.ends &= self.ends - 1;
        let is_wide = self.wide & ((1 << behind) - (1 << first)) != 0;
        Some((start, if is_wide { start } else { end }))
    }
}

/// The letters, digits and bytes outside of ASCII, and the latter alone.
#[inline]
fn look_at(bytes: &[u8; SIZE]) -> (u64, u64) {
    // Whole arrays, without a branch: the compiler makes vectors of them.
    let letters = gather(bytes.map(|byte| u8::from(byte.is_ascii_alphanumeric())));
    let wide = if bytes.is_ascii() { 0 } else { gather(bytes.map(|byte| byte >> 7)) };
    (letters | wide, wide)
}

/// The lowest bits of bytes side by side.
#[inline]
fn gather(bits: [u8; SIZE]) -> u64 {
    let (parts, _) = bits.as_chunks::<8>();
    parts.iter().rev().fold(0, |all, part| {
        let part = u64::from_le_bytes(*part);
        all << 8 | part.wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_of_a_run_or_not() {
        for byte in 0..=u8::MAX {
            for place in 0..SIZE {
                let mut bytes = [0; SIZE];
                bytes[place] = byte;
                let bit = |yes: bool| u64::from(yes) << place;
                let wide = !byte.is_ascii();
                let expected = (bit(wide || byte.is_ascii_alphanumeric()), bit(wide));
                assert_eq!(look_at(&bytes), expected, "{byte}");
            }
        }
    }
}
