//! Stages that read other collections, or run pipelines of their own, with the hex digits in them in lower case: `$lookup`,
//! `$graphLookup`, `$unionWith`, `$facet`.

use super::Digits;
use super::expression::literal_in_lower_case;
use document::{Array, Doc, DocWriter, Value};

impl Digits {
    /// `$lookup`; afterwards the digits of the other collection are known under `as`.
    pub(super) fn lookup(&mut self, spec: &Doc<'_>) -> Doc<'static> {
        let mut inside = self.of_collection(spec.get("from"));
        if let Some(Value::Document(variables)) = spec.get("let") {
            variables.iter().for_each(|(name, value)| inside.bind(name.as_str(), &value, self));
        }
        let mut writer = DocWriter::with_capacity(spec.as_bytes().len() + 16);
        for (name, value) in spec.iter() {
            let value = match (name.as_str(), &value) {
                ("pipeline", Value::Array(stages)) => Value::Array(inside.follow(stages)),
                ("let", variables) => self.expression(variables),
                _ => value.into_owned(),
            };
            writer.append(name.as_str(), &value);
        }
        self.add_joined(spec, &inside);
        writer.finish()
    }

    /// `$graphLookup`; afterwards the digits of the other collection are known under `as`.
    pub(super) fn graph_lookup(&mut self, spec: &Doc<'_>) -> Doc<'static> {
        let inside = self.of_collection(spec.get("from"));
        let connects =
            spec.get("connectToField").is_some_and(|path| path.as_str().is_some_and(|path| inside.has(path)));
        let mut writer = DocWriter::with_capacity(spec.as_bytes().len() + 16);
        for (name, value) in spec.iter() {
            let value = match (name.as_str(), &value) {
                ("restrictSearchWithMatch", Value::Document(query)) => Value::Document(inside.query(query)),
                ("startWith", constant) if connects => self.search_start(constant),
                ("startWith", expression) => self.expression(expression),
                _ => value.into_owned(),
            };
            writer.append(name.as_str(), &value);
        }
        self.add_joined(spec, &inside);
        writer.finish()
    }

    /// What a search begins with, where it is compared with digits.
    fn search_start(&self, value: &Value<'_>) -> Value<'static> {
        match value {
            Value::String(text) if text.as_str().starts_with('$') => value.clone().into_owned(),
            Value::String(_) => literal_in_lower_case(value),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.search_start(&item)).collect()),
            Value::Document(doc) if doc.contains("$literal") => {
                let mut writer = DocWriter::with_capacity(doc.as_bytes().len());
                for (name, value) in doc.iter() {
                    writer.append(name.as_str(), &literal_in_lower_case(&value));
                }
                Value::Document(writer.finish())
            }
            expression => self.expression(expression),
        }
    }

    /// `$unionWith`; afterwards digits are where both collections have them.
    pub(super) fn union_with(&mut self, spec: &Value<'_>) -> Value<'static> {
        let Value::Document(doc) = spec else {
            let inside = self.of_collection(Some(spec.clone()));
            self.keep_common(&inside);
            return spec.clone().into_owned();
        };
        let mut inside = self.of_collection(doc.get("coll"));
        let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 16);
        for (name, value) in doc.iter() {
            let value = match (name.as_str(), &value) {
                ("pipeline", Value::Array(stages)) => Value::Array(inside.follow(stages)),
                _ => value.into_owned(),
            };
            writer.append(name.as_str(), &value);
        }
        self.keep_common(&inside);
        Value::Document(writer.finish())
    }

    /// `$facet`; afterwards the digits of each pipeline are known under its name.
    pub(super) fn facets(&mut self, facets: &Doc<'_>) -> Doc<'static> {
        let mut writer = DocWriter::with_capacity(facets.as_bytes().len() + 16);
        let mut known = Vec::new();
        for (name, stages) in facets.iter() {
            let mut inside = self.clone();
            let stages = match &stages {
                Value::Array(stages) => Value::Array(inside.follow(stages)),
                other => other.clone().into_owned(),
            };
            known.extend(inside.paths.iter().map(|path| format!("{name}.{path}")));
            writer.append(name.as_str(), &stages);
        }
        self.replace(known);
        writer.finish()
    }

    /// The documents of another collection, where the variables of this pipeline are known.
    fn of_collection(&self, name: Option<Value<'_>>) -> Digits {
        let own = name.as_ref().and_then(Value::as_str);
        let found = self.others.iter().find(|(other, _)| own == Some(other.as_str()));
        let (variables, constants) = (self.variables.clone(), self.constants.clone());
        let of = found.map_or_else(Digits::none, |(_, digits)| digits.clone());
        Digits { variables, constants, others: self.others.clone(), ..of }
    }

    fn add_joined(&mut self, spec: &Doc<'_>, inside: &Digits) {
        let into = spec.get("as");
        let Some(into) = into.as_ref().and_then(Value::as_str) else { return };
        self.forget(into);
        self.paths.extend(inside.paths.iter().map(|path| format!("{into}.{path}")));
        self.both |= inside.both;
    }

    fn keep_common(&mut self, inside: &Digits) {
        self.paths.retain(|path| inside.has(path));
        self.of_id.retain(|field| inside.of_id.contains(field));
        self.both |= inside.both;
    }

    /// The same where the variables of a command are known.
    pub(crate) fn with_let(mut self, variables: &Doc<'_>) -> Digits {
        let outside = Digits::none();
        variables.iter().for_each(|(name, value)| self.bind(name.as_str(), &value, &outside));
        self
    }

    /// A pipeline in lower case. Returns `None` if it says the same already.
    pub(crate) fn changed(&self, stages: &Array<'_>) -> Option<Array<'static>> {
        let lower = self.stages(stages);
        (lower.as_bytes() != stages.as_bytes()).then_some(lower)
    }
}
