//! Enums whose variants have machine-readable names, used in JSON, the database and URLs.

/// Adds the functions `name` and `from_name` and the list `ALL` to enums that derive strum's
/// `EnumString`, `IntoStaticStr` and `VariantArray`, so that callers need neither strum nor a
/// trait.
#[macro_export]
macro_rules! named {
    ($($of:ty),+ $(,)?) => {$(
        impl $of {
            /// All variants in declaration order.
            pub const ALL: &'static [Self] = <Self as ::strum::VariantArray>::VARIANTS;

            /// Returns the machine-readable name.
            pub fn name(self) -> &'static str {
                self.into()
            }

            /// Returns the variant with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                name.parse().ok()
            }
        }
    )+};
}
