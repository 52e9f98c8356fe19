//! Values for the commands of a mix: `{ $sample: orders._id }` and its like become what the sample holds.

use super::Mix;
use crate::plan::Plan;
use crate::random::Random;
use bson::oid::ObjectId;
use bson::{Bson, Document};
use document::{Doc, Error, Result};
use std::collections::HashMap;

/// Some documents of each collection.
pub struct Pools {
    all: Vec<(String, Vec<Document>)>,
}

/// How often another document is looked at for a field that the first one lacks.
const TRIES: usize = 40;

impl Pools {
    pub fn new(plan: &Plan, pools: &[Vec<Doc<'static>>]) -> Pools {
        let read = |docs: &Vec<Doc<'static>>| docs.iter().filter_map(|doc| Document::try_from(doc).ok()).collect();
        let all = plan.members.iter().zip(pools).map(|(member, docs)| (member.name.clone(), read(docs)));
        Pools { all: all.collect() }
    }

    /// The collection that a dotted name begins with, and the rest.
    fn named<'p, 'n>(&'p self, name: &'n str) -> Result<(usize, &'p [Document], &'n str)> {
        let fits = |(_, (collection, _)): &(usize, &(String, Vec<Document>))| {
            name.strip_prefix(&**collection).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let longest = self.all.iter().enumerate().filter(fits).max_by_key(|(_, (collection, _))| collection.len());
        match longest {
            Some((at, (collection, docs))) => {
                let rest = name.get(collection.len()..).unwrap_or_default();
                Ok((at, docs, rest.trim_start_matches('.')))
            }
            None => {
                let names: Vec<&str> = self.all.iter().map(|(name, _)| &**name).collect();
                Err(Error::bad_value(format!("the mix names `{name}`, which is in no sampled collection"))
                    .with_hint(format!("the candidates' rules touch {}", names.join(", "))))
            }
        }
    }
}

/// Whether all values of a mix can be had: what it names must be in the sample.
pub fn check(mix: &Mix, pools: &Pools) -> Result<()> {
    let mut random = Random::seeded(1);
    for operation in mix.reads.iter().chain(&mix.writes) {
        let instead = operation.instead.iter().flat_map(|(_, commands)| commands);
        for command in operation.commands.iter().chain(instead) {
            Filled::new(pools, &mut random).command(command, None).map_err(|error| {
                let said = format!("`{}`: {}", operation.name, error.message());
                Error::bad_value(said).with_hint(error.hint().unwrap_or_default().to_owned())
            })?;
        }
    }
    Ok(())
}

/// One run of an operation: its commands speak of the same documents.
pub struct Filled<'p> {
    pools: &'p Pools,
    random: &'p mut Random,
    chosen: HashMap<usize, usize>,
}

impl<'p> Filled<'p> {
    pub fn new(pools: &'p Pools, random: &'p mut Random) -> Filled<'p> {
        Filled { pools, random, chosen: HashMap::new() }
    }

    /// The command with its values; `previous` is the first document that the one before gave.
    pub fn command(&mut self, command: &Document, previous: Option<&Document>) -> Result<Document> {
        match self.value(&Bson::Document(command.clone()), previous)? {
            Bson::Document(command) => Ok(command),
            _ => Err(Error::bad_value("a command of the mix is a placeholder as a whole")),
        }
    }

    fn value(&mut self, value: &Bson, previous: Option<&Document>) -> Result<Bson> {
        match value {
            Bson::Document(doc) => match doc.iter().next() {
                Some((name, of)) if PLACEHOLDERS.contains(&&**name) => self.placeholder(name, of, doc, previous),
                _ => {
                    let mut filled = Document::new();
                    for (name, value) in doc {
                        filled.insert(name, self.value(value, previous)?);
                    }
                    Ok(Bson::Document(filled))
                }
            },
            Bson::Array(items) => {
                let items: Result<Vec<Bson>> = items.iter().map(|item| self.value(item, previous)).collect();
                items.map(Bson::Array)
            }
            other => Ok(other.clone()),
        }
    }

    fn placeholder(&mut self, name: &str, of: &Bson, doc: &Document, previous: Option<&Document>) -> Result<Bson> {
        match (name, of) {
            ("$sample", Bson::String(path)) => self.sampled(path),
            ("$changed", Bson::String(path)) => {
                let value = self.sampled(path)?;
                Ok(self.changed(value))
            }
            ("$copy", Bson::String(collection)) => {
                let mut copy = match self.sampled(collection)? {
                    Bson::Document(copy) => copy,
                    _ => Document::new(),
                };
                copy.remove("_id");
                if let Ok(path) = doc.get_str("changing") {
                    let value = copy.get(path).cloned().unwrap_or(Bson::Null);
                    copy.insert(path, self.changed(value));
                }
                if let Ok(with) = doc.get_document("with") {
                    for (name, value) in with {
                        copy.insert(name, self.value(value, previous)?);
                    }
                }
                Ok(Bson::Document(copy))
            }
            ("$previous", Bson::String(path)) => {
                Ok(previous.and_then(|doc| at(doc, path)).cloned().unwrap_or(Bson::Null))
            }
            ("$random", Bson::Array(ends)) => match ends.as_slice() {
                [Bson::Int32(low), Bson::Int32(high)] if low <= high => {
                    let width = usize::try_from(i64::from(*high) - i64::from(*low)).unwrap_or_default();
                    Ok(Bson::Int64(i64::from(*low) + self.random.below(width + 1) as i64))
                }
                _ => Err(Error::bad_value("`$random` takes two whole numbers, the lower first")),
            },
            ("$newId", _) => Ok(Bson::ObjectId(self.new_id())),
            (name, of) => Err(Error::bad_value(format!("the mix has `{name}: {of}`, which is not usable"))
                .with_hint("`$sample`, `$changed` and `$copy` take a collection and a path, such as orders._id")),
        }
    }

    /// A value of a document that was sampled; the same document of each collection within one run.
    fn sampled(&mut self, name: &str) -> Result<Bson> {
        let (collection, docs, path) = self.pools.named(name)?;
        if docs.is_empty() {
            return Ok(Bson::Null);
        }
        for _ in 0..TRIES {
            let random = &mut *self.random;
            let place = *self.chosen.entry(collection).or_insert_with(|| random.below(docs.len()));
            let Some(doc) = docs.get(place) else { break };
            if path.is_empty() {
                return Ok(Bson::Document(doc.clone()));
            }
            if let Some(value) = at(doc, path) {
                return Ok(value.clone());
            }
            self.chosen.remove(&collection);
        }
        Ok(Bson::Null)
    }

    /// Another value of the same kind.
    fn changed(&mut self, value: Bson) -> Bson {
        let number = self.random.below(1_000_000) as i64;
        match value {
            Bson::Int32(_) | Bson::Int64(_) => Bson::Int64(number),
            Bson::Double(_) => Bson::Double(number as f64 / 100.0),
            Bson::DateTime(date) => Bson::DateTime(bson::DateTime::from_millis(date.timestamp_millis() + 1 + number)),
            Bson::String(text) => {
                // As long as it was: sizes stay what they are.
                let suffix = format!("{number:06}");
                let kept: String = text.chars().take(text.chars().count().saturating_sub(suffix.len())).collect();
                Bson::String(format!("{kept}{suffix}"))
            }
            Bson::Boolean(_) => Bson::Boolean(number % 2 == 0),
            Bson::ObjectId(_) => Bson::ObjectId(self.new_id()),
            _ => Bson::String(format!("changed {number:06}")),
        }
    }

    fn new_id(&mut self) -> ObjectId {
        let mut bytes = [0; 12];
        let drawn = [self.random.draw().to_be_bytes(), self.random.draw().to_be_bytes()].concat();
        bytes.iter_mut().zip(drawn).for_each(|(byte, drawn)| *byte = drawn);
        ObjectId::from_bytes(bytes)
    }
}

const PLACEHOLDERS: &[&str] = &["$changed", "$copy", "$newId", "$previous", "$random", "$sample"];

/// The value at a dotted path; digits are places of an array.
fn at<'d>(doc: &'d Document, path: &str) -> Option<&'d Bson> {
    let mut parts = path.split('.');
    let mut value = doc.get(parts.next()?)?;
    for part in parts {
        value = match value {
            Bson::Document(doc) => doc.get(part)?,
            Bson::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn pools() -> Pools {
        let orders = (1..=5).map(|id| doc! { "_id": id, "customerId": id * 10, "name": "abcdefghij", "tags": ["x"] });
        Pools { all: vec![("orders".to_owned(), orders.collect()), ("empty".to_owned(), Vec::new())] }
    }

    #[test]
    fn commands_of_one_run_speak_of_the_same_document() {
        let (pools, mut random) = (pools(), Random::seeded(1));
        let mut run = Filled::new(&pools, &mut random);
        let command = doc! { "find": "orders", "filter": { "_id": { "$sample": "orders._id" }, "customerId": { "$sample": "orders.customerId" } } };
        let filled = run.command(&command, None).unwrap();
        let filter = filled.get_document("filter").unwrap();
        assert_eq!(filter.get_i32("customerId").unwrap(), filter.get_i32("_id").unwrap() * 10);
        let next = doc! { "find": "customers", "filter": { "_id": { "$previous": "a.b" } } };
        let filled = run.command(&next, Some(&doc! { "a": { "b": 7 } })).unwrap();
        assert_eq!(filled.get_document("filter").unwrap(), &doc! { "_id": 7 });
    }

    #[test]
    fn what_is_not_sampled_is_refused_with_the_operations_name() {
        let read = |text: &str| crate::mix::read("mix.yaml", text).unwrap();
        let wrong = read("reads: [ { name: page, command: { find: x, filter: { a: { $sample: nobody._id } } } } ]");
        let error = check(&wrong, &pools()).unwrap_err();
        assert!(error.message().starts_with("`page`: the mix names `nobody._id`"), "{}", error.message());
        assert!(error.hint().unwrap().contains("orders"));
        let right =
            read("reads: [ { name: page, command: { find: orders, filter: { _id: { $sample: orders._id } } } } ]");
        check(&right, &pools()).unwrap();
    }

    #[test]
    fn copies_have_no_id_and_changes_keep_the_size() {
        let (pools, mut random) = (pools(), Random::seeded(2));
        let mut run = Filled::new(&pools, &mut random);
        let command = doc! { "insert": "orders", "documents": [{ "$copy": "orders", "changing": "name" }] };
        let filled = run.command(&command, None).unwrap();
        let copy = filled.get_array("documents").unwrap()[0].as_document().unwrap().clone();
        assert!(!copy.contains_key("_id"));
        assert!(copy.get_str("name").unwrap() != "abcdefghij" && copy.get_str("name").unwrap().len() == 10);
        let with =
            doc! { "insert": "x", "documents": [{ "$copy": "orders", "with": { "to": { "$sample": "orders._id" } } }] };
        let filled = run.command(&with, None).unwrap();
        assert!(filled.get_array("documents").unwrap()[0].as_document().unwrap().get_i32("to").is_ok());
        assert!(run.command(&doc! { "find": "x", "filter": { "a": { "$sample": "nobody._id" } } }, None).is_err());
        let tag = run.command(&doc! { "find": "x", "filter": { "a": { "$sample": "orders.tags.0" } } }, None).unwrap();
        assert_eq!(tag.get_document("filter").unwrap(), &doc! { "a": "x" });
    }
}
