//! How the documents of a computed key are found by an index: a field equals the key, a date lies in its period, or both for the
//! parts of a document. What is found is a superset: the key itself is computed behind it.

use crate::mql::{call, call_with, list, object};
use document::pipeline::expr::{Names, Scope, parse};
use document::value::Path;
use document::{Doc, Env, Value};

#[derive(Clone, Debug, PartialEq)]
pub enum Seek {
    /// The key is what the field holds.
    Equal(Path),
    /// The key is the beginning of a period (`$dateTrunc`) that the field lies in; the options say which.
    Period { path: Path, options: Doc<'static> },
    /// The key is a document of these.
    Parts(Vec<(String, Seek)>),
}

/// Changes of the clock, and days that a zone left out: a period in local time is longer or shorter by less.
const ZONE_SLACK: i64 = 25 * 3_600_000;

impl Seek {
    /// `None` if no index can serve the expression.
    pub fn of(source: &Value<'_>) -> Option<Seek> {
        match source {
            Value::String(text) => field(text.as_str()).map(Seek::Equal),
            Value::Document(doc) => match doc.get("$dateTrunc") {
                Some(Value::Document(options)) => {
                    let date = options.get("date")?;
                    Some(Seek::Period { path: field(date.as_str()?)?, options: options.into_owned() })
                }
                Some(_) => None,
                None => {
                    let part = |(name, value): (document::Text<'_>, Value<'_>)| {
                        (!name.as_str().starts_with('$')).then_some(())?;
                        Some((name.as_str().to_owned(), Seek::of(&value)?))
                    };
                    doc.iter().map(part).collect::<Option<Vec<_>>>().filter(|parts| !parts.is_empty()).map(Seek::Parts)
                }
            },
            _ => None,
        }
    }

    /// The paths that need an index, in its order: a period comes behind what must be equal.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Seek::Equal(path) | Seek::Period { path, .. } => vec![path],
            Seek::Parts(parts) => {
                let is_equal = |seek: &&Seek| matches!(seek, Seek::Equal(_));
                let (equal, rest): (Vec<&Seek>, Vec<&Seek>) = parts.iter().map(|(_, seek)| seek).partition(is_equal);
                equal.into_iter().chain(rest).flat_map(Seek::paths).collect()
            }
        }
    }

    /// A filter that all documents of a key match.
    pub fn filter(&self, key: &Value<'_>) -> Value<'static> {
        match self {
            Seek::Equal(path) => equal(path, key),
            Seek::Period { path, options } => match key {
                Value::DateTime(start) => within(path, *start, end(*start, options)),
                // Without a date there is no period.
                other => equal(path, other),
            },
            Seek::Parts(parts) => {
                let whole = match key {
                    Value::Document(whole) => whole.clone(),
                    _ => Doc::empty(),
                };
                let part = |(name, seek): &(String, Seek)| seek.filter(&whole.get(name).unwrap_or(Value::Null));
                call("$and", list(parts.iter().map(part)))
            }
        }
    }
}

/// `$a.b`.
fn field(text: &str) -> Option<Path> {
    text.strip_prefix('$').filter(|path| !path.starts_with('$')).map(Path::new)
}

fn equal(path: &Path, key: &Value<'_>) -> Value<'static> {
    let key = if key.is_missing() { Value::Null } else { key.borrow() };
    object([(&*path.dotted(), call("$eq", key))])
}

/// Where the period that begins at `start` ends, or later.
fn end(start: i64, options: &Doc<'static>) -> Option<i64> {
    let amount = options.get("binSize").unwrap_or(Value::Int32(1));
    let next = object([("startDate", Value::DateTime(start)), ("unit", options.get("unit")?), ("amount", amount)]);
    let next = parse(&call("$dateAdd", next), &mut Names::new()).ok()?;
    match next.eval(&mut Scope::new(Doc::empty(), &Env::fixed())) {
        Ok(Value::DateTime(end)) if options.contains("timezone") => end.checked_add(ZONE_SLACK),
        Ok(Value::DateTime(end)) => Some(end),
        _ => None,
    }
}

/// The field is a moment in the period, in any of the types that stand for one.
fn within(path: &Path, start: i64, end: Option<i64>) -> Value<'static> {
    let path = path.dotted();
    let range = |from: Value<'static>, to: Option<Value<'static>>| {
        let to = to.unwrap_or(Value::Missing);
        object([(&*path, object([("$gte", from), ("$lt", to)]))])
    };
    let mut ranges = vec![range(Value::DateTime(start), end.map(Value::DateTime))];
    // Timestamps and ids hold whole seconds of 32 bits.
    let second = |millis: i64| u32::try_from(millis.div_euclid(1_000).max(0)).ok();
    let last = end.and_then(|end| second(end.saturating_add(999)));
    if let Some(first) = second(start) {
        let stamp = |second: u32| Value::Timestamp(u64::from(second) << 32);
        ranges.push(range(stamp(first), last.map(stamp)));
        let id = |second: u32| {
            let [a, b, c, d] = second.to_be_bytes();
            Value::ObjectId([a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0])
        };
        ranges.push(range(id(first), last.map(id)));
    }
    call_with("$or", ranges)
}
