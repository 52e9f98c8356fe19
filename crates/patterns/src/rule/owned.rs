//! The paths of a host that belong to rules, and what a client's update says about them (SEMANTICS R11).

use crate::rule::{Kind, Rule};
use document::pipeline::expr::Names;
use document::update::Update;
use document::value::Path;
use document::{Array, Code, Doc, DocWriter, Error, Result, Value};

/// The sub-document of a host that holds the state of sums and averages.
pub const STATE: &str = "_pleach";

/// `_pleach.<field>`: where a host keeps what a field's value is computed from.
pub fn state_path(field: &Path) -> Path {
    Path::new(&format!("{STATE}.{field}"))
}

impl Rule {
    /// The rule's field, the array that it lifts and, for a sum or an average, its state.
    pub fn owned(&self) -> Vec<Path> {
        let lifted = || self.lift.clone().filter(|_| !self.lifts_own_field());
        match (self.kept_field(), self.outlier()) {
            (Some(_), _) => [self.field.clone()].into_iter().chain(lifted()).chain(self.state_path()).collect(),
            (None, Some(outlier)) => outlier.owned(),
            (None, None) => Vec::new(),
        }
    }

    /// `_pleach.<field>`, if the rule has state.
    pub fn state_path(&self) -> Option<Path> {
        self.kept_field().and_then(|field| field.state().cloned())
    }

    /// What it keeps, in a few words: `count of reviews by productId`.
    pub fn described(&self) -> String {
        match &self.kind {
            Kind::Field(field) => field.describe(),
            Kind::Shape(shape) => shape.describe(),
            Kind::Constraint(constraint) => constraint.describe(),
            Kind::Outlier(outlier) => format!("items in {}", outlier.overflow.collection),
            Kind::Lens(lens) => format!("documents of {} versions", lens.newest()),
        }
    }

    /// The error for a client that writes to an owned path.
    pub fn refusal(&self, path: &Path) -> Error {
        let instead = match (self.kept_field(), self.outlier()) {
            (Some(field), _) => field.instead(),
            (None, Some(outlier)) => format!("write to '{}' instead", outlier.field),
            (None, None) => format!("write to {} instead", self.host.collection),
        };
        let message = format!("'{path}' is kept by rule {} ({}); {instead}", self.name, self.described());
        Error::new(Code::ImmutableField, message)
    }
}

/// The first of `owned` that an update names: by an operator or in a stage of a pipeline. A replacement names nothing, nor does
/// writing what an owned path lies in (`items` beside `items.product`): Pleach puts its own value back.
pub fn owned_by_update<'o>(update: &Update, owned: &'o [Path]) -> Option<&'o Path> {
    let mut found = None;
    update.each_named_path(&mut |named| {
        found = found.or_else(|| owned.iter().find(|path| leads(path, named) == Some(Leads::Into)));
    });
    found
}

/// Whether an update may change something at one of `paths`: what it names leads to one or lies in one, or it may make
/// another document altogether.
pub fn touched_by_update(update: &Update, paths: &[Path]) -> bool {
    let mut touched = update.replaces();
    update.each_named_path(&mut |named| touched |= paths.iter().any(|path| leads(path, named).is_some()));
    touched
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leads {
    /// The named path is the owned one or lies in it.
    Into,
    /// The owned path lies in the named one.
    Above,
}

/// How a path that an update names relates to an owned one: positions (`0`, `$`, `$[]`, `$[id]`) are steps into arrays, which owned
/// paths do not show.
fn leads(owned: &Path, named: &str) -> Option<Leads> {
    let mut parts = owned.parts.iter().peekable();
    for step in named.split('.') {
        match parts.peek() {
            None => return Some(Leads::Into),
            Some(part) if &*part.name == step => {
                parts.next();
            }
            Some(_) if is_position(step) => {}
            Some(_) => return None,
        }
    }
    Some(if parts.peek().is_none() { Leads::Into } else { Leads::Above })
}

fn is_position(step: &str) -> bool {
    step.starts_with('$') || !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit())
}

/// The update without what it says about `owned` (`client_writes: ignore`); `None` if nothing is left of it.
pub fn without_owned(update: &Update, owned: &[Path]) -> Result<Option<Update>> {
    let is_owned = |named: &str| owned.iter().any(|path| leads(path, named) == Some(Leads::Into));
    let rest = match &update.source {
        Value::Document(_) if update.is_replacement() => return Ok(Some(update.clone())),
        Value::Document(operators) => {
            let rest = operators_without(operators, &is_owned);
            if rest.is_empty() {
                return Ok(None);
            }
            Value::Document(rest)
        }
        Value::Array(stages) => {
            let rest: Vec<Value<'static>> =
                stages.iter().filter_map(|stage| stage_without(&stage, &is_owned)).collect();
            if rest.is_empty() {
                return Ok(None);
            }
            Value::Array(rest.into_iter().collect())
        }
        other => other.clone(),
    };
    let mut names = Names::new();
    for (name, value) in update.constants.iter().flat_map(|constants| constants.iter()) {
        names.bind_constant(name.as_str(), value.into_owned());
    }
    let used = |filter: &Doc<'static>| filter_is_used(filter, &rest);
    let filters: Vec<Doc<'static>> = update.array_filters.iter().filter(|filter| used(filter)).cloned().collect();
    let mut rest = Update::parse(&rest, &filters, &mut names)?;
    rest.constants.clone_from(&update.constants);
    Ok(Some(rest))
}

fn operators_without(operators: &Doc<'_>, is_owned: &dyn Fn(&str) -> bool) -> Doc<'static> {
    let mut rest = DocWriter::new();
    for (operator, fields) in operators.iter() {
        let Value::Document(fields) = fields else { continue };
        let mut kept = DocWriter::new();
        for (path, argument) in fields.iter() {
            let target = (operator.as_str() == "$rename").then(|| argument.as_str()).flatten();
            if !is_owned(path.as_str()) && !target.is_some_and(is_owned) {
                kept.append(path.as_str(), &argument);
            }
        }
        let kept = kept.finish();
        if !kept.is_empty() {
            rest.append(operator.as_str(), &Value::Document(kept));
        }
    }
    rest.finish()
}

/// The stage without owned fields; `None` if it does nothing else.
fn stage_without(stage: &Value<'_>, is_owned: &dyn Fn(&str) -> bool) -> Option<Value<'static>> {
    let Value::Document(doc) = stage else { return Some(stage.clone().into_owned()) };
    let (name, argument) = doc.iter().next()?;
    let rest = match (name.as_str(), &argument) {
        ("$set" | "$addFields" | "$project", Value::Document(fields)) => {
            let rest = fields_without(fields, "", is_owned);
            (!rest.is_empty()).then_some(Value::Document(rest))
        }
        ("$unset", Value::Array(paths)) => {
            let kept: Array<'static> = paths.iter().filter(|path| !path.as_str().is_some_and(is_owned)).collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        ("$unset", path) => (!path.as_str().is_some_and(is_owned)).then(|| path.clone().into_owned()),
        (_, other) => Some(other.clone().into_owned()),
    };
    rest.map(|rest| crate::mql::object([(name.as_str(), rest)]))
}

fn fields_without(fields: &Doc<'_>, above: &str, is_owned: &dyn Fn(&str) -> bool) -> Doc<'static> {
    let mut rest = DocWriter::new();
    for (name, value) in fields.iter() {
        let path = if above.is_empty() { name.as_str().to_owned() } else { format!("{above}.{name}") };
        match &value {
            _ if is_owned(&path) => {}
            Value::Document(inner) if inner.iter().next().is_some_and(|(name, _)| !name.as_str().starts_with('$')) => {
                let inner = fields_without(inner, &path, is_owned);
                if !inner.is_empty() {
                    rest.append(name.as_str(), &Value::Document(inner));
                }
            }
            value => {
                rest.append(name.as_str(), value);
            }
        }
    }
    rest.finish()
}

/// Whether some path still uses the array filter: unused ones are an error.
fn filter_is_used(filter: &Doc<'_>, update: &Value<'_>) -> bool {
    let Value::Document(operators) = update else { return false };
    let Some(identifier) = identifier(filter) else { return true };
    let step = format!("$[{identifier}]");
    let names = |fields: Value<'_>| match fields {
        Value::Document(fields) => fields.iter().any(|(path, _)| path.as_str().split('.').any(|part| part == step)),
        _ => false,
    };
    operators.iter().any(|(_, fields)| names(fields))
}

/// The identifier of an array filter: the first name in it that is no operator.
fn identifier(filter: &Doc<'_>) -> Option<String> {
    filter.iter().find_map(|(name, value)| match (name.as_str().starts_with('$'), value) {
        (false, _) => name.as_str().split('.').next().map(str::to_owned),
        (true, Value::Array(list)) => list.iter().find_map(|item| match item {
            Value::Document(inner) => identifier(&inner),
            _ => None,
        }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Tally;
    use crate::fields::testing::{rule, tally};
    use bson::{Bson, bson};

    fn update(spec: Bson) -> Update {
        Update::parse(&Value::from(spec), &[], &mut Names::new()).unwrap()
    }

    #[track_caller]
    fn check(spec: Bson, expected: Option<&str>) {
        let owned =
            [Path::new("reviewCount"), Path::new("stats.avg"), Path::new("items.product"), Path::new("_pleach.x")];
        let found = owned_by_update(&update(spec.clone()), &owned);
        assert_eq!(found.map(Path::dotted).as_deref(), expected, "{spec}");
    }

    #[test]
    fn operators_and_stages_that_name_an_owned_path_are_found() {
        check(bson!({ "$set": { "name": 1 } }), None);
        check(bson!({ "$set": { "name": 1, "reviewCount": 1 } }), Some("reviewCount"));
        check(bson!({ "$inc": { "reviewCount": 1 } }), Some("reviewCount"));
        check(bson!({ "$set": { "reviewCounts": 1 } }), None);
        check(bson!({ "$set": { "stats": { "avg": 1 } } }), None);
        check(bson!({ "$set": { "stats.avg.deep": 1 } }), Some("stats.avg"));
        check(bson!({ "$unset": { "stats.other": 1 } }), None);
        check(bson!({ "$rename": { "reviewCount": "x" } }), Some("reviewCount"));
        check(bson!({ "$rename": { "x": "reviewCount" } }), Some("reviewCount"));
        check(bson!({ "$setOnInsert": { "reviewCount": 1 } }), Some("reviewCount"));
        check(bson!({ "$push": { "items": { "productId": 1 } } }), None);
        check(bson!({ "$set": { "items.0.product": 1 } }), Some("items.product"));
        check(bson!({ "$set": { "items.$.product.name": 1 } }), Some("items.product"));
        check(bson!({ "$set": { "items.$[].product": 1 } }), Some("items.product"));
        check(bson!({ "$set": { "items.0.productId": 1 } }), None);
        check(bson!({ "$unset": { "_pleach": 1 } }), None);
        check(bson!({ "$set": { "_pleach.x.sum": 1 } }), Some("_pleach.x"));
        check(bson!({ "reviewCount": 5 }), None);
        check(bson!([{ "$set": { "reviewCount": 1 } }]), Some("reviewCount"));
        check(bson!([{ "$set": { "stats": { "avg": 1 } } }]), Some("stats.avg"));
        check(bson!([{ "$set": { "stats": { "$literal": { "avg": 1 } } } }]), None);
        check(bson!([{ "$addFields": { "x": "$reviewCount" } }]), None);
        check(bson!([{ "$unset": "reviewCount" }]), Some("reviewCount"));
        check(bson!([{ "$unset": ["a", "stats.avg"] }]), Some("stats.avg"));
        check(bson!([{ "$project": { "reviewCount": 1, "a": 1 } }]), None);
        check(bson!([{ "$project": { "reviewCount": 0 } }]), Some("reviewCount"));
        check(bson!([{ "$project": { "reviewCount": "$a" } }]), Some("reviewCount"));
        check(bson!([{ "$replaceWith": { "reviewCount": 1 } }]), None);
    }

    #[test]
    fn what_is_above_an_owned_path_touches_it() {
        let paths = [Path::new("a.b")];
        for (spec, expected) in [
            (bson!({ "$set": { "a": 1 } }), true),
            (bson!({ "$set": { "a.b.c": 1 } }), true),
            (bson!({ "$set": { "a.0.b": 1 } }), true),
            (bson!({ "$set": { "a.c": 1 } }), false),
            (bson!({ "x": 1 }), true),
            (bson!([{ "$set": { "a": 1 } }]), true),
            (bson!([{ "$set": { "x": "$a.b" } }]), false),
            (bson!([{ "$replaceWith": "$x" }]), true),
        ] {
            assert_eq!(touched_by_update(&update(spec.clone()), &paths), expected, "{spec}");
        }
    }

    #[test]
    fn owned_paths_can_be_left_out() {
        let owned = [Path::new("n"), Path::new("s.avg")];
        for (spec, expected) in [
            (bson!({ "$set": { "n": 1, "a": 1 }, "$inc": { "s.avg": 1 } }), Some(bson!({ "$set": { "a": 1 } }))),
            (bson!({ "$inc": { "n": 1 } }), None),
            (bson!({ "$rename": { "a": "n" } }), None),
            (bson!({ "n": 1 }), Some(bson!({ "n": 1 }))),
            (bson!([{ "$set": { "n": 1 } }, { "$unset": ["a", "n"] }]), Some(bson!([{ "$unset": ["a"] }]))),
            (
                bson!([{ "$set": { "s": { "avg": 1, "x": 1 }, "n": "$a" } }]),
                Some(bson!([{ "$set": { "s": { "x": 1 } } }])),
            ),
        ] {
            let rest = without_owned(&update(spec.clone()), &owned).unwrap().map(|update| update.source);
            assert_eq!(rest, expected.map(Value::from), "{spec}");
        }
        let spec = Value::from(bson!({ "$set": { "n.$[x].a": 1, "b.$[y]": 1 } }));
        let filters = [bson::doc! { "x": 1 }, bson::doc! { "y.z": 1 }].map(Doc::from);
        let both = Update::parse(&spec, &filters, &mut Names::new()).unwrap();
        let rest = without_owned(&both, &owned).unwrap().unwrap();
        assert_eq!(rest.array_filters, [Doc::from(bson::doc! { "y.z": 1 })]);
    }

    #[test]
    fn the_refusal_says_what_to_write_instead() {
        let rule = rule(tally("reviewCount", Tally::Count, |_| {}));
        let error = rule.refusal(&rule.field);
        assert_eq!(error.code(), Code::ImmutableField);
        assert_eq!(
            error.message(),
            "'reviewCount' is kept by rule products.reviewCount (count of reviews by productId); write to reviews instead"
        );
        let rule = self::rule(tally("avgRating", Tally::Avg(Path::new("rating")), |_| {}));
        assert_eq!(rule.described(), "avg of rating from reviews by productId");
        assert_eq!(rule.owned(), [Path::new("avgRating"), Path::new("_pleach.avgRating")]);
    }
}
