//! The walk over a command that finds its shape. What it meets is told to a visitor, so that fingerprint and description agree.
//!
//! The bytes may come from outside and need not be valid: depth and number of words are bounded, and torn elements end a list.

use crate::raw::{Array, Doc, Text};
use crate::value::Value;
use smallvec::SmallVec;

/// How deep a shape goes.
const DEPTH: u32 = 12;

/// How many words a shape has at most.
const WORDS: u32 = 200;

/// Of a list of alternatives (`$or`, a pipeline's stages, an array of expressions) so many are looked at.
const ALTERNATIVES: usize = 40;

/// A command whose shape is wanted.
#[derive(Clone, Debug)]
pub struct Command<'a> {
    /// The first field: the command's name, and the collection.
    pub name: Text<'a>,
    pub collection: Text<'a>,
    pub body: Doc<'a>,
    /// The first statement of a write, where it is not in the body.
    pub statement: Option<Doc<'a>>,
}

/// What a command says, found in one pass, in the order of shapes.
#[derive(Default)]
pub struct Statement<'a> {
    filter: Option<Doc<'a>>,
    sort: Option<Doc<'a>>,
    projection: Option<Doc<'a>>,
    pipeline: Option<Array<'a>>,
    key: Option<Value<'a>>,
    change: Option<Value<'a>>,
    removes: bool,
}

/// Who is told about a shape.
pub(super) trait Visit {
    fn list(&mut self, name: &str);
    fn document(&mut self, name: &str);
    fn end(&mut self);
    /// Words that belong together; `name` is empty in a list.
    fn words(&mut self, name: &str, words: &[&str]);
}

impl<'a> Statement<'a> {
    pub fn of(command: &Command<'a>) -> Statement<'a> {
        let mut found = Statement::default();
        let takes_key = command.name.as_str() == "distinct";
        for (name, value) in command.body.iter().skip(1) {
            match (name.as_str(), value) {
                ("filter" | "query", Value::Document(doc)) => found.filter = Some(doc),
                ("sort", Value::Document(doc)) => found.sort = Some(doc),
                ("projection" | "fields", Value::Document(doc)) => found.projection = Some(doc),
                ("pipeline", Value::Array(stages)) => found.pipeline = Some(stages),
                ("key", value) if takes_key => found.key = Some(value),
                ("update", value) => found.change = Some(value),
                ("remove", value) => found.removes = value.is_truthy(),
                ("updates" | "deletes", Value::Array(statements)) => {
                    if let Some(Value::Document(statement)) = statements.get(0) {
                        found.take(&statement);
                    }
                }
                // Of a profiler's entry or a line of the log, which are about one statement.
                ("q", Value::Document(doc)) => found.filter = Some(doc),
                ("u", value) => found.change = Some(value),
                _ => {}
            }
        }
        if let Some(statement) = &command.statement {
            found.take(statement);
        }
        found
    }

    fn take(&mut self, statement: &Doc<'a>) {
        for (name, value) in statement.iter() {
            match (name.as_str(), value) {
                ("q", Value::Document(doc)) => self.filter = Some(doc),
                ("u", value) => self.change = Some(value),
                _ => {}
            }
        }
    }

    /// The filter, or the first `$match` of a pipeline.
    pub fn leading_filter(&self) -> Option<Doc<'a>> {
        if self.filter.is_some() {
            return self.filter.clone();
        }
        let Some(Value::Document(stage)) = self.pipeline.as_ref()?.get(0) else { return None };
        match stage.iter().next()? {
            (name, Value::Document(filter)) if name.as_str() == "$match" => Some(filter),
            _ => None,
        }
    }
}

/// Tells the whole shape.
pub(super) fn walk(db: &str, command: &Command<'_>, statement: &Statement<'_>, visit: &mut impl Visit) {
    visit.words("ns", &[db, command.collection.as_str()]);
    visit.words("command", &[command.name.as_str()]);
    let mut walk = Walk { visit, left: WORDS };
    if let Some(key) = statement.key.as_ref().and_then(Value::as_str) {
        walk.words("key", &[key]);
    }
    if let Some(filter) = statement.filter.as_ref().filter(|filter| !filter.is_empty()) {
        walk.filter("filter", filter);
    }
    if let Some(sort) = statement.sort.as_ref().filter(|sort| !sort.is_empty()) {
        walk.sort("sort", sort);
    }
    if let Some(projection) = statement.projection.as_ref().filter(|projection| !projection.is_empty()) {
        walk.projection("projection", projection);
    }
    if let Some(stages) = &statement.pipeline {
        walk.stages("stages", stages, DEPTH);
    }
    if statement.removes {
        walk.words("removes", &["true"]);
    }
    if let Some(change) = &statement.change {
        walk.change(change);
    }
}

struct Walk<'v, V> {
    visit: &'v mut V,
    left: u32,
}

impl<V: Visit> Walk<'_, V> {
    fn words(&mut self, name: &str, words: &[&str]) {
        if self.left > 0 {
            self.left -= 1;
            self.visit.words(name, words);
        }
    }

    fn filter(&mut self, name: &str, filter: &Doc<'_>) {
        self.visit.list(name);
        self.conditions(filter, DEPTH);
        self.visit.end();
    }

    /// One entry for each path and operator: `customerId $eq`. Alternatives stand beside each other.
    fn conditions(&mut self, filter: &Doc<'_>, depth: u32) {
        if depth == 0 {
            return;
        }
        for (name, value) in filter.iter() {
            match (name.as_str(), &value) {
                ("$and" | "$or" | "$nor", Value::Array(parts)) => {
                    for part in parts.iter().take(ALTERNATIVES) {
                        if let Value::Document(part) = part {
                            self.conditions(&part, depth - 1);
                        }
                    }
                }
                ("$comment", _) => {}
                (operator, value) if operator.starts_with('$') => self.expression("", &[operator], value),
                (path, Value::Document(operators)) if starts_with_operator(operators) => {
                    for (operator, _) in operators.iter() {
                        // The flags of a regular expression are a part of it.
                        if operator.as_str() != "$options" {
                            self.words("", &[path, operator.as_str()]);
                        }
                    }
                }
                (path, Value::Regex { .. }) => self.words("", &[path, "$regex"]),
                (path, _) => self.words("", &[path, "$eq"]),
            }
        }
    }

    fn sort(&mut self, name: &str, sort: &Doc<'_>) {
        self.visit.list(name);
        for (path, direction) in sort.iter() {
            let direction = match direction.as_number() {
                Some(number) if number.to_i64_saturated() < 0 => "-1",
                Some(_) => "1",
                None => "$meta",
            };
            self.words("", &[path.as_str(), direction]);
        }
        self.visit.end();
    }

    /// One entry for each path: `name` is given, `name 0` is not, `name $slice` and `name $customer.name` are computed.
    fn projection(&mut self, name: &str, fields: &Doc<'_>) {
        let chooses = matches!(name, "projection" | "$project");
        self.visit.list(name);
        for (path, value) in fields.iter() {
            let path = path.as_str();
            match &value {
                Value::Document(_) | Value::Array(_) | Value::String(_) => self.expression("", &[path], &value),
                // What a stage sets is a value.
                value if chooses && !value.is_truthy() => self.words("", &[path, "0"]),
                _ => self.words("", &[path]),
            }
        }
        self.visit.end();
    }

    fn stages(&mut self, name: &str, stages: &Array<'_>, depth: u32) {
        self.visit.list(name);
        if depth > 0 {
            for stage in stages.iter().take(ALTERNATIVES) {
                if let Value::Document(stage) = stage
                    && let Some((name, argument)) = stage.iter().next()
                {
                    self.stage(name.as_str(), &argument, depth - 1);
                }
            }
        }
        self.visit.end();
    }

    fn stage(&mut self, name: &str, argument: &Value<'_>, depth: u32) {
        if self.left == 0 {
            return;
        }
        self.visit.document("");
        match (name, argument) {
            ("$match", Value::Document(filter)) => self.filter(name, filter),
            ("$sort", Value::Document(sort)) => self.sort(name, sort),
            ("$lookup" | "$graphLookup", Value::Document(spec)) => self.lookup(name, spec, depth),
            ("$unionWith", Value::Document(spec)) => self.lookup(name, spec, depth),
            ("$group", Value::Document(spec)) => self.group(name, spec),
            ("$facet", Value::Document(facets)) => {
                self.visit.document(name);
                for (name, stages) in facets.iter().take(ALTERNATIVES) {
                    if let Value::Array(stages) = stages {
                        self.stages(name.as_str(), &stages, depth);
                    }
                }
                self.visit.end();
            }
            ("$project" | "$addFields" | "$set", Value::Document(fields)) => self.projection(name, fields),
            // Numbers are values, texts are paths or collections.
            ("$limit" | "$skip" | "$sample" | "$documents", _) => self.words(name, &[]),
            (_, Value::String(text)) => self.words(name, &[text.as_str()]),
            (_, Value::Document(spec)) => self.specification(name, spec),
            _ => self.words(name, &[]),
        }
        self.visit.end();
    }

    fn lookup(&mut self, name: &str, spec: &Doc<'_>, depth: u32) {
        self.visit.document(name);
        for (name, value) in spec.iter() {
            match (name.as_str(), &value) {
                ("pipeline", Value::Array(stages)) => self.stages("stages", stages, depth),
                ("let", Value::Document(variables)) => {
                    self.visit.list("let");
                    for (variable, expression) in variables.iter() {
                        self.expression("", &[variable.as_str()], &expression);
                    }
                    self.visit.end();
                }
                ("restrictSearchWithMatch", Value::Document(filter)) => self.filter(name.as_str(), filter),
                (name, Value::String(text)) => self.words(name, &[text.as_str()]),
                _ => {}
            }
        }
        self.visit.end();
    }

    /// `by`: the keys, one entry each; `fold`: what is computed of a group.
    fn group(&mut self, name: &str, spec: &Doc<'_>) {
        self.visit.document(name);
        self.visit.list("by");
        match spec.get("_id") {
            Some(Value::Document(keys)) if !starts_with_operator(&keys) => {
                for (_, key) in keys.iter() {
                    self.expression("", &[], &key);
                }
            }
            Some(Value::Document(key)) => self.expression("", &[], &Value::Document(key)),
            Some(Value::String(path)) => self.words("", &[path.as_str()]),
            _ => {}
        }
        self.visit.end();
        self.visit.list("fold");
        for (name, accumulator) in spec.iter().filter(|(name, _)| name.as_str() != "_id") {
            self.expression("", &[name.as_str()], &accumulator);
        }
        self.visit.end();
        self.visit.end();
    }

    /// Any other stage: its texts, which name paths and collections.
    fn specification(&mut self, name: &str, spec: &Doc<'_>) {
        self.visit.document(name);
        for (name, value) in spec.iter() {
            match &value {
                Value::String(text) => self.words(name.as_str(), &[text.as_str()]),
                Value::Document(_) | Value::Array(_) => self.expression(name.as_str(), &[], &value),
                _ => self.words(name.as_str(), &[]),
            }
        }
        self.visit.end();
    }

    /// An update: `price $set`, one entry for each path, or `replaced`.
    fn change(&mut self, change: &Value<'_>) {
        self.visit.list("changes");
        match change {
            Value::Document(change) if starts_with_operator(change) => {
                for (operator, paths) in change.iter() {
                    self.changed_paths(operator.as_str(), &paths);
                }
            }
            Value::Array(stages) => {
                for stage in stages.iter().take(ALTERNATIVES) {
                    if let Value::Document(stage) = stage
                        && let Some((operator, paths)) = stage.iter().next()
                    {
                        self.changed_paths(operator.as_str(), &paths);
                    }
                }
            }
            Value::Document(_) => self.words("", &["replaced"]),
            _ => {}
        }
        self.visit.end();
    }

    fn changed_paths(&mut self, operator: &str, paths: &Value<'_>) {
        match paths {
            Value::Document(paths) => {
                for (path, _) in paths.iter() {
                    self.words("", &[path.as_str(), operator]);
                }
            }
            Value::String(path) => self.words("", &[path.as_str(), operator]),
            _ => self.words("", &[operator]),
        }
    }

    /// The operators and paths of an expression in the order in which they stand, in one entry; `?` stands for a value.
    fn expression(&mut self, name: &str, first: &[&str], expression: &Value<'_>) {
        let mut texts = SmallVec::<[Text<'_>; 12]>::new();
        flatten(expression, DEPTH, &mut texts);
        let mut words: SmallVec<[&str; 16]> = first.iter().copied().collect();
        words.extend(texts.iter().map(Text::as_str));
        self.words(name, &words);
    }
}

fn flatten<'a>(expression: &Value<'a>, depth: u32, texts: &mut SmallVec<[Text<'a>; 12]>) {
    let value = || Text::borrowed("?");
    if depth == 0 || texts.len() >= 12 {
        return;
    }
    match expression {
        Value::String(text) if text.as_str().starts_with('$') => texts.push(text.clone()),
        Value::Document(doc) => {
            for (name, inner) in doc.iter() {
                if name.as_str() == "$literal" {
                    texts.push(value());
                    continue;
                }
                if name.as_str().starts_with('$') {
                    texts.push(name);
                }
                flatten(&inner, depth - 1, texts);
            }
        }
        Value::Array(items) => items.iter().take(ALTERNATIVES).for_each(|item| flatten(&item, depth - 1, texts)),
        _ => texts.push(value()),
    }
}

fn starts_with_operator(doc: &Doc<'_>) -> bool {
    doc.iter().next().is_some_and(|(name, _)| name.as_str().starts_with('$'))
}
