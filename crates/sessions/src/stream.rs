//! Deserializes a JSON value of any size while it is read. Small values are parsed from memory,
//! which takes a fraction of the time of a byte-by-byte parser. Only large objects and lists are
//! split here. A value that is parsed from memory may borrow from it for less long than the
//! caller's type expects, so [`BorrowAdapter`] adapts serde's traits between lifetimes and passes
//! strings on as copies.
//!
//! Accepts and rejects the same input as `serde_json::Deserializer::from_reader`, with the same
//! messages.

use std::io::{self, Read};
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Error;

/// Maximum bytes of a value that is parsed at once.
const MAX_BUFFERED: usize = 1024 * 1024;

/// Bytes per read.
const CHUNK: usize = 256 * 1024;

/// Maximum nesting of objects and lists that are split here. Deeper ones are rejected, as
/// `serde_json` does.
const MAX_DEPTH: u8 = 127;

/// A stream with one JSON value.
pub(super) struct JsonStream<R> {
    input: R,
    buffer: Vec<u8>,
    /// Range of the buffer that is read but not parsed.
    rest: Range<usize>,
    whole: usize,
    depth: u8,
    /// Position of the parser: number of line breaks, and bytes after the last one.
    lines: usize,
    column: usize,
}

impl<R: Read> JsonStream<R> {
    pub(super) fn new(input: R) -> Self {
        Self::with_whole(input, MAX_BUFFERED)
    }

    fn with_whole(input: R, whole: usize) -> Self {
        let (buffer, rest) = (Vec::new(), 0..0);
        Self { input, buffer, rest, whole, depth: 0, lines: 0, column: 0 }
    }

    /// Returns the line of the syntax error that ended the last read.
    pub(super) fn line_of(&self, error: &Error) -> usize {
        self.lines + error.line()
    }

    fn unparsed(&self) -> &[u8] {
        &self.buffer[self.rest.clone()]
    }

    /// Reads more; returns `false` at the end of the stream.
    fn fill(&mut self) -> Result<bool, Error> {
        if self.rest.end + CHUNK > self.buffer.len() {
            // What is parsed already makes room before the buffer grows.
            self.buffer.copy_within(self.rest.clone(), 0);
            self.rest = 0..self.rest.len();
            if self.rest.end + CHUNK > self.buffer.len() {
                // Grows geometrically, so that a large value is not copied for every chunk.
                self.buffer.resize((self.rest.end + CHUNK).next_power_of_two(), 0);
            }
        }
        loop {
            match self.input.read(&mut self.buffer[self.rest.end..]) {
                Ok(count) => {
                    self.rest.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(error)),
            }
        }
    }

    /// Advances by this many bytes.
    fn consume(&mut self, length: usize) {
        let parsed = &self.buffer[self.rest.start..self.rest.start + length];
        match memchr::memrchr(b'\n', parsed) {
            Some(last) => {
                self.lines += memchr::memchr_iter(b'\n', parsed).count();
                self.column = length - last - 1;
            }
            None => self.column += length,
        }
        self.rest.start += length;
    }

    /// Returns the next byte that is not white space; `None` at the end of the stream.
    fn peek(&mut self) -> Result<Option<u8>, Error> {
        loop {
            let is_space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
            let spaces = self.unparsed().iter().take_while(|byte| is_space(byte)).count();
            self.consume(spaces);
            if let Some(&byte) = self.unparsed().first() {
                return Ok(Some(byte));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Does the same inside of `what`, where the end of the stream is an error.
    fn peek_in(&mut self, what: &str) -> Result<u8, Error> {
        self.peek()?.ok_or_else(|| {
            let (line, column) = (self.lines + 1, self.column);
            Error::custom(format!("EOF while parsing {what} at line {line} column {column}"))
        })
    }

    /// Consumes the comma before the next part of an object or list; returns `false` at its end.
    fn begin_part(&mut self, what: &str, is_first: bool, close: u8) -> Result<bool, Error> {
        // At the closing bracket nothing is consumed: `enter` does that, and checks which one it
        // is.
        let next = self.peek_in(what)?;
        if next == close {
            return Ok(false);
        }
        if is_first {
            return Ok(true);
        }
        if next != b',' {
            return Err(syntax_error());
        }
        self.consume(1);
        // A trailing comma, which `serde_json` rejects as well.
        if self.peek_in("a value")? == close { Err(syntax_error()) } else { Ok(true) }
    }

    /// Returns the length of the next value, which starts here; `None` if it exceeds `most`. A
    /// truncated value extends to the end of the stream.
    fn length(&mut self, most: usize) -> Result<Option<usize>, Error> {
        let mut end = ValueEnd::default();
        loop {
            if let Some(length) = end.find(self.unparsed()) {
                return Ok((length <= most).then_some(length));
            }
            // Checked only after the buffered bytes were scanned, so that at most one chunk too
            // many is read.
            if self.rest.len() > most {
                return Ok(None);
            }
            if !self.fill()? {
                return Ok(Some(self.rest.len()));
            }
        }
    }

    /// Parses the next value, which has this length, from memory.
    fn parse<T>(
        &mut self,
        length: usize,
        parse: impl FnOnce(
            &mut serde_json::Deserializer<serde_json::de::SliceRead<'_>>,
        ) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let json = &self.buffer[self.rest.start..self.rest.start + length];
        let mut parser = serde_json::Deserializer::from_slice(json);
        let parsed = parse(&mut parser).and_then(|value| {
            // Anything after the stream's single value is ignored.
            if self.depth > 0 {
                parser.end()?;
            }
            Ok(value)
        });
        let value = parsed.map_err(|error| self.locate_error(length, error))?;
        self.consume(length);
        Ok(value)
    }

    /// Translates an error inside a value of this length to its position in the stream.
    fn locate_error(&self, length: usize, error: Error) -> Error {
        let (line, column) = (error.line(), error.column());
        if error.is_eof() && self.rest.len() > length {
            // A truncated number or literal, followed by something else.
            return syntax_error();
        }
        // Syntax errors trigger a repair, and `line_of` locates those that remain.
        if error.is_syntax() || line == 0 {
            return error;
        }
        let words = error.to_string();
        let place = format!(" at line {line} column {column}");
        let words = words.strip_suffix(&place).unwrap_or(&words);
        // The value may start in the middle of a line of the stream; only its first line is
        // shifted.
        let column = if line == 1 { self.column + column } else { column };
        Error::custom(format!("{words} at line {} column {column}", self.lines + line))
    }

    /// Splits an object or list; `take` consumes everything up to its closing bracket.
    fn enter<T>(
        &mut self,
        what: &str,
        close: u8,
        take: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // Bounds the recursion, so a hostile file cannot overflow the stack.
        if self.depth == MAX_DEPTH {
            return Err(syntax_error());
        }
        self.depth += 1;
        self.consume(1);
        let taken = take(self)?;
        self.depth -= 1;
        if self.peek_in(what)? != close {
            return Err(syntax_error());
        }
        self.consume(1);
        Ok(taken)
    }
}

/// Returns a syntax error. Its position is irrelevant, because the text is repaired and read again.
fn syntax_error() -> Error {
    // serde_json has no public constructor for syntax errors.
    match serde_json::from_str::<IgnoredAny>("?") {
        Err(error) => error,
        Ok(_) => Error::custom("malformed JSON"),
    }
}

/// Scanner for the end of a value.
#[derive(Default)]
struct ValueEnd {
    /// Number of bytes scanned.
    at: usize,
    depth: usize,
    in_string: bool,
}

impl ValueEnd {
    /// Returns the length of the value at the start of `json`; `None` if it is incomplete. The
    /// caller then calls again with more of the same value.
    fn find(&mut self, json: &[u8]) -> Option<usize> {
        while let Some(&byte) = json.get(self.at) {
            if self.in_string {
                let rest = &json[self.at..];
                let Some(run) = memchr::memchr2(b'"', b'\\', rest) else {
                    self.at = json.len();
                    return None;
                };
                if rest[run] == b'"' {
                    self.at += run + 1;
                    self.in_string = false;
                    if self.depth == 0 {
                        return Some(self.at);
                    }
                } else if run + 1 < rest.len() {
                    // An escaped byte can be neither the end of the string nor the start of an escape.
                    self.at += run + 2;
                } else {
                    // The escaped byte is not read yet.
                    self.at += run;
                    return None;
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' if self.depth == 1 => return Some(self.at + 1),
                // End of a number or literal.
                b'}' | b']' | b',' | b':' | b' ' | b'\n' | b'\t' | b'\r' if self.depth == 0 => {
                    return Some(self.at);
                }
                _ => {}
            }
            self.at += 1;
        }
        None
    }
}

impl<'de, R: Read> Deserializer<'de> for &mut JsonStream<R> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let first = self.peek_in("a value")?;
        // `length` would take these for the end of a number with no digits.
        if matches!(first, b',' | b':' | b']' | b'}') {
            return Err(syntax_error());
        }
        let length = match (self.length(self.whole)?, first) {
            (None, b'{') => {
                return self.enter("an object", b'}', |stream| {
                    visitor.visit_map(StreamParts { stream, is_first: true })
                });
            }
            (None, b'[') => {
                return self.enter("a list", b']', |stream| {
                    visitor.visit_seq(StreamParts { stream, is_first: true })
                });
            }
            // Strings are not split, whatever their length.
            (None, _) => self.length(usize::MAX)?.unwrap_or_default(),
            (Some(length), _) => length,
        };
        self.parse(length, |json| BorrowAdapter::new(json).deserialize_any(visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // No other JSON value starts with `n`, so that one byte decides without finding the end of
        // the value.
        if self.peek()? == Some(b'n') {
            return self.deserialize_any(visitor);
        }
        visitor.visit_some(self)
    }

    /// `serde_json` represents raw JSON as a newtype struct, which must be in memory completely.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.peek_in("a value")?;
        let length = self.length(usize::MAX)?.unwrap_or_default();
        self.parse(length, |json| {
            BorrowAdapter::new(json).deserialize_newtype_struct(name, visitor)
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.peek_in("a value")?;
        match self.length(self.whole)? {
            Some(length) => {
                self.parse(length, |json| BorrowAdapter::new(json).deserialize_ignored_any(visitor))
            }
            None => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier
    }
}

/// The parts of an object or list that is split.
struct StreamParts<'s, R> {
    stream: &'s mut JsonStream<R>,
    is_first: bool,
}

impl<'de, R: Read> MapAccess<'de> for StreamParts<'_, R> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        if !self.stream.begin_part("an object", is_first, b'}')? {
            return Ok(None);
        }
        if self.stream.peek_in("an object")? != b'"' {
            return Err(syntax_error());
        }
        let length = self.stream.length(usize::MAX)?.unwrap_or_default();
        // Owned, because the buffer does not live for `'de`.
        let key: String =
            self.stream.parse(length, |json| serde::Deserialize::deserialize(json))?;
        seed.deserialize(StrDeserializer::new(&key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        if self.stream.peek_in("an object")? != b':' {
            return Err(syntax_error());
        }
        self.stream.consume(1);
        seed.deserialize(&mut *self.stream)
    }
}

impl<'de, R: Read> SeqAccess<'de> for StreamParts<'_, R> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        if !self.stream.begin_part("a list", is_first, b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.stream).map(Some)
    }
}

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

    fn visit_str<E: de::Error>(self, text: &str) -> Result<V::Value, E> {
        self.0.visit_str(text)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<V::Value, E> {
        self.0.visit_i64(number)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<V::Value, E> {
        self.0.visit_u64(number)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<V::Value, E> {
        self.0.visit_f64(number)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<V::Value, E> {
        self.0.visit_bool(value)
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize as _;
    use serde_json::Value;

    use super::*;

    /// A value and the error of reading it as such and as something to ignore, by both parsers.
    fn read(json: &[u8], whole: usize) -> [Result<Value, (bool, String)>; 2] {
        let words = |error: Error| {
            let is_syntax = error.is_syntax();
            // Where a syntax error is does not matter.
            (is_syntax, if is_syntax { String::new() } else { error.to_string() })
        };
        let ours = Value::deserialize(&mut JsonStream::with_whole(json, whole)).map_err(words);
        let mut parser = serde_json::Deserializer::from_reader(json);
        [ours, Value::deserialize(&mut parser).map_err(words)]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a\"\\\\\n{}\\[\\],:é]{0,9}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[a-c\"\\\\]{0,3}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_the_parser_reads(
            value in value(),
            is_pretty in any::<bool>(),
            whole in 0..40_usize,
            torn in 0..100_usize,
        ) {
            let json = if is_pretty { format!("{value:#}") } else { value.to_string() };
            let [ours, _] = read(json.as_bytes(), whole);
            prop_assert_eq!(ours, Ok(value));
            let kept = json.len() * torn / 100;
            let [ours, parser] = read(&json.as_bytes()[..kept], whole);
            prop_assert_eq!(ours, parser);
        }

        #[test]
        fn refuses_what_the_parser_refuses(
            json in "[ {}\\[\\],:\"\\\\an10\n]{0,30}",
            whole in 0..40_usize,
        ) {
            let [ours, parser] = read(json.as_bytes(), whole);
            prop_assert_eq!(ours.is_ok(), parser.is_ok(), "{:?} {:?}", ours, parser);
            let is_syntax = |result: &Result<Value, (bool, String)>| {
                result.as_ref().err().map(|(is_syntax, _)| *is_syntax)
            };
            prop_assert_eq!(is_syntax(&ours), is_syntax(&parser));
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = "[".repeat(100_000);
        let [ours, parser] = read(deep.as_bytes(), 10);
        assert_eq!(ours, parser);
    }
}
