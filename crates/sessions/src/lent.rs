//! Adapts serde traits between lifetimes, so that a value can be parsed from bytes that do not live
//! as long as the value may borrow. Strings are passed on as copies.

use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// Adapter for a serde value with data lifetime `'b`, usable where another lifetime is expected,
/// and the reverse.
pub(super) struct BorrowAdapter<'b, T>(T, PhantomData<&'b ()>);

impl<T> BorrowAdapter<'_, T> {
    pub(super) fn new(inner: T) -> Self {
        Self(inner, PhantomData)
    }
}

impl<'de, 'b, D: Deserializer<'b>> Deserializer<'de> for BorrowAdapter<'b, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(BorrowAdapter::<'de, V>::new(visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(BorrowAdapter::<'de, V>::new(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, BorrowAdapter::<'de, V>::new(visitor))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_ignored_any(BorrowAdapter::<'de, V>::new(visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier
    }
}

impl<'de, 'b, V: Visitor<'de>> Visitor<'b> for BorrowAdapter<'de, V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.expecting(formatter)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        self.0.visit_str(text)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<V::Value, E> {
        self.0.visit_i64(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<V::Value, E> {
        self.0.visit_u64(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<V::Value, E> {
        self.0.visit_f64(number)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<V::Value, E> {
        self.0.visit_bool(value)
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_some<D: Deserializer<'b>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(BorrowAdapter::<'b, D>::new(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'b>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(BorrowAdapter::<'b, D>::new(inner))
    }

    fn visit_seq<A: SeqAccess<'b>>(self, list: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(BorrowAdapter::<'b, A>::new(list))
    }

    fn visit_map<A: MapAccess<'b>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(BorrowAdapter::<'b, A>::new(map))
    }
}

impl<'de, 'b, A: SeqAccess<'b>> SeqAccess<'de> for BorrowAdapter<'b, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(BorrowAdapter::<'de, T>::new(seed))
    }
}

impl<'de, 'b, A: MapAccess<'b>> MapAccess<'de> for BorrowAdapter<'b, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(BorrowAdapter::<'de, K>::new(seed))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(BorrowAdapter::<'de, V>::new(seed))
    }
}

impl<'de, 'b, S: DeserializeSeed<'de>> DeserializeSeed<'b> for BorrowAdapter<'de, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'b>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(BorrowAdapter::<'b, D>::new(deserializer))
    }
}
