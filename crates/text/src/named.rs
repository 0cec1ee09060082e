//! Enums whose variants have names that programs read: in JSON, in the database, in URLs.

/// Gives enums that derive strum's `EnumString`, `IntoStaticStr` and `VariantArray` the functions
/// `name` and `from_name`, and the list `ALL`, so that callers need neither strum nor a trait.
#[macro_export]
macro_rules! named {
    ($($of:ty),+ $(,)?) => {$(
        impl $of {
            /// Every one, in the order of the declaration.
            pub const ALL: &'static [Self] = <Self as ::strum::VariantArray>::VARIANTS;

            /// The name that programs read.
            pub fn name(self) -> &'static str {
                self.into()
            }

            /// The one that the name stands for.
            pub fn from_name(name: &str) -> Option<Self> {
                name.parse().ok()
            }
        }
    )+};
}
