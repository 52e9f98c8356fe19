//! From a test of a field to the index entries that can pass it.
//!
//! The invariant: a document that passes the test has at least one entry in the intervals. [`Exactness`] says what
//! an entry in them proves.

use super::interval::{Cut, Interval, Intervals};
use document::filter::{InSet, LeafTest, Test};
use document::raw::kind;
use document::value::{Decimal128, order};
use document::{Array, Doc, DocWriter, Text, Value};

/// What an entry in the intervals says about its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exactness {
    /// Nothing: the document has to be looked at.
    Fetch,
    /// Nothing, but the test can be made on the entry's own value.
    Covered,
    /// The document passes.
    Exact,
}

/// What of the index matters for the bounds of one of its fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct FieldKind {
    /// Some document has an array on the field's path.
    pub multikey: bool,
    /// The index is sparse and has no other field: every entry is of a document that has the field.
    pub sparse_alone: bool,
}

impl FieldKind {
    /// A test that looks at one value can be made on the entry, unless the document may have several.
    fn covered(self) -> Exactness {
        if self.multikey { Exactness::Fetch } else { Exactness::Covered }
    }
}

/// The intervals that `test` allows; `None` if an index is of no use for it.
pub fn of_test(test: &Test, field: FieldKind) -> Option<(Intervals, Exactness)> {
    match test {
        Test::Eq(value) => Some(equal(value)),
        Test::Lt(value) => Some(below(value, false, field)),
        Test::Lte(value) => Some(below(value, true, field)),
        Test::Gt(value) => Some(above(value, false, field)),
        Test::Gte(value) => Some(above(value, true, field)),
        Test::In(set) => Some(one_of(set, field)),
        Test::Exists if field.sparse_alone => Some((Intervals::full(), Exactness::Exact)),
        Test::Exists => Some((Intervals::full(), Exactness::Fetch)),
        Test::Not(inner) => of_negated(inner, field),
        Test::ElemMatchValue(tests) => elements(tests, field),
        Test::Leaf(leaf) => of_leaf(leaf.as_ref(), field),
        // The fields of an `$elemMatch` are conditions of their own paths; see the predicates.
        Test::All(_) | Test::ElemMatch(_) | Test::Size(_) => None,
    }
}

fn equal(value: &Value<'static>) -> (Intervals, Exactness) {
    match value {
        Value::Null => (nulls(), Exactness::Fetch),
        Value::Array(array) => (whole_array(array), Exactness::Fetch),
        _ => (Intervals::point(value.clone()), Exactness::Exact),
    }
}

/// Null stands for missing too, and undefined for an empty array or itself.
fn nulls() -> Intervals {
    Intervals::new(vec![Interval::point(Value::Undefined), Interval::point(Value::Null)])
}

/// An array has entries for its elements; as an element of another array it has its own.
fn whole_array(array: &Array<'static>) -> Intervals {
    let first = array.get(0).unwrap_or(Value::Undefined);
    Intervals::new(vec![Interval::point(first), Interval::point(Value::Array(array.clone()))])
}

fn below(value: &Value<'static>, inclusive: bool, field: FieldKind) -> (Intervals, Exactness) {
    let end = Cut { value: value.clone(), after: inclusive };
    match value {
        Value::Null if inclusive => (nulls(), Exactness::Fetch),
        Value::Null => (Intervals::none(), Exactness::Exact),
        Value::MinKey if inclusive => (Intervals::point(Value::MinKey), Exactness::Exact),
        Value::MinKey => (Intervals::none(), Exactness::Exact),
        Value::MaxKey => beside_extreme(Intervals::range(Cut::before(Value::MinKey), end), field),
        _ if is_nan(value) && inclusive => (Intervals::point(value.clone()), Exactness::Exact),
        _ if is_nan(value) => (Intervals::none(), Exactness::Exact),
        Value::Array(array) => {
            // A lesser array has no greater first element, or is empty.
            let high = array.get(0).map_or(value.clone(), |first| greater(first, value.clone()));
            (Intervals::range(Cut::before(Value::MinKey), Cut::after(high)), Exactness::Fetch)
        }
        _ => match Bracket::of(value) {
            Some(bracket) => (Intervals::range(Cut::before(bracket.finite_low()), end), Exactness::Exact),
            None => (Intervals::full(), Exactness::Fetch),
        },
    }
}

fn above(value: &Value<'static>, inclusive: bool, field: FieldKind) -> (Intervals, Exactness) {
    let start = Cut { value: value.clone(), after: !inclusive };
    match value {
        Value::Null if inclusive => (nulls(), Exactness::Fetch),
        Value::Null => (Intervals::none(), Exactness::Exact),
        Value::MaxKey if inclusive => (Intervals::point(Value::MaxKey), Exactness::Exact),
        Value::MaxKey => (Intervals::none(), Exactness::Exact),
        Value::MinKey => beside_extreme(Intervals::range(start, Cut::after(Value::MaxKey)), field),
        _ if is_nan(value) && inclusive => (Intervals::point(value.clone()), Exactness::Exact),
        _ if is_nan(value) => (Intervals::none(), Exactness::Exact),
        Value::Array(array) => {
            // A greater array has no lesser first element; anything is above an empty one.
            let low = array.get(0).map_or(Value::MinKey, |first| lesser(first, value.clone()));
            (Intervals::range(Cut::before(low), Cut::after(Value::MaxKey)), Exactness::Fetch)
        }
        _ => match Bracket::of(value) {
            Some(bracket) => (Intervals::range(start, bracket.to), Exactness::Exact),
            None => (Intervals::full(), Exactness::Fetch),
        },
    }
}

/// An array is neither MinKey nor MaxKey even if all its elements are; and one of scalars has no sub-fields to compare.
fn beside_extreme(intervals: Intervals, field: FieldKind) -> (Intervals, Exactness) {
    if field.multikey { (Intervals::full(), Exactness::Fetch) } else { (intervals, Exactness::Exact) }
}

fn one_of(set: &InSet, field: FieldKind) -> (Intervals, Exactness) {
    let (mut intervals, mut exactness) = (Vec::new(), Exactness::Exact);
    let mut add = |(allowed, exact): (Intervals, Exactness)| {
        intervals.extend_from_slice(allowed.as_slice());
        exactness = exactness.min(exact);
    };
    set.values.iter().for_each(|value| add(equal(value)));
    set.regexes
        .iter()
        .for_each(|regex| add(of_leaf(regex.as_ref(), field).unwrap_or((Intervals::full(), Exactness::Fetch))));
    (Intervals::new(intervals), exactness)
}

/// A document passes if none of its values passes the inner test. If all its entries were in the inner intervals, and those
/// are exact, it could not pass: so it has one in the complement.
pub fn of_negated(inner: &Test, field: FieldKind) -> Option<(Intervals, Exactness)> {
    let complement = |(intervals, _): (Intervals, Exactness)| {
        let exactness = if field.multikey { Exactness::Fetch } else { Exactness::Exact };
        Some((intervals.complement(), exactness))
    };
    match inner {
        Test::Exists => Some((Intervals::point(Value::Null), Exactness::Fetch)),
        // An array without nulls may have a null entry (a path that leads nowhere), so null needs a field without arrays.
        Test::Eq(Value::Null) if !field.multikey => complement((nulls(), Exactness::Exact)),
        Test::In(set)
            if !field.multikey && set.regexes.is_empty() && set.values.iter().all(|value| !is_array(value)) =>
        {
            complement(one_of(set, field))
        }
        Test::Eq(_) | Test::In(_) | Test::Lt(_) | Test::Lte(_) | Test::Gt(_) | Test::Gte(_) => {
            let mentions_regex = matches!(inner, Test::In(set) if !set.regexes.is_empty());
            of_test(inner, field)
                .filter(|(_, exact)| *exact == Exactness::Exact && !mentions_regex)
                .and_then(complement)
        }
        _ => None,
    }
}

/// All tests are of one and the same element.
fn elements(tests: &[Test], field: FieldKind) -> Option<(Intervals, Exactness)> {
    let mut allowed = Intervals::full();
    let mut useful = false;
    for test in tests {
        // An element that is an array is looked at as a whole, so the test is not one of its entries.
        if let Some((intervals, _)) = of_test(test, field) {
            allowed = allowed.intersect(&intervals);
            useful = true;
        }
    }
    useful.then_some((allowed, Exactness::Fetch))
}

fn of_leaf(leaf: &dyn LeafTest, field: FieldKind) -> Option<(Intervals, Exactness)> {
    let mut query = DocWriter::new();
    leaf.write(&mut query);
    let query = query.finish();
    if let Some(Value::String(pattern)) = query.get("$regex") {
        let options = match query.get("$options") {
            Some(Value::String(options)) => options,
            _ => Text::from(String::new()),
        };
        return Some(of_regex(leaf, Value::Regex { pattern, options }, field));
    }
    if query.contains("$mod") {
        return Some((Bracket::numbers().intervals(), field.covered()));
    }
    query.contains("$type").then(|| of_types(leaf, field))
}

fn of_regex(leaf: &dyn LeafTest, regex: Value<'static>, field: FieldKind) -> (Intervals, Exactness) {
    let itself = Intervals::point(regex);
    match leaf.prefix().and_then(|(prefix, whole)| Some((prefix, whole, next_text(prefix)?))) {
        Some((prefix, whole, next)) => {
            let strings = Intervals::range(Cut::before(Value::string(prefix)), Cut::before(Value::string(next)));
            (strings.union(itself), if whole { Exactness::Exact } else { field.covered() })
        }
        None => (Bracket::strings().intervals().union(itself), field.covered()),
    }
}

/// The least text above all that begin with `prefix`.
fn next_text(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        let next = (u32::from(last) + 1..=0xE000).chain([u32::from(last) + 1]).find_map(char::from_u32);
        if let Some(next) = next {
            text.push(next);
            return Some(text);
        }
    }
    None
}

/// `$type`, asked about one value of each type.
fn of_types(leaf: &dyn LeafTest, field: FieldKind) -> (Intervals, Exactness) {
    let matched: Vec<Value<'static>> =
        samples().into_iter().filter(|sample| leaf.matches(sample).unwrap_or(true)).collect();
    let matches = |kind: u8| matched.iter().any(|value| value.kind() == Some(kind));
    let (mut intervals, mut exactness) = (Vec::new(), Exactness::Exact);
    for value in &matched {
        let (allowed, exact) = match value {
            Value::Array(_) => (Intervals::full(), Exactness::Fetch),
            Value::Null => (Intervals::point(Value::Null), Exactness::Fetch),
            Value::Undefined => (Intervals::point(Value::Undefined), Exactness::Fetch),
            Value::MinKey | Value::MaxKey => (Intervals::point(value.clone()), Exactness::Exact),
            number if number.is_number() => {
                let all = [kind::DOUBLE, kind::INT32, kind::INT64, kind::DECIMAL].into_iter().all(matches);
                (Bracket::numbers().intervals(), if all { Exactness::Exact } else { field.covered() })
            }
            Value::String(_) | Value::Symbol(_) => {
                let both = matches(kind::STRING) && matches(kind::SYMBOL);
                (Bracket::strings().intervals(), if both { Exactness::Exact } else { field.covered() })
            }
            other => match Bracket::of(other) {
                Some(bracket) => (bracket.intervals(), Exactness::Exact),
                None => (Intervals::full(), Exactness::Fetch),
            },
        };
        intervals.extend_from_slice(allowed.as_slice());
        exactness = exactness.min(exact);
    }
    (Intervals::new(intervals), exactness)
}

fn samples() -> [Value<'static>; 21] {
    let empty = || Text::from(String::new());
    [
        Value::Double(0.0),
        Value::string(""),
        Value::Document(Doc::empty()),
        Value::Array(Array::empty()),
        Value::Binary { subtype: 0, bytes: document::Blob::Borrowed(&[]) },
        Value::Undefined,
        Value::ObjectId([0; 12]),
        Value::Bool(false),
        Value::DateTime(0),
        Value::Null,
        Value::Regex { pattern: empty(), options: empty() },
        Value::DbPointer { namespace: empty(), id: [0; 12] },
        Value::Code(empty()),
        Value::Symbol(empty()),
        Value::CodeWithScope { code: empty(), scope: Doc::empty() },
        Value::Int32(0),
        Value::Timestamp(0),
        Value::Int64(0),
        Value::Decimal(Decimal128::from_i64(0)),
        Value::MinKey,
        Value::MaxKey,
    ]
}

/// All values of a type, between two cuts.
pub struct Bracket {
    from: Cut,
    to: Cut,
}

impl Bracket {
    fn numbers() -> Bracket {
        Bracket { from: Cut::before(Value::Double(f64::NAN)), to: Cut::after(Value::Double(f64::INFINITY)) }
    }

    fn strings() -> Bracket {
        Bracket { from: Cut::before(Value::string("")), to: Cut::before(Value::Document(Doc::empty())) }
    }

    /// The bracket of the value's type; none for arrays, null and the like, which have rules of their own.
    pub fn of(value: &Value<'_>) -> Option<Bracket> {
        let empty = || Text::from(String::new());
        let binary = || Value::Binary { subtype: 0, bytes: document::Blob::Borrowed(&[]) };
        let code_with_scope = || Value::CodeWithScope { code: empty(), scope: Doc::empty() };
        let below = |low, next| Some(Bracket { from: Cut::before(low), to: Cut::before(next) });
        let closed = |low, high| Some(Bracket { from: Cut::before(low), to: Cut::after(high) });
        match value {
            Value::Double(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_) => Some(Bracket::numbers()),
            Value::String(_) | Value::Symbol(_) => Some(Bracket::strings()),
            Value::Document(_) => below(Value::Document(Doc::empty()), Value::Array(Array::empty())),
            Value::Binary { .. } => below(binary(), Value::ObjectId([0; 12])),
            Value::ObjectId(_) => closed(Value::ObjectId([0; 12]), Value::ObjectId([0xFF; 12])),
            Value::Bool(_) => closed(Value::Bool(false), Value::Bool(true)),
            Value::DateTime(_) => closed(Value::DateTime(i64::MIN), Value::DateTime(i64::MAX)),
            Value::Timestamp(_) => closed(Value::Timestamp(0), Value::Timestamp(u64::MAX)),
            Value::Regex { .. } => below(
                Value::Regex { pattern: empty(), options: empty() },
                Value::DbPointer { namespace: empty(), id: [0; 12] },
            ),
            Value::DbPointer { .. } => {
                below(Value::DbPointer { namespace: empty(), id: [0; 12] }, Value::Code(empty()))
            }
            Value::Code(_) => below(Value::Code(empty()), code_with_scope()),
            Value::CodeWithScope { .. } => below(code_with_scope(), Value::MaxKey),
            Value::Missing | Value::MinKey | Value::MaxKey | Value::Undefined | Value::Null | Value::Array(_) => None,
        }
    }

    /// Where values that can be compared begin: NaN is a number, but below none.
    fn finite_low(self) -> Value<'static> {
        match self.from.value {
            Value::Double(_) => Value::Double(f64::NEG_INFINITY),
            low => low,
        }
    }

    fn intervals(self) -> Intervals {
        Intervals::range(self.from, self.to)
    }
}

fn is_nan(value: &Value<'_>) -> bool {
    match value {
        Value::Double(number) => number.is_nan(),
        Value::Decimal(number) => number.is_nan(),
        _ => false,
    }
}

fn is_array(value: &Value<'_>) -> bool {
    matches!(value, Value::Array(_))
}

fn greater(a: Value<'static>, b: Value<'static>) -> Value<'static> {
    if order::compare(&a, &b).is_gt() { a } else { b }
}

fn lesser(a: Value<'static>, b: Value<'static>) -> Value<'static> {
    if order::compare(&a, &b).is_lt() { a } else { b }
}
