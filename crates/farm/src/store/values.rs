//! Values of records in PostgreSQL's types.
//!
//! PostgreSQL's texts cannot contain NUL. Names of a pipeline and messages of a crashed process may, so NUL and the
//! escape character are escaped.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use warploom_lang::files::FIELD;
use warploom_tune::records::{Row, Value};

/// Begins an escape.
const ESCAPE: char = '\u{1}';

type Any = Box<dyn Error + Sync + Send>;

/// A value of a statement.
#[derive(Debug)]
pub(super) struct Parameter<'a>(pub &'a Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Any> {
        match (self.0, ty) {
            (Value::Null, _) => Ok(IsNull::Yes),
            (Value::Integer(value), &Type::INT8) => value.to_sql(ty, out),
            (Value::Integer(value), &Type::INT4) => i32::try_from(*value)?.to_sql(ty, out),
            (Value::Integer(value), &Type::OID) => u32::try_from(*value)?.to_sql(ty, out),
            (Value::Integer(value), &Type::BOOL) => (*value != 0).to_sql(ty, out),
            (Value::Real(value), &Type::FLOAT8) => value.to_sql(ty, out),
            (Value::Text(value), &Type::TEXT) => escaped(value).as_ref().to_sql(ty, out),
            (Value::Bytes(value), &Type::BYTEA) => value.to_sql(ty, out),
            (value, ty) => Err(format!("{value:?} is not of the type {ty}").into()),
        }
    }

    /// `to_sql` rejects other types.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A value that was received.
struct Received(Value);

impl<'a> FromSql<'a> for Received {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Received, Any> {
        if raw.len() as u64 > FIELD.most {
            return Err(format!("a field has more than {FIELD}, which is the limit").into());
        }
        Ok(Received(match *ty {
            Type::INT8 => Value::Integer(i64::from_sql(ty, raw)?),
            Type::INT4 => Value::Integer(i32::from_sql(ty, raw)?.into()),
            Type::OID => Value::Integer(u32::from_sql(ty, raw)?.into()),
            Type::BOOL => Value::Integer(bool::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => Value::Real(f64::from_sql(ty, raw)?),
            Type::BYTEA => Value::Bytes(raw.to_vec()),
            _ => Value::Text(plain(<&str>::from_sql(ty, raw)?)?),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Received, Any> {
        Ok(Received(Value::Null))
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT8, Type::INT4, Type::OID, Type::BOOL, Type::FLOAT8, Type::BYTEA].contains(ty)
            || <&str as FromSql<'_>>::accepts(ty)
    }
}

/// A row that was received.
pub(super) fn row(row: &postgres::Row) -> Result<Row, postgres::Error> {
    let values = (0..row.len()).map(|column| row.try_get(column).map(|Received(value)| value));
    Ok(Row(values.collect::<Result<_, _>>()?))
}

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().flat_map(|character| match character {
        '\0' => [Some(ESCAPE), Some('0')],
        ESCAPE => [Some(ESCAPE), Some('1')],
        other => [Some(other), None],
    });
    Cow::Owned(escaped.flatten().collect())
}

fn plain(text: &str) -> Result<String, Any> {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            ESCAPE => match characters.next() {
                Some('0') => '\0',
                Some('1') => ESCAPE,
                _ => return Err("a text is escaped in an unknown way".into()),
            },
            other => other,
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_comes_back(text in "[\\x00-\\x02a01ä]{0,12}") {
            let there = escaped(&text).into_owned();
            prop_assert!(!there.contains('\0'));
            prop_assert_eq!(plain(&there).map_err(|error| error.to_string()), Ok(text));
        }
    }
}
