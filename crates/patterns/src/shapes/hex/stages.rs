//! Pipelines of clients with the hex digits in them in lower case: a series is followed from stage to stage, under the names
//! that `$group`, `$project` and `$set` give it, as long as a stage says plainly what becomes of it.

use crate::mql::call;
use crate::shapes::hex::Digits;
use crate::shapes::hex::expression::literal_in_lower_case;
use document::{Array, Doc, DocWriter, Value};

impl Digits {
    pub(crate) fn stages(&self, stages: &Array<'_>) -> Array<'static> {
        self.clone().follow(stages)
    }

    /// The stages, rewritten; afterwards `self` knows where the digits are behind them.
    pub(super) fn follow(&mut self, stages: &Array<'_>) -> Array<'static> {
        stages.iter().map(|stage| self.stage(&stage)).collect()
    }

    /// One stage, rewritten; afterwards `self` knows where the digits are behind it.
    fn stage(&mut self, stage: &Value<'_>) -> Value<'static> {
        let Value::Document(doc) = stage else { return stage.clone().into_owned() };
        let mut fields = doc.iter();
        // What is no stage is for others to refuse.
        let (Some((name, spec)), None) = (fields.next(), fields.next()) else { return stage.clone().into_owned() };
        let name = name.as_str();
        let rewritten = match (name, &spec) {
            _ if self.is_idle() => return stage.clone().into_owned(),
            ("$lookup", Value::Document(spec)) => return call(name, Value::Document(self.lookup(spec))),
            ("$graphLookup", Value::Document(spec)) => return call(name, Value::Document(self.graph_lookup(spec))),
            ("$unionWith", spec) => return call(name, self.union_with(spec)),
            ("$facet", Value::Document(facets)) => return call(name, Value::Document(self.facets(facets))),
            ("$match", Value::Document(query)) => Value::Document(self.query(query)),
            ("$bucket", Value::Document(spec)) if self.groups(spec) => Value::Document(self.boundaries(spec)),
            // What is inside speaks of other documents.
            ("$merge" | "$out", spec) => spec.clone().into_owned(),
            (_, spec) => self.expression(spec),
        };
        match (name, &spec) {
            ("$match" | "$sort" | "$limit" | "$skip" | "$sample" | "$unwind" | "$redact", _) => {}
            ("$set" | "$addFields", Value::Document(fields)) => self.set(fields),
            ("$project", Value::Document(fields)) => self.project(fields),
            ("$group", Value::Document(fields)) => self.group(fields),
            ("$unset", Value::String(path)) => self.forget(path.as_str()),
            ("$unset", Value::Array(paths)) => {
                paths.iter().filter_map(|path| path.as_str().map(str::to_owned)).for_each(|path| self.forget(&path));
            }
            ("$sortByCount", Value::String(path)) if self.is_path(path.as_str()) => {
                self.replace(vec!["_id".to_owned()])
            }
            ("$bucket", Value::Document(spec)) if self.groups(spec) => self.replace(vec!["_id".to_owned()]),
            ("$bucketAuto", Value::Document(spec)) if self.groups(spec) => {
                self.replace(vec!["_id.min".to_owned(), "_id.max".to_owned()]);
            }
            _ => self.replace(Vec::new()),
        }
        call(name, rewritten)
    }

    /// Whether `$bucket` groups by the digits.
    fn groups(&self, spec: &Doc<'_>) -> bool {
        spec.get("groupBy").is_some_and(|by| by.as_str().is_some_and(|path| self.is_path(path)))
    }

    fn boundaries(&self, spec: &Doc<'_>) -> Doc<'static> {
        let mut writer = DocWriter::with_capacity(spec.as_bytes().len());
        for (name, value) in spec.iter() {
            let value = match name.as_str() {
                "boundaries" => literal_in_lower_case(&value),
                _ => self.expression(&value),
            };
            writer.append(name.as_str(), &value);
        }
        writer.finish()
    }

    /// From now on the digits are in these paths and no others.
    pub(super) fn replace(&mut self, paths: Vec<String>) {
        self.paths = paths;
        self.of_id.clear();
    }

    /// A path holds something else now.
    pub(super) fn forget(&mut self, path: &str) {
        self.paths.retain(|own| !is_within(own, path));
        if path == "_id" || path.starts_with("_id.") {
            self.of_id.clear();
        }
    }

    fn set(&mut self, fields: &Doc<'_>) {
        let mut named: Vec<String> = Vec::new();
        for (name, value) in fields.iter() {
            self.names(name.as_str(), &value, &mut named);
        }
        fields.iter().for_each(|(name, _)| self.forget(name.as_str()));
        self.paths.extend(named);
    }

    fn project(&mut self, fields: &Doc<'_>) {
        let is_switch = |value: &Value<'_>| value.is_number() || matches!(value, Value::Bool(_));
        let excludes =
            fields.iter().any(|(name, value)| name.as_str() != "_id" && is_switch(&value) && !value.is_truthy())
                || fields.iter().all(|(name, value)| name.as_str() == "_id" && is_switch(&value) && !value.is_truthy());
        if excludes {
            fields.iter().filter(|(_, value)| !value.is_truthy()).for_each(|(name, _)| self.forget(name.as_str()));
            return;
        }
        let mut kept: Vec<String> = Vec::new();
        for (name, value) in fields.iter() {
            match is_switch(&value) && value.is_truthy() {
                true => kept.extend(self.paths.iter().filter(|own| is_within(own, name.as_str())).cloned()),
                false => self.names(name.as_str(), &value, &mut kept),
            }
        }
        let of_id = match fields.contains("_id") {
            true => Vec::new(),
            false => std::mem::take(&mut self.of_id),
        };
        kept.extend(of_id.iter().map(|field| format!("_id.{field}")));
        self.replace(kept);
        self.of_id = of_id;
    }

    fn group(&mut self, fields: &Doc<'_>) {
        let mut named: Vec<String> = Vec::new();
        for (name, value) in fields.iter() {
            let value = match &value {
                Value::Document(fold) if name.as_str() != "_id" => {
                    let first = fold.iter().next();
                    let is_one =
                        |name: &str| matches!(name, "$first" | "$last" | "$min" | "$max" | "$addToSet" | "$push");
                    match first.filter(|(name, _)| is_one(name.as_str())) {
                        Some((_, argument)) => argument.into_owned(),
                        None => continue,
                    }
                }
                value => value.clone().into_owned(),
            };
            self.names(name.as_str(), &value, &mut named);
        }
        self.replace(named);
    }

    /// Notes under which names an expression gives the digits: `"$key"`, or a document with such fields.
    fn names(&self, name: &str, value: &Value<'_>, named: &mut Vec<String>) {
        match value {
            Value::String(text) if self.is_path(text.as_str()) => named.push(name.to_owned()),
            Value::Document(doc) => {
                for (field, value) in doc.iter().filter(|(field, _)| !field.as_str().starts_with('$')) {
                    self.names(&format!("{name}.{}", field.as_str()), &value, named);
                }
            }
            _ => {}
        }
    }
}

fn is_within(path: &str, of: &str) -> bool {
    path == of || path.strip_prefix(of).is_some_and(|rest| rest.starts_with('.'))
}
