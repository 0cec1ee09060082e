//! The one integration binary: a module per feature.

mod sut;
