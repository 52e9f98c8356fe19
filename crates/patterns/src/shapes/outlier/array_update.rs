//! What a client's update says about an outlier array, as written: nothing is applied. Operators on the array are taken apart from the
//! rest; those that need the whole array at once are refused (SEMANTICS R18).

use crate::rule::Outlier;
use document::pipeline::expr::Names;
use document::update::Update;
use document::value::Path;
use document::{Code, Doc, DocWriter, Error, Result, Value};

/// What operators say about the array of a host that has overflow.
#[derive(Debug, Default)]
pub(crate) struct ArrayUpdate {
    /// `$push`, and `$addToSet`: items that go behind the last.
    pub(crate) pushed: Vec<Value<'static>>,
    pub(crate) added: Vec<Value<'static>>,
    /// `$pop: 1`.
    pub(crate) pops_last: bool,
    /// `$pop: -1`: an item of the overflow only if none is embedded.
    pub(crate) pops_first: bool,
    /// `$pull` and `$pullAll`: which items of the overflow may be meant; `Some(None)` if any may.
    pub(crate) pulled: Option<Option<Vec<Value<'static>>>>,
    /// `$[]` and `$[id]`: any item may become another.
    pub(crate) changes_each: bool,
    /// `$set` and `$unset` of the array itself.
    pub(crate) replaces: bool,
    /// `followers.3`: the largest place that is named.
    pub(crate) place: Option<usize>,
    /// `followers.$`.
    pub(crate) positional: bool,
    /// What is applied to the stored document: everything but what goes behind the last item or takes that.
    pub(crate) embedded: Option<Update>,
    /// What decides about each item of the overflow, applied to a document with an array of that item alone.
    pub(crate) each: Option<Update>,
}

/// Refuses what cannot be said about an array in two parts, whatever is stored.
pub(crate) fn check(outlier: &Outlier, update: &Update) -> Result<()> {
    let (Value::Document(operators), false) = (&update.source, update.is_replacement()) else { return Ok(()) };
    for (operator, fields) in operators.iter() {
        let Value::Document(fields) = &fields else { continue };
        for (path, argument) in fields.iter() {
            let target = argument.as_str().unwrap_or_default();
            if operator.as_str() == "$rename" && (is_of(outlier, path.as_str()) || is_of(outlier, target)) {
                return Err(refused(outlier, "$rename"));
            }
            if !is_of(outlier, path.as_str()) {
                continue;
            }
            if let ("$push", Value::Document(argument)) = (operator.as_str(), &argument)
                && argument.contains("$each")
                && let Some(name) = ["$position", "$sort", "$slice"].iter().find(|name| argument.contains(name))
            {
                return Err(refused(outlier, name));
            }
            if let Some(place) = place(path.as_str()).filter(|place| *place >= outlier.keep) {
                return Err(refused(outlier, &format!("item {place}, past `keep`,")));
            }
        }
    }
    Ok(())
}

fn refused(outlier: &Outlier, what: &str) -> Error {
    let message = format!(
        "{what} is not allowed on '{}': items past the first {} are in '{}'",
        outlier.field, outlier.keep, outlier.overflow.collection
    );
    Error::new(Code::OperationFailed, message)
        .with_hint("$push, $addToSet, $pull, $pullAll, $pop, $[], $[id] and $set of the whole array work on all items")
}

fn is_of(outlier: &Outlier, path: &str) -> bool {
    path.split('.').next() == Some(&outlier.field)
}

/// `followers.3.name` names the item 3.
fn place(path: &str) -> Option<usize> {
    Path::new(path).parts.get(1).and_then(|part| part.index)
}

impl ArrayUpdate {
    /// Of an update with operators.
    pub(crate) fn of(outlier: &Outlier, update: &Update) -> Result<ArrayUpdate> {
        let mut found = ArrayUpdate::default();
        let Value::Document(operators) = &update.source else {
            return Ok(ArrayUpdate { embedded: Some(update.clone()), ..found });
        };
        let (mut embedded, mut each) = (DocWriter::new(), DocWriter::new());
        for (operator, fields) in operators.iter() {
            let Value::Document(fields) = &fields else { continue };
            let (mut kept, mut of_each) = (DocWriter::new(), DocWriter::new());
            for (path, argument) in fields.iter() {
                if !is_of(outlier, path.as_str()) {
                    kept.append(path.as_str(), &argument);
                    continue;
                }
                let whole = path.as_str() == outlier.field;
                match operator.as_str() {
                    "$push" if whole => found.pushed.extend(items(&argument)),
                    "$addToSet" if whole => found.added.extend(items(&argument)),
                    "$pop" if whole && argument.as_i64_exact() == Some(1) => found.pops_last = true,
                    "$pull" | "$pullAll" if whole => {
                        found.pulled = Some(meant(operator.as_str(), &argument));
                        of_each.append(path.as_str(), &argument);
                        kept.append(path.as_str(), &argument);
                    }
                    _ => {
                        let step = path.as_str().split('.').nth(1);
                        found.pops_first |= whole && operator.as_str() == "$pop";
                        found.replaces |= whole && matches!(operator.as_str(), "$set" | "$unset");
                        found.positional |= step == Some("$");
                        found.place = found.place.max(place(path.as_str()));
                        if step.is_some_and(|step| step.starts_with("$[")) {
                            found.changes_each = true;
                            of_each.append(path.as_str(), &argument);
                        }
                        kept.append(path.as_str(), &argument);
                    }
                }
            }
            for (fields, into) in [(kept, &mut embedded), (of_each, &mut each)] {
                if !fields.is_empty() {
                    into.append(operator.as_str(), &Value::Document(fields.finish()));
                }
            }
        }
        found.embedded = parsed(embedded.finish(), update)?;
        found.each = parsed(each.finish(), update)?;
        Ok(found)
    }

    /// Whether an embedded item may be another afterwards.
    pub(crate) fn changes_embedded(&self) -> bool {
        self.changes_each || self.positional || self.place.is_some()
    }

    /// Whether an item of the overflow may be gone or another afterwards.
    pub(crate) fn concerns_items(&self) -> bool {
        self.pulled.is_some() || self.changes_each
    }
}

/// The items that `$push` and `$addToSet` are given.
pub(crate) fn items(argument: &Value<'_>) -> Vec<Value<'static>> {
    match argument {
        Value::Document(spec) if spec.contains("$each") => match spec.get("$each") {
            Some(Value::Array(items)) => items.into_owned().iter().collect(),
            _ => Vec::new(),
        },
        item => vec![item.clone().into_owned()],
    }
}

/// The values that `$pull` and `$pullAll` remove; `None` if they are not told one by one.
fn meant(operator: &str, argument: &Value<'_>) -> Option<Vec<Value<'static>>> {
    match (operator, argument) {
        ("$pullAll", Value::Array(values)) => Some(values.clone().into_owned().iter().collect()),
        (_, Value::Document(condition)) => match (condition.iter().count(), condition.get("$in")) {
            (1, Some(Value::Array(values))) => {
                let values: Vec<_> = values.into_owned().iter().collect();
                (!values.iter().any(|value| matches!(value, Value::Regex { .. }))).then_some(values)
            }
            _ => None,
        },
        (_, Value::Regex { .. } | Value::Array(_)) => None,
        (_, value) => Some(vec![value.clone().into_owned()]),
    }
}

/// A part of the operators, with the array filters that it uses; `None` if there is none.
fn parsed(operators: Doc<'static>, whole: &Update) -> Result<Option<Update>> {
    if operators.is_empty() {
        return Ok(None);
    }
    let mut paths = String::new();
    for (_, fields) in operators.iter() {
        let Value::Document(fields) = fields else { continue };
        fields.iter().for_each(|(path, _)| paths.extend(["\n", path.as_str(), "."]));
    }
    let is_used = |filter: &&Doc<'static>| identifier(filter).is_none_or(|name| paths.contains(&format!("$[{name}].")));
    let filters: Vec<Doc<'static>> = whole.array_filters.iter().filter(is_used).cloned().collect();
    Update::parse(&Value::Document(operators), &filters, &mut Names::new()).map(Some)
}

/// The name that a filter is about: the first part of its first path.
fn identifier(filter: &Doc<'_>) -> Option<String> {
    let (name, value) = filter.iter().next()?;
    match (name.as_str().starts_with('$'), value) {
        (false, _) => name.as_str().split('.').next().map(str::to_owned),
        (true, Value::Array(inner)) => match inner.iter().next()? {
            Value::Document(inner) => identifier(&inner),
            _ => None,
        },
        (true, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::outlier::samples::followers;
    use bson::doc;

    fn update(spec: bson::Document, filters: &[bson::Document]) -> Update {
        let filters: Vec<Doc<'static>> = filters.iter().cloned().map(Doc::from).collect();
        Update::parse(&Value::Document(Doc::from(spec)), &filters, &mut Names::new()).unwrap()
    }

    #[test]
    fn what_needs_the_whole_array_is_refused() {
        let outlier = followers(2);
        for (spec, is_refused) in [
            (doc! { "$push": { "followers": { "$each": [1], "$position": 0 } } }, true),
            (doc! { "$push": { "followers": { "$each": [1], "$sort": 1 } } }, true),
            (doc! { "$push": { "followers": { "$each": [1], "$slice": 5 } } }, true),
            (doc! { "$push": { "followers": { "$position": 0 } } }, false),
            (doc! { "$push": { "others": { "$each": [1], "$slice": 5 } } }, false),
            (doc! { "$set": { "followers.2": 1 } }, true),
            (doc! { "$set": { "followers.1": 1 } }, false),
            (doc! { "$rename": { "followers": "f" } }, true),
            (doc! { "$rename": { "f": "followers" } }, true),
        ] {
            assert_eq!(check(&outlier, &update(spec.clone(), &[])).is_err(), is_refused, "{spec}");
        }
    }

    #[test]
    fn operators_on_the_array_are_taken_apart() {
        let outlier = followers(2);
        let spec = doc! {
            "$push": { "followers": { "$each": [1, 2] }, "log": 1 },
            "$set": { "a.$[x]": 1 },
        };
        let found = ArrayUpdate::of(&outlier, &update(spec, &[doc! { "x": 1 }])).unwrap();
        assert_eq!(found.pushed, [Value::Int32(1), Value::Int32(2)]);
        let rest = doc! { "$push": { "log": 1 }, "$set": { "a.$[x]": 1 } };
        assert_eq!(found.embedded.unwrap().source, Value::Document(Doc::from(rest)));
        assert!(found.each.is_none());

        let spec = doc! { "$set": { "followers.$[x].seen": true, "a.$[y]": 1 } };
        let filters = [doc! { "x.id": 1 }, doc! { "$or": [{ "y": 1 }, { "y": 2 }] }];
        let found = ArrayUpdate::of(&outlier, &update(spec, &filters)).unwrap();
        assert!(found.changes_each && found.concerns_items());
        let each = found.each.unwrap();
        assert_eq!(each.source, Value::Document(Doc::from(doc! { "$set": { "followers.$[x].seen": true } })));
        assert_eq!(each.array_filters, [Doc::from(doc! { "x.id": 1 })]);

        let found =
            ArrayUpdate::of(&outlier, &update(doc! { "$pull": { "followers": { "$in": [1, 2] } } }, &[])).unwrap();
        assert_eq!(found.pulled, Some(Some(vec![Value::Int32(1), Value::Int32(2)])));
        let found = ArrayUpdate::of(&outlier, &update(doc! { "$pull": { "followers": { "$gt": 1 } } }, &[])).unwrap();
        assert_eq!(found.pulled, Some(None));
    }
}
