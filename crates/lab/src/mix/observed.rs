//! The mix that clients have: command shapes become commands again, with values of the sample.

use super::{Mix, Operation, of_rules};
use crate::traffic::Traffic;
use bson::{Bson, Document, doc};
use patterns::rule::Rule;

/// So many of the most frequent are measured.
const READS: usize = 10;
const WRITES: usize = 6;

/// A read gives so many documents at most.
const LONGEST: i64 = 1_000;

/// The mix of the traffic on these collections, and what of it cannot be repeated. None if there is none of it.
pub fn of_traffic<'r>(
    db: &str,
    traffic: &Traffic,
    rules: impl Iterator<Item = &'r Rule>,
    collections: &[&str],
) -> Option<(Mix, Vec<String>)> {
    let mut observed = Observed { mix: Mix::default(), known: of_rules(rules), left: Vec::new() };
    let named = |doc: &Document, name: &str| {
        let name = doc.get_str(name).ok()?.strip_prefix(db)?.strip_prefix('.')?.to_owned();
        collections.contains(&&*name).then_some(name)
    };
    let mut by_id: Vec<(String, f64)> = Vec::new();
    for read in &traffic.second_reads {
        if let (Some(from), Some(to), Ok(path)) = (named(read, "from"), named(read, "read"), read.get_str("path")) {
            let count = crate::line::number(read, "count");
            observed.second_read(&from, &to, path, count);
            by_id.push((to, count));
        }
    }
    for shape in &traffic.shapes {
        let Some(collection) = named(shape, "ns") else { continue };
        let mut count = crate::line::number(shape, "count");
        let is_by_id = matches!(&*texts(shape, "filter"), [only] if only.starts_with("_id "));
        if is_by_id && command(shape) == "find" {
            // Those that follow another read are counted with it.
            count -= by_id.iter().filter(|(to, _)| *to == collection).map(|(_, count)| count).sum::<f64>();
        }
        if count > 0.0 {
            observed.shape(&collection, shape, count);
        }
    }
    let Observed { mut mix, mut left, known } = observed;
    if mix.reads.is_empty() && mix.writes.is_empty() {
        return None;
    }
    for (operations, most) in [(&mut mix.reads, READS), (&mut mix.writes, WRITES)] {
        operations.sort_by(|one, other| other.weight.total_cmp(&one.weight).then_with(|| one.name.cmp(&other.name)));
        left.extend(operations.drain(most.min(operations.len())..).map(|operation| operation.name));
    }
    // Data that was only loaded is to be read one day.
    for (operations, others) in [(&mut mix.reads, known.reads), (&mut mix.writes, known.writes)] {
        if operations.is_empty() {
            *operations = others;
        }
    }
    Some((mix, left))
}

struct Observed {
    mix: Mix,
    /// What rules save, with the commands that they save.
    known: Mix,
    left: Vec<String>,
}

impl Observed {
    fn second_read(&mut self, from: &str, to: &str, path: &str, count: f64) {
        let is_it = |operation: &&Operation| match &*operation.commands {
            [first, second] => target(first) == from && target(second) == to && previous(second) == Some(path),
            _ => false,
        };
        let new = self.known.reads.iter().find(is_it).cloned().unwrap_or_else(|| Operation {
            name: format!("{from}, then {to} by {path}"),
            weight: 1.0,
            commands: vec![
                doc! { "find": from, "filter": { "_id": sample(from, "_id") }, "limit": 1 },
                doc! { "find": to, "filter": { "_id": { "$previous": path } }, "limit": 1 },
            ],
            instead: Vec::new(),
        });
        add(&mut self.mix.reads, Operation { weight: count, ..new });
    }

    fn shape(&mut self, collection: &str, shape: &Document, count: f64) {
        let command = command(shape);
        let words = [texts(shape, "filter"), texts(shape, "changes")].concat().join(", ");
        let name = if words.is_empty() {
            format!("{command} of {collection}")
        } else {
            format!("{command} of {collection}: {words}")
        };
        let is_read = ["aggregate", "count", "distinct", "find"].contains(&command);
        let new = match self.saved(collection, shape).filter(|_| is_read) {
            Some(known) => Some(known),
            None => again(command, collection, shape).map(|command| Operation {
                name: name.clone(),
                weight: 1.0,
                commands: vec![command],
                instead: Vec::new(),
            }),
        };
        match new {
            Some(new) if is_read => add(&mut self.mix.reads, Operation { weight: count, ..new }),
            Some(new) => add(&mut self.mix.writes, Operation { weight: count, ..new }),
            None => self.left.push(name),
        }
    }

    /// The read of a rule that makes such a command needless: the second one of those by hand, by the same key.
    fn saved(&self, collection: &str, shape: &Document) -> Option<Operation> {
        let filter = filter_words(shape);
        let folds = command(shape) == "count" || shape.get_array("stages").is_ok();
        let sorts = shape.get_array("sort").is_ok();
        let is_it = |operation: &&Operation| {
            let [_, second] = &*operation.commands else { return false };
            let key = second_filter(second).and_then(|filter| filter.keys().next().cloned()).unwrap_or_default();
            let same_kind = if folds { second.contains_key("aggregate") } else { sorts && second.contains_key("sort") };
            target(second) == collection && same_kind && filter.iter().any(|word| *word == format!("{key} $eq"))
        };
        self.known.reads.iter().find(is_it).cloned()
    }
}

/// Shapes that differ in little share a name, and are one operation.
fn add(all: &mut Vec<Operation>, new: Operation) {
    match all.iter_mut().find(|old| old.name == new.name) {
        Some(old) => old.weight += new.weight,
        None => all.push(new),
    }
}

fn command(shape: &Document) -> &str {
    shape.get_str("command").unwrap_or_default()
}

fn target(command: &Document) -> &str {
    command.values().next().and_then(Bson::as_str).unwrap_or_default()
}

/// What a command of two looks for.
fn second_filter(command: &Document) -> Option<&Document> {
    let stages = command.get_array("pipeline").ok().and_then(|stages| stages.first()).and_then(Bson::as_document);
    stages.and_then(|stage| stage.get_document("$match").ok()).or_else(|| command.get_document("filter").ok())
}

fn previous(command: &Document) -> Option<&str> {
    second_filter(command)?.values().next()?.as_document()?.get_str("$previous").ok()
}

fn sample(collection: &str, path: &str) -> Bson {
    Bson::Document(doc! { "$sample": format!("{collection}.{path}") })
}

fn texts(doc: &Document, name: &str) -> Vec<String> {
    let words = doc.get_array(name).into_iter().flatten();
    words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

/// The filter, or that of the first stage.
fn filter_words(shape: &Document) -> Vec<String> {
    let first = shape.get_array("stages").ok().and_then(|stages| stages.first()).and_then(Bson::as_document);
    let matched = first.map(|stage| texts(stage, "$match")).unwrap_or_default();
    if matched.is_empty() { texts(shape, "filter") } else { matched }
}

/// A command of that shape; none if it cannot be made again.
fn again(command: &str, collection: &str, shape: &Document) -> Option<Document> {
    let filter = filter(collection, &texts(shape, "filter"))?;
    let returned = crate::line::number(shape, "returned") / crate::line::number(shape, "count").max(1.0);
    let limit = (returned.ceil() as i64).clamp(1, LONGEST);
    Some(match command {
        "find" => {
            let mut find = doc! { "find": collection, "filter": filter };
            if let Some(sort) = sort(&texts(shape, "sort")) {
                find.insert("sort", sort);
            }
            find.extend(doc! { "limit": limit, "batchSize": limit });
            find
        }
        "count" => doc! { "count": collection, "query": filter },
        "distinct" => doc! { "distinct": collection, "key": shape.get_str("key").ok()?, "query": filter },
        "aggregate" => {
            let stages = shape.get_array("stages").ok()?;
            let mut pipeline = Vec::new();
            for made in stages.iter().map(|of| stage(collection, of, limit)) {
                pipeline.extend(made?);
            }
            doc! { "aggregate": collection, "pipeline": pipeline, "cursor": { "batchSize": limit } }
        }
        "insert" => doc! { "insert": collection, "documents": [{ "$copy": collection }] },
        "update" | "findAndModify" | "findandmodify" => {
            let change = change(collection, &texts(shape, "changes"))?;
            doc! { "update": collection, "updates": [{ "q": filter, "u": change }] }
        }
        // Deletes would use the sample up.
        _ => return None,
    })
}

/// Each word is a path and an operator. Of a range only the lower end is looked for: both would be of one document.
fn filter(collection: &str, words: &[String]) -> Option<Document> {
    let mut filter = Document::new();
    for word in words {
        let (path, operator) = word.rsplit_once(' ')?;
        if path.starts_with('$') || path.contains(' ') {
            return None;
        }
        let value = sample(collection, path);
        let test = match operator {
            "$eq" => value,
            "$in" => Bson::Document(doc! { "$in": [value] }),
            "$gt" | "$gte" | "$ne" => Bson::Document(doc! { operator: value }),
            "$lt" | "$lte" if filter.contains_key(path) => continue,
            "$lt" | "$lte" => Bson::Document(doc! { operator: value }),
            "$exists" => Bson::Document(doc! { "$exists": true }),
            _ => return None,
        };
        filter.insert(path, test);
    }
    Some(filter)
}

fn sort(words: &[String]) -> Option<Document> {
    let one = |word: &String| {
        let (path, order) = word.rsplit_once(' ')?;
        Some((path.to_owned(), Bson::Int32(order.parse().ok()?)))
    };
    words.iter().map(one).collect::<Option<Document>>().filter(|sort| !sort.is_empty())
}

/// A stage, none if it only cuts fields off, nothing at all if it is not understood.
fn stage(collection: &str, stage: &Bson, limit: i64) -> Option<Option<Document>> {
    let Bson::Document(stage) = stage else {
        return match stage.as_str().map(|name| name.split(' ').next().unwrap_or_default()) {
            Some("$limit") => Some(Some(doc! { "$limit": limit })),
            Some("$count") => Some(Some(doc! { "$count": "n" })),
            Some("$skip") => Some(None),
            _ => None,
        };
    };
    let (name, _) = stage.iter().next()?;
    match &**name {
        "$match" => filter(collection, &texts(stage, "$match")).map(|filter| Some(doc! { "$match": filter })),
        "$sort" => sort(&texts(stage, "$sort")).map(|sort| Some(doc! { "$sort": sort })),
        "$limit" => Some(Some(doc! { "$limit": limit })),
        "$count" => Some(Some(doc! { "$count": "n" })),
        "$project" | "$addFields" | "$set" | "$skip" => Some(None),
        "$group" => group(stage.get_document("$group").ok()?).map(|group| Some(doc! { "$group": group })),
        "$lookup" => {
            let lookup = stage.get_document("$lookup").ok()?;
            let of = |name: &str| lookup.get_str(name).ok();
            let (from, local, foreign) = (of("from")?, of("localField")?, of("foreignField")?);
            Some(Some(
                doc! { "$lookup": { "from": from, "localField": local, "foreignField": foreign, "as": "found" } },
            ))
        }
        _ => None,
    }
}

fn group(shape: &Document) -> Option<Document> {
    let by = match &*texts(shape, "by") {
        [] => Bson::Null,
        [path] if path.starts_with('$') && !path.contains(' ') => Bson::String(path.clone()),
        _ => return None,
    };
    let mut group = doc! { "_id": by };
    for fold in texts(shape, "fold") {
        let [name, operator, of] = *fold.split(' ').collect::<Vec<&str>>() else { return None };
        let of = if of == "?" { Bson::Int32(1) } else { Bson::String(of.to_owned()) };
        group.insert(name, doc! { operator: of });
    }
    Some(group)
}

fn change(collection: &str, words: &[String]) -> Option<Document> {
    let mut change = Document::new();
    for word in words {
        let (path, operator) = word.rsplit_once(' ')?;
        let of = format!("{collection}.{path}");
        let value = match operator {
            "$set" => Bson::Document(doc! { "$changed": of }),
            "$inc" => Bson::Int32(1),
            "$push" | "$addToSet" => Bson::Document(doc! { "$sample": format!("{of}.0") }),
            _ => return None,
        };
        let known = change.get_document(operator).cloned().unwrap_or_default();
        change.insert(operator, known.into_iter().chain([(path.to_owned(), value)]).collect::<Document>());
    }
    (!change.is_empty()).then_some(change)
}

#[cfg(test)]
#[path = "observed_tests.rs"]
mod tests;
