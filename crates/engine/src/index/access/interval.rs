//! Sets of values as sorted intervals: what a filter allows an indexed field to be.

use document::Value;
use document::value::{order, show};
use std::cmp::Ordering;
use std::fmt;

/// A place between values: just before one or just after it.
#[derive(Clone, Debug)]
pub struct Cut {
    pub value: Value<'static>,
    pub after: bool,
}

impl Cut {
    pub fn before(value: Value<'static>) -> Cut {
        Cut { value, after: false }
    }

    pub fn after(value: Value<'static>) -> Cut {
        Cut { value, after: true }
    }

    fn compare(&self, other: &Cut) -> Ordering {
        order::compare(&self.value, &other.value).then(self.after.cmp(&other.after))
    }
}

/// The values between two cuts.
#[derive(Clone, Debug)]
pub struct Interval {
    pub from: Cut,
    pub to: Cut,
}

impl Interval {
    pub fn point(value: Value<'static>) -> Interval {
        Interval { from: Cut::before(value.clone()), to: Cut::after(value) }
    }

    pub fn full() -> Interval {
        Interval { from: Cut::before(Value::MinKey), to: Cut::after(Value::MaxKey) }
    }

    /// The one value it holds, if it holds only one.
    pub fn as_point(&self) -> Option<&Value<'static>> {
        (!self.from.after && self.to.after && order::equal(&self.from.value, &self.to.value))
            .then_some(&self.from.value)
    }

    pub fn is_full(&self) -> bool {
        matches!((&self.from.value, &self.to.value), (Value::MinKey, Value::MaxKey))
            && !self.from.after
            && self.to.after
    }

    fn is_empty(&self) -> bool {
        self.from.compare(&self.to) != Ordering::Less
    }
}

/// Intervals in ascending order that do not touch each other.
#[derive(Clone, Debug, Default)]
pub struct Intervals(Vec<Interval>);

impl Intervals {
    pub fn none() -> Intervals {
        Intervals(Vec::new())
    }

    pub fn full() -> Intervals {
        Intervals(vec![Interval::full()])
    }

    pub fn point(value: Value<'static>) -> Intervals {
        Intervals(vec![Interval::point(value)])
    }

    pub fn range(from: Cut, to: Cut) -> Intervals {
        Intervals::new(vec![Interval { from, to }])
    }

    /// Sorts and joins.
    pub fn new(mut intervals: Vec<Interval>) -> Intervals {
        intervals.retain(|interval| !interval.is_empty());
        intervals.sort_by(|a, b| a.from.compare(&b.from));
        let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match joined.last_mut() {
                Some(last) if interval.from.compare(&last.to) != Ordering::Greater => {
                    if interval.to.compare(&last.to) == Ordering::Greater {
                        last.to = interval.to;
                    }
                }
                _ => joined.push(interval),
            }
        }
        Intervals(joined)
    }

    pub fn as_slice(&self) -> &[Interval] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn is_full(&self) -> bool {
        matches!(self.0.as_slice(), [only] if only.is_full())
    }

    /// Whether every interval is one value.
    pub fn all_points(&self) -> bool {
        self.0.iter().all(|interval| interval.as_point().is_some())
    }

    /// The one value, if there is only one.
    pub fn single_point(&self) -> Option<&Value<'static>> {
        match self.0.as_slice() {
            [only] => only.as_point(),
            _ => None,
        }
    }

    pub fn union(self, other: Intervals) -> Intervals {
        let mut all = self.0;
        all.extend(other.0);
        Intervals::new(all)
    }

    pub fn intersect(&self, other: &Intervals) -> Intervals {
        let (mut common, mut i, mut j) = (Vec::new(), 0, 0);
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j)) {
            let from = if a.from.compare(&b.from) == Ordering::Less { &b.from } else { &a.from };
            let a_ends_first = a.to.compare(&b.to) == Ordering::Less;
            let to = if a_ends_first { &a.to } else { &b.to };
            common.push(Interval { from: from.clone(), to: to.clone() });
            if a_ends_first { i += 1 } else { j += 1 }
        }
        Intervals::new(common)
    }

    /// Everything else. No value lies between undefined and null, so no interval does.
    pub fn complement(&self) -> Intervals {
        let mut rest = Vec::with_capacity(self.0.len() + 1);
        let Interval { mut from, to: end } = Interval::full();
        for interval in &self.0 {
            let nothing_between =
                from.after && matches!((&from.value, &interval.from.value), (Value::Undefined, Value::Null));
            if !nothing_between {
                rest.push(Interval { from, to: interval.from.clone() });
            }
            from = interval.to.clone();
        }
        rest.push(Interval { from, to: end });
        Intervals::new(rest)
    }

    /// Each interval as MongoDB prints it; backwards if the index is read so.
    pub fn texts(&self, reverse: bool) -> Vec<String> {
        let text = |interval: &Interval| {
            let (from, to) = (&interval.from, &interval.to);
            let (low, high) = (show::element(&from.value), show::element(&to.value));
            match reverse {
                false => {
                    format!("{}{low}, {high}{}", if from.after { '(' } else { '[' }, if to.after { ']' } else { ')' })
                }
                true => {
                    format!("{}{high}, {low}{}", if to.after { '[' } else { '(' }, if from.after { ')' } else { ']' })
                }
            }
        };
        if reverse { self.0.iter().rev().map(text).collect() } else { self.0.iter().map(text).collect() }
    }
}

impl fmt::Display for Intervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.texts(false).join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(low: i32, high: i32) -> Intervals {
        Intervals::range(Cut::before(Value::Int32(low)), Cut::before(Value::Int32(high)))
    }

    #[test]
    fn sets_are_joined_cut_and_turned() {
        let check = |intervals: Intervals, expected: &str| assert_eq!(intervals.to_string(), expected);
        check(between(1, 5).union(between(5, 7)), "[1, 7)");
        check(between(1, 5).union(between(6, 7)), "[1, 5) [6, 7)");
        check(between(1, 5).union(between(2, 3)), "[1, 5)");
        check(between(1, 5).intersect(&between(4, 9)), "[4, 5)");
        check(between(1, 5).intersect(&between(5, 9)), "");
        check(between(1, 5).union(between(7, 9)).intersect(&between(2, 8)), "[2, 5) [7, 8)");
        check(between(1, 5).complement(), "[MinKey, 1) [5, MaxKey]");
        check(Intervals::none().complement(), "[MinKey, MaxKey]");
        check(Intervals::full().complement(), "");
        let nulls = Intervals::point(Value::Null).union(Intervals::point(Value::Undefined));
        check(nulls.clone(), "[undefined, undefined] [null, null]");
        check(nulls.complement(), "[MinKey, undefined) (null, MaxKey]");
        assert_eq!(between(1, 5).union(between(7, 9)).texts(true), ["(9, 7]", "(5, 1]"]);
        assert!(between(1, 1).is_empty());
        assert!(Intervals::point(Value::Int32(1)).single_point().is_some());
    }
}
