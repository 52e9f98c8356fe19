//! Which look-ups the key of buckets serves: those of all readings of one series, and of its first ones in the order of time
//! (SEMANTICS R34). Nothing else finds readings without reading all buckets.

use crate::rule::seek::Seek;
use crate::rule::{LinkKey, Lookup, Unserved};
use crate::shapes::bucket::Bucket;
use document::value::Path;

impl Bucket {
    pub(super) fn unserved(&self, by: &LinkKey, lookup: &Lookup) -> Option<Unserved> {
        match lookup {
            Lookup::Never => None,
            _ if !self.is_series(by) => Some(Unserved {
                key: "by",
                reason: format!("its buckets are found by {}", self.series_in_words()),
                hint: self.served_key(),
            }),
            Lookup::InOrder(path) if !is_field(path, &self.time) => Some(Unserved {
                key: "sort",
                reason: format!("the readings of a series are found in the order of `{}` alone", self.time),
                hint: format!("begin `sort` with `{}`", self.time),
            }),
            Lookup::ByValue | Lookup::InOrder(_) => None,
        }
    }

    /// Whether the key tells all fields of the series, and nothing else.
    fn is_series(&self, by: &LinkKey) -> bool {
        let parts: Vec<&Path> = match by {
            LinkKey::Path(key) => vec![&key.path],
            LinkKey::Expression(expression) => match &expression.seek {
                Some(Seek::Parts(parts)) => {
                    let equal = |(_, seek): &'_ (String, Seek)| matches!(seek, Seek::Equal(_));
                    if !parts.iter().all(equal) {
                        return false;
                    }
                    parts.iter().flat_map(|(_, seek)| seek.paths()).collect()
                }
                _ => return false,
            },
        };
        let is_part = |name: &str| parts.iter().any(|path| is_field(path, name));
        !self.by.is_empty() && parts.len() == self.by.len() && self.by.iter().all(|series| is_part(&series.field))
    }

    fn series_in_words(&self) -> String {
        match &*self.by {
            [] => "their time alone".to_owned(),
            series => {
                let names: Vec<String> = series.iter().map(|series| format!("`{}`", series.field)).collect();
                names.join(", ")
            }
        }
    }

    /// `by` as it can be served, for a hint.
    fn served_key(&self) -> String {
        let by = match &*self.by {
            [] => return "keep a count, sum or avg, or bucket by the field that `by` names".to_owned(),
            [one] => format!("by: {}", one.field),
            several => {
                let parts: Vec<String> = several.iter().map(|series| format!("{0}: ${0}", series.field)).collect();
                format!("by: {{ {} }}", parts.join(", "))
            }
        };
        format!("write `{by}`, keep a count, sum or avg, or bucket by the field that `by` names")
    }
}

fn is_field(path: &Path, name: &str) -> bool {
    path.parts.len() == 1 && path.first() == name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{KeyExpression, KeyPath};
    use crate::shapes::bucket::{Series, samples};
    use bson::{Bson, bson};
    use document::Value;
    use std::sync::Arc;

    fn path(by: &str) -> LinkKey {
        LinkKey::Path(KeyPath::new(Path::new(by)))
    }

    fn expression(by: Bson) -> LinkKey {
        LinkKey::Expression(Arc::new(KeyExpression::new(Value::from(by)).unwrap()))
    }

    #[test]
    fn a_key_is_served_if_it_is_the_series() {
        let one = samples::sensors();
        let site = Series { field: "site".into(), hex: false };
        let two = Bucket { by: one.by.iter().cloned().chain([site]).collect(), ..one.clone() };
        let both = || bson!({ "s": "$site", "i": "$sensorId" });
        let day = bson!({ "s": "$sensorId", "day": { "$dateTrunc": { "date": "$ts", "unit": "day" } } });
        for (bucket, by, is_served) in [
            (&one, path("sensorId"), true),
            (&one, path("ts"), false),
            (&one, path("sensorId.x"), false),
            (&one, expression(bson!({ "s": "$sensorId" })), true),
            (&one, expression(both()), false),
            (&one, expression(day), false),
            (&two, path("sensorId"), false),
            (&two, expression(both()), true),
        ] {
            assert_eq!(bucket.unserved(&by, &Lookup::ByValue).is_none(), is_served, "{by:?}");
            assert_eq!(bucket.unserved(&by, &Lookup::Never), None);
        }
        let none = Bucket { by: Vec::new(), ..one };
        assert!(none.unserved(&path("sensorId"), &Lookup::ByValue).is_some());
    }

    #[test]
    fn an_order_is_served_if_it_begins_with_the_time() {
        let told = |sort: &str| samples::sensors().unserved(&path("sensorId"), &Lookup::InOrder(Path::new(sort)));
        assert_eq!(told("ts"), None);
        let told = told("temp").unwrap();
        assert_eq!((told.key, &*told.hint), ("sort", "begin `sort` with `ts`"));
    }
}
