//! Random documents, indexes and commands: few names and values, so that things meet.

use bson::{Bson, Document, doc};

use super::literal;
use super::template::Templates;
use crate::random::Random;

const UNITS: &[&str] = &["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"];
const TYPES: &[&str] =
    &["number", "string", "array", "object", "null", "int", "double", "bool", "date", "long", "decimal"];
const PATHS: &[&str] = &[
    "a", "b", "c", "n", "s", "t", "d", "o", "a.b", "a.a", "a.0", "c.a", "c.b", "t.0", "t.1", "o.a", "o.b.a", "c.0.a",
    "_id", "a.b.c",
];

/// A source of everything that a trial is made of.
pub(super) struct Generator {
    pub(super) random: Random,
    templates: Templates,
    /// Values that are in the documents.
    pub(super) pool: Vec<Bson>,
    /// How deep the thing being made is already.
    depth: usize,
    /// Whether `$$this` may be used here.
    this: bool,
}

impl Generator {
    pub(super) fn new(random: Random) -> Self {
        Self { random, templates: Templates::load(), pool: Vec::new(), depth: 0, this: false }
    }

    pub(super) fn documents(&mut self) -> Vec<Document> {
        let ids = (1..=self.random.below(8) + 1).filter_map(|id| i32::try_from(id).ok());
        let documents: Vec<Document> = ids.map(|id| self.document(id)).collect();
        documents.iter().flat_map(Document::values).for_each(|value| literal::collect(value, &mut self.pool));
        documents
    }

    fn document(&mut self, id: i32) -> Document {
        let mut document = doc! { "_id": id };
        for field in ["a", "b", "c", "n", "s", "t", "d", "o"] {
            let value = match field {
                _ if self.random.one_in(4) => continue,
                _ if self.random.one_in(6) => self.value(0),
                "n" => self.number(),
                "s" => self.text(),
                "t" => self.array(1),
                "d" => self.date(),
                "o" => self.object(1),
                "c" => (0..self.random.below(3)).map(|_| self.object(2)).collect::<Vec<_>>().into(),
                _ => self.value(0),
            };
            document.insert(field, value);
        }
        document
    }

    /// Indexes for every other collection.
    pub(super) fn indexes(&mut self) -> Vec<Document> {
        if self.random.one_in(2) {
            return Vec::new();
        }
        let all = [
            doc! { "a": 1 },
            doc! { "n": -1 },
            doc! { "s": 1, "n": 1 },
            doc! { "c.a": 1 },
            doc! { "t": 1 },
            doc! { "a.b": 1, "n": -1 },
        ];
        let mut indexes = Vec::new();
        for (at, key) in all.into_iter().enumerate() {
            if self.random.one_in(3) {
                let mut index = doc! { "key": key, "name": format!("i{at}") };
                if self.random.one_in(5) {
                    index.insert("sparse", true);
                } else if self.random.one_in(6) {
                    index.insert("partialFilterExpression", doc! { "n": { "$gt": 0 } });
                }
                indexes.push(index);
            }
        }
        indexes
    }

    /// The kind and the commands of one trial.
    pub(super) fn commands(&mut self, documents: usize) -> (&'static str, Vec<Document>) {
        match self.random.below(10) {
            0..3 => ("find", vec![self.find()]),
            3 => {
                let count = doc! { "count": "c", "query": self.filter() };
                let distinct = doc! { "distinct": "c", "key": self.path(), "query": self.filter() };
                ("find", vec![if self.random.one_in(2) { count } else { distinct }])
            }
            4..6 => ("pipeline", vec![self.aggregate()]),
            6 => {
                let value = self.expression('v');
                let stages = vec![doc! { "$sort": { "_id": 1 } }, doc! { "$project": { "r": value } }];
                ("expression", vec![doc! { "aggregate": "c", "pipeline": stages, "cursor": {} }])
            }
            7 if self.random.one_in(2) => ("upsert", self.update(documents, true)),
            7 if self.random.one_in(2) => ("update", self.find_and_modify(documents)),
            _ => ("update", self.update(documents, false)),
        }
    }

    fn find(&mut self) -> Document {
        let mut command = doc! { "find": "c", "filter": self.filter() };
        if self.random.one_in(3) {
            let projection = self.pick(|templates| &templates.projections);
            command.insert("projection", projection);
        }
        if self.random.one_in(3) {
            let direction = if self.random.one_in(2) { 1 } else { -1 };
            let mut sort = doc! { self.path(): direction };
            sort.insert("_id", 1);
            command.insert("sort", sort);
            if self.random.one_in(2) {
                command.insert("limit", 3);
            }
        } else {
            command.insert("sort", doc! { "_id": 1 });
        }
        command
    }

    fn aggregate(&mut self) -> Document {
        let mut stages = vec![Bson::from(doc! { "$sort": { "_id": 1 } })];
        for _ in 0..=self.random.below(3) {
            let stage = self.pick(|templates| &templates.stages);
            stages.push(stage);
        }
        if self.random.one_in(2) {
            let stage = self.pick(|templates| &templates.last);
            stages.push(stage);
        }
        doc! { "aggregate": "c", "pipeline": stages, "cursor": {} }
    }

    fn update(&mut self, documents: usize, upsert: bool) -> Vec<Document> {
        let mut query = if self.random.one_in(3) { self.filter() } else { Document::new() };
        let multi = !upsert && self.random.one_in(2);
        if upsert {
            query.insert("_id", 100);
        } else if !multi {
            query.insert("_id", i32::try_from(self.random.below(documents) + 1).unwrap_or(1));
        }
        let change = self.change(!multi);
        for array in ["t", "c"] {
            // A positional update needs an element that was matched.
            if change
                .as_document()
                .is_some_and(|change| has_name(change, &format!("{array}.$")) && !has_name(change, "$["))
            {
                query.insert(array, doc! { "$elemMatch": { "$exists": true } });
            }
        }
        let mut statement = doc! { "q": query, "u": change };
        if has_name(&statement, "$[x]") {
            let condition = self.condition();
            let path = if self.random.one_in(2) { "x" } else { "x.a" };
            statement.insert("arrayFilters", vec![doc! { path: condition }]);
        }
        if upsert {
            statement.insert("upsert", true);
        }
        if multi {
            statement.insert("multi", true);
        }
        vec![doc! { "update": "c", "updates": [statement] }, doc! { "find": "c", "sort": { "_id": 1 } }]
    }

    fn find_and_modify(&mut self, documents: usize) -> Vec<Document> {
        let mut query = if self.random.one_in(3) { self.filter() } else { Document::new() };
        query.insert("_id", i32::try_from(self.random.below(documents) + 1).unwrap_or(1));
        let mut command = doc! { "findAndModify": "c", "query": query };
        if self.random.one_in(5) {
            command.insert("remove", true);
        } else {
            command.insert("update", self.change(true));
            command.insert("new", self.random.one_in(2));
        }
        if self.random.one_in(3) {
            let projection = self.pick(|templates| &templates.projections);
            command.insert("fields", projection);
        }
        vec![command, doc! { "find": "c", "sort": { "_id": 1 } }]
    }

    /// Operators, sometimes two, a pipeline, or a replacement.
    fn change(&mut self, single: bool) -> Bson {
        if self.random.one_in(6) {
            let stage = match self.random.below(3) {
                0 => doc! { "$unset": self.path() },
                1 => doc! { "$replaceWith": { "$mergeObjects": ["$$ROOT", { "q": self.expression('v') }] } },
                _ => doc! { "$set": { self.path(): self.expression('v') } },
            };
            return vec![stage].into();
        }
        if single && self.random.one_in(12) {
            return self.object(0);
        }
        let mut change = Document::new();
        for _ in 0..=self.random.below(2) {
            if let Bson::Document(update) = self.pick(|templates| &templates.updates) {
                change.extend(update);
            }
        }
        change.into()
    }

    fn filter(&mut self) -> Document {
        self.depth += 1;
        let mut filter = Document::new();
        for _ in 0..self.random.below(3) {
            let part = match self.random.below(if self.depth > 3 { 6 } else { 10 }) {
                6 => doc! { "$or": [self.filter(), self.filter()] },
                7 => doc! { "$and": [self.filter(), self.filter()] },
                8 => doc! { "$nor": [self.filter()] },
                9 if self.depth == 1 => doc! { "$expr": self.expression('b') },
                0 | 9 => doc! { self.path(): self.literal() },
                _ => doc! { self.path(): self.condition() },
            };
            filter.extend(part);
        }
        self.depth -= 1;
        filter
    }

    fn condition(&mut self) -> Bson {
        if self.depth > 4 {
            return doc! { "$gt": self.literal() }.into();
        }
        self.pick(|templates| &templates.conditions)
    }

    fn expression(&mut self, kind: char) -> Bson {
        if self.depth > 3 || self.random.one_in(3) {
            return self.leaf(kind);
        }
        let kind = if self.random.one_in(8) { 'v' } else { kind };
        let template = self.random.pick(&self.templates.expressions(kind)).map(|template| (*template).clone());
        self.fill(&template.unwrap_or(Bson::Null))
    }

    fn leaf(&mut self, kind: char) -> Bson {
        if self.this && self.random.one_in(2) {
            return (*self.random.pick(&["$$this", "$$this", "$$this.a"]).unwrap_or(&"$$this")).into();
        }
        if self.random.one_in(3) {
            let value = match kind {
                'n' => self.number(),
                's' => self.text(),
                'a' => self.array(1),
                'd' => self.date(),
                'o' => self.object(1),
                'b' => self.random.one_in(2).into(),
                _ => self.value(1),
            };
            return match value {
                Bson::Array(_) | Bson::Document(_) => doc! { "$literal": value }.into(),
                value => value,
            };
        }
        match kind {
            'n' => "$n".into(),
            's' => "$s".into(),
            'a' => (*self.random.pick(&["$t", "$c", "$c.a"]).unwrap_or(&"$t")).into(),
            'd' => "$d".into(),
            'o' => "$o".into(),
            _ => format!("${}", self.path()).into(),
        }
    }

    fn pick(&mut self, which: impl Fn(&Templates) -> &Vec<Bson>) -> Bson {
        let template = self.random.pick(which(&self.templates)).cloned().unwrap_or(Bson::Null);
        self.fill(&template)
    }

    /// Puts something in the place of each placeholder.
    fn fill(&mut self, template: &Bson) -> Bson {
        self.depth += 1;
        let filled = match template {
            Bson::String(text) if text.starts_with('?') => self.placeholder(text),
            Bson::Array(items) => items.iter().map(|item| self.fill(item)).collect::<Vec<_>>().into(),
            Bson::Document(document) => {
                let fields = document.iter().map(|(name, value)| (self.name(name), self.fill(value)));
                Bson::Document(fields.collect::<Vec<_>>().into_iter().collect())
            }
            other => other.clone(),
        };
        self.depth -= 1;
        filled
    }

    fn placeholder(&mut self, text: &str) -> Bson {
        match text {
            "?=" => self.literal(),
            "?n=" => self.number(),
            "?#" => (i32::try_from(self.random.below(7)).unwrap_or(0) - 2).into(),
            "?c" => self.condition(),
            "?f" => self.filter().into(),
            "?path" | "?p" => self.path().into(),
            "?$" => format!("${}", self.path()).into(),
            "?unit" => (*self.random.pick(UNITS).unwrap_or(&"day")).into(),
            "?type" => (*self.random.pick(TYPES).unwrap_or(&"int")).into(),
            "?x" => {
                let outer = std::mem::replace(&mut self.this, true);
                let value = self.expression('v');
                self.this = outer;
                value
            }
            _ => self.expression(text.chars().nth(1).unwrap_or('v')),
        }
    }

    fn name(&mut self, name: &str) -> String {
        match name.get(..2) {
            Some("?p") => self.path().to_owned(),
            Some("?P") => {
                let paths = ["t.$[]", "t.$[x]", "c.$[x].a", "c.$[].b", "a.$[x]", "c.$[x].b.$[]"];
                (*self.random.pick(&paths).unwrap_or(&"t.$[]")).to_owned()
            }
            Some("?N") => self.random.pick(&["n", "n", "n", "a", "o.a", "q", "t.0"]).copied().unwrap_or("n").to_owned(),
            Some("?T") => self.random.pick(&["t", "t", "t", "c", "a", "q"]).copied().unwrap_or("t").to_owned(),
            Some("?q") => "q".to_owned(),
            Some("?r") => "r".to_owned(),
            _ => name.to_owned(),
        }
    }

    fn path(&mut self) -> &'static str {
        self.random.pick(PATHS).copied().unwrap_or("a")
    }

    /// A value that may well be in a document.
    fn literal(&mut self) -> Bson {
        if self.random.one_in(2) {
            return self.random.pick(&self.pool).cloned().unwrap_or(Bson::Null);
        }
        match self.random.below(4) {
            0 => self.number(),
            1 => self.text(),
            _ => self.value(1),
        }
    }
}

/// Whether a name anywhere in the document contains the text.
fn has_name(document: &Document, text: &str) -> bool {
    document
        .iter()
        .any(|(name, value)| name.contains(text) || value.as_document().is_some_and(|inner| has_name(inner, text)))
}
