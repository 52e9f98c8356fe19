//! One statement for all hosts that refer to a source. Where references may be in arrays it is a pipeline that rebuilds them,
//! as only the document tells how many arrays are on the way.

use crate::fields::copy::CopyField;
use crate::mql::{call, call_with, cond, list, literal, object};
use crate::rule::Field;
use document::filter::Filter;
use document::op::UpdateStatement;
use document::pipeline::expr::Names;
use document::update::Update;
use document::value::path::Part;
use document::{Array, Doc, Result, Value};

/// What is done to every host of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spread<'c> {
    /// The source is there: its copy (a rule with `when_changed: keep` fills only what is empty).
    Fill(&'c Doc<'c>),
    /// `when_deleted: unset`.
    Unset,
}

impl CopyField {
    /// One statement on all hosts that refer to a key (`multi`); narrow its filter to do it in parts.
    pub(super) fn spread(&self, key: &Value<'_>, what: Spread<'_>) -> Result<UpdateStatement> {
        let update = match self.shared.is_empty() && !self.link.local.each {
            true => self.plain(what),
            false => self.rebuilding(key, what),
        };
        let mut filter = self.hosts(key);
        if self.fills_only(what) && self.shared.is_empty() && !self.link.local.each {
            let absent = object([("$exists", Value::Bool(false))]);
            let absent = crate::mql::document([(&*self.target.path.dotted(), absent)]);
            filter = filter.and(Filter::parse(&absent, &mut Names::new())?);
        }
        let update = Update::parse(&update, &[], &mut Names::new())?;
        Ok(UpdateStatement { filter, update, multi: true, upsert: false, hint: None })
    }

    /// Whether a copy that is there stays.
    fn fills_only(&self, what: Spread<'_>) -> bool {
        self.is_frozen() && matches!(what, Spread::Fill(_))
    }

    fn plain(&self, what: Spread<'_>) -> Value<'static> {
        let place = self.target.path.dotted();
        match (what, self.place.split_first()) {
            // The operator `$set` fails where null is on the way.
            (Spread::Fill(copy), Some((first, rest @ [_, ..]))) => {
                let copy = literal(Value::Document(copy.borrow()));
                let made = put_where_free(&format!("${}", first.name), rest, &copy);
                list([call("$set", object([(&*first.name, made)]))])
            }
            (Spread::Fill(copy), _) => object([("$set", object([(&*place, Value::Document(copy.borrow()))]))]),
            (Spread::Unset, _) => object([("$unset", object([(&*place, Value::Int32(1))]))]),
        }
    }

    fn rebuilding(&self, key: &Value<'_>, what: Spread<'_>) -> Value<'static> {
        let leaf = Leaf { program: self, key: literal(key.borrow()), what };
        let stage = match self.shared.split_first() {
            Some((first, rest)) => {
                let rebuilt = each_site(Value::string(format!("${}", first.name)), rest, 0, &|site| leaf.site(site));
                object([(&*first.name, rebuilt)])
            }
            None => {
                let copies = leaf.copies("$$ROOT");
                object([(&*self.target.path.dotted(), copies)])
            }
        };
        let stages: Array<'static> = std::iter::once(call("$set", stage)).collect();
        Value::Array(stages)
    }
}

/// The value `at` with `leaf` applied to every site that `shared` leads to; `depth` names the variables.
pub(super) fn each_site(
    at: Value<'static>,
    shared: &[Part],
    depth: usize,
    leaf: &dyn Fn(&str) -> Value<'static>,
) -> Value<'static> {
    let element = format!("e{depth}");
    let variable = format!("$${element}");
    let below = match shared.split_first() {
        None => leaf(&variable),
        Some((first, rest)) => {
            let inner = each_site(Value::string(format!("{variable}.{}", first.name)), rest, depth + 1, leaf);
            call_with("$mergeObjects", [Value::from(&*variable), object([(&*first.name, inner)])])
        }
    };
    let site = cond(is_object(Value::from(&*variable)), below, Value::from(&*variable));
    let mapped = object([("input", at.clone()), ("as", Value::from(&*element)), ("in", site.clone())]);
    let alone = crate::mql::with([(&*element, at.clone())], site);
    cond(call("$isArray", at), call("$map", mapped), alone)
}

pub(super) fn is_object(value: Value<'_>) -> Value<'static> {
    call_with("$eq", [call("$type", value), Value::from("object")])
}

/// A path below a variable: `$$e0.a.b`; below the whole document it is a plain path.
pub(super) fn below(variable: &str, parts: &[Part]) -> Value<'static> {
    let names: Vec<&str> = parts.iter().map(|part| &*part.name).collect();
    Value::string(format!("{variable}.{}", names.join(".")))
}

struct Leaf<'p, 'c> {
    program: &'p CopyField,
    key: Value<'static>,
    what: Spread<'c>,
}

impl Leaf<'_, '_> {
    fn new_copy(&self) -> Value<'static> {
        match self.what {
            Spread::Fill(copy) => literal(Value::Document(copy.borrow())),
            Spread::Unset => Value::Missing,
        }
    }

    /// The site with its copy as it should be.
    fn site(&self, variable: &str) -> Value<'static> {
        let program = self.program;
        if program.link.local.each {
            let gone = call_with("$eq", [call("$type", Value::from("$$c")), Value::from("missing")]);
            let changed = put(variable, &program.place, &Value::from("$$c"));
            let site = cond(gone, take(variable, &program.place), changed);
            return crate::mql::with([("c", self.copies(variable))], site);
        }
        let mut condition = call_with("$eq", [below(variable, &program.reference), self.key.clone()]);
        if program.fills_only(self.what) {
            let absent = call_with("$eq", [call("$type", below(variable, &program.place)), Value::from("missing")]);
            condition = call_with("$and", [condition, absent]);
        }
        let changed = match self.what {
            Spread::Fill(_) => put(variable, &program.place, &self.new_copy()),
            Spread::Unset => take(variable, &program.place),
        };
        cond(condition, changed, Value::from(variable))
    }

    /// The copies of a site whose reference is an array of ids, or a single one.
    fn copies(&self, variable: &str) -> Value<'static> {
        let program = self.program;
        let (ids, stored) = (below(variable, &program.reference), below(variable, &program.place));
        let at = |array: &Value<'static>| call_with("$arrayElemAt", [array.clone(), Value::from("$$i")]);
        let list_of = |value: &Value<'static>| cond(call("$isArray", value.clone()), value.clone(), list([]));
        let old = call_with("$ifNull", [at(&list_of(&stored)), Value::Null]);
        let mut mine = call_with("$eq", [at(&ids), self.key.clone()]);
        let mut single = call_with("$eq", [ids.clone(), self.key.clone()]);
        if program.fills_only(self.what) {
            mine = call_with("$and", [mine, call_with("$eq", [old.clone(), Value::Null])]);
            let absent = call_with("$eq", [call("$type", stored.clone()), Value::from("missing")]);
            single = call_with("$and", [single, absent]);
        }
        let (element, alone) = match self.what {
            Spread::Fill(_) => (self.new_copy(), self.new_copy()),
            Spread::Unset => (Value::Null, Value::from("$$REMOVE")),
        };
        let places = call_with("$range", [Value::Int32(0), call("$size", ids.clone())]);
        let each = object([("input", places), ("as", Value::from("i")), ("in", cond(mine, element, old))]);
        cond(call("$isArray", ids), call("$map", each), cond(single, alone, stored))
    }
}

/// The document in `variable` with `value` at `parts`.
fn put(variable: &str, parts: &[Part], value: &Value<'static>) -> Value<'static> {
    let Some((first, rest)) = parts.split_first() else { return value.clone() };
    let inner = match rest {
        [] => value.clone(),
        rest => put(&format!("{variable}.{}", first.name), rest, value),
    };
    let own = cond(is_object(Value::from(variable)), Value::from(variable), object([]));
    call_with("$mergeObjects", [own, object([(&*first.name, inner)])])
}

/// The same where only documents and null are on the way; else `variable` as it is.
pub(super) fn put_where_free(variable: &str, parts: &[Part], value: &Value<'static>) -> Value<'static> {
    let Some((first, rest)) = parts.split_first() else { return value.clone() };
    let inner = put_where_free(&format!("{variable}.{}", first.name), rest, value);
    let own = cond(is_object(Value::from(variable)), Value::from(variable), object([]));
    let made = call_with("$mergeObjects", [own, object([(&*first.name, inner)])]);
    let free = list(["object", "missing", "null", "undefined"].map(Value::from));
    let is_free = call_with("$in", [call("$type", Value::from(variable)), free]);
    cond(is_free, made, Value::from(variable))
}

/// The document in `variable` without what is at `parts`.
pub(super) fn take(variable: &str, parts: &[Part]) -> Value<'static> {
    let Some((first, rest)) = parts.split_first() else { return Value::from(variable).into_owned() };
    let inner = format!("{variable}.{}", first.name);
    let changed = match rest {
        [] => {
            let arguments = [("field", literal(Value::from(&*first.name))), ("input", Value::from(variable))];
            return cond(
                is_object(Value::from(variable)),
                call("$unsetField", object(arguments)),
                Value::from(variable),
            );
        }
        rest => {
            let changed = object([(&*first.name, take(&inner, rest))]);
            call_with("$mergeObjects", [Value::from(variable), changed])
        }
    };
    cond(is_object(Value::from(&*inner)), changed, Value::from(variable))
}
