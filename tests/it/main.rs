//! The one integration binary: a module per feature.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod sut;
