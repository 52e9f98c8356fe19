//! The mix of nobody's: one read per pattern, as it is answered with the rule and by hand, and one write per source.

use super::{Mix, Operation};
use bson::{Bson, Document, doc};
use patterns::rule::{Kind, Link, LinkKey, Refers, Rule};

/// Of the rules of all candidates, each once.
pub fn of_rules<'r>(rules: impl Iterator<Item = &'r Rule>) -> Mix {
    let mut mix = Mix::default();
    for rule in rules {
        add(&mut mix.reads, read(rule));
        add(&mut mix.writes, write(rule));
    }
    mix
}

/// Candidates that say the same in other words share a read; what each rule does instead is kept.
fn add(all: &mut Vec<Operation>, new: Option<Operation>) {
    let Some(new) = new else { return };
    match all.iter_mut().find(|old| old.name == new.name) {
        Some(old) => {
            for (rule, commands) in new.instead {
                if !old.instead.iter().any(|(known, _)| *known == rule) {
                    old.instead.push((rule, commands));
                }
            }
        }
        None => all.push(new),
    }
}

fn operation(name: String, commands: Vec<Document>) -> Operation {
    Operation { name, weight: 1.0, commands, instead: Vec::new() }
}

fn sample(collection: &str, path: &str) -> Bson {
    Bson::Document(doc! { "$sample": format!("{collection}.{path}") })
}

fn one_by_id(collection: &str) -> Document {
    doc! { "find": collection, "filter": { "_id": sample(collection, "_id") }, "limit": 1 }
}

/// What stands in the declaration under the pattern's name, and under the field's for a rule that keeps one.
fn block(rule: &Rule) -> Document {
    let declared = Document::try_from(&rule.declaration).unwrap_or_default();
    let collections = declared.get_document("collections").ok();
    let of_host = collections.and_then(|all| all.get_document(&*rule.host.collection).ok());
    let of_pattern = of_host.and_then(|host| host.values().next()).and_then(Bson::as_document);
    let field = rule.field.dotted();
    let of_field = of_pattern.and_then(|pattern| pattern.get_document(&field).ok());
    of_field.or(of_pattern).cloned().unwrap_or_default()
}

fn read(rule: &Rule) -> Option<Operation> {
    let host = &*rule.host.collection;
    match &rule.kind {
        Kind::Field(field) => match field.link() {
            Some(link) => read_of_link(rule, link),
            None => Some(operation(format!("{host} by _id"), vec![one_by_id(host)])),
        },
        Kind::Shape(_) => {
            let block = block(rule);
            let bucket = rule.bucket()?;
            let mut filter: Document =
                bucket.by.iter().map(|series| (series.field.to_string(), sample(host, &series.field))).collect();
            let time = block.get_str("time").ok()?;
            filter.insert(time, doc! { "$gte": sample(host, time) });
            let find = doc! { "find": host, "filter": filter, "sort": { time: 1 }, "limit": 100, "batchSize": 100 };
            Some(operation(format!("{host} of a series from a time on"), vec![find]))
        }
        Kind::Constraint(_) => {
            let field = block(rule).get_str("discriminator").ok()?.to_owned();
            let filter = doc! { &field: sample(host, &field) };
            Some(operation(format!("{host} of a {field}"), vec![doc! { "find": host, "filter": filter, "limit": 20 }]))
        }
        Kind::Outlier(_) | Kind::Lens(_) => Some(operation(format!("{host} by _id"), vec![one_by_id(host)])),
    }
}

fn read_of_link(rule: &Rule, link: &Link) -> Option<Operation> {
    let (host, source, name) =
        (&*rule.host.collection, &*link.source.collection, format!("{} with {}", rule.host.collection, rule.field));
    let block = block(rule);
    let first = one_by_id(host);
    let by_hand = match (&link.foreign, link.refers) {
        (LinkKey::Path(foreign), Refers::Host) => {
            let filter = doc! { foreign.path.dotted(): { "$previous": link.local.path.dotted() } };
            vec![first.clone(), doc! { "find": source, "filter": filter, "limit": 1 }]
        }
        // The array is in the document already.
        _ if block.contains_key("lift") => return Some(operation(name, vec![first])),
        (LinkKey::Path(foreign), Refers::Source) if !link.create => {
            let filter = doc! { foreign.path.dotted(): { "$previous": link.local.path.dotted() } };
            let second = match block.get_document("sort").ok().filter(|_| block.contains_key("keep")) {
                Some(sort) => {
                    let keep = block.get("keep").cloned().unwrap_or(Bson::Int32(5));
                    doc! { "find": source, "filter": filter, "sort": sort.clone(), "limit": keep }
                }
                None => {
                    let group = doc! { "_id": null, "value": folded(&block) };
                    doc! { "aggregate": source, "pipeline": [{ "$match": filter }, { "$group": group }], "cursor": {} }
                }
            };
            vec![first.clone(), second]
        }
        _ => {
            let by = block.get("by").cloned().unwrap_or(Bson::Null);
            let by = if let Bson::String(path) = by { Bson::String(format!("${path}")) } else { by };
            let group = doc! { "_id": by, "value": folded(&block) };
            let pipeline = vec![doc! { "$group": group }, doc! { "$sort": { "_id": 1 } }, doc! { "$limit": 20 }];
            let all = doc! { "aggregate": source, "pipeline": pipeline, "cursor": {} };
            let kept = vec![doc! { "find": host, "sort": { "_id": 1 }, "limit": 20 }];
            let instead = vec![(rule.name.to_string(), kept)];
            return Some(Operation { instead, ..operation(name, vec![all]) });
        }
    };
    Some(Operation { instead: vec![(rule.name.to_string(), vec![first])], ..operation(name, by_hand) })
}

/// What `$group` computes for it by hand.
fn folded(block: &Document) -> Bson {
    for name in ["sum", "avg", "min", "max"] {
        if let Ok(path) = block.get_str(name) {
            return Bson::Document(doc! { format!("${name}"): format!("${path}") });
        }
    }
    Bson::Document(doc! { "$sum": 1 })
}

fn write(rule: &Rule) -> Option<Operation> {
    let host = &*rule.host.collection;
    let touch = || {
        let update =
            doc! { "q": { "_id": sample(host, "_id") }, "u": { "$set": { "lab": { "$random": [0, 1_000_000] } } } };
        operation(format!("update of {host}"), vec![doc! { "update": host, "updates": [update] }])
    };
    match &rule.kind {
        Kind::Field(field) => match field.link() {
            Some(link) => write_of_link(rule, link),
            None => Some(touch()),
        },
        Kind::Shape(_) => write_of_series(rule),
        Kind::Outlier(outlier) => {
            let items = &outlier.field;
            let operator = if outlier.unique { "$addToSet" } else { "$push" };
            let item = doc! { "$sample": format!("{host}.{items}.0") };
            let update = doc! { "q": { "_id": sample(host, "_id") }, "u": { operator: { items.to_string(): item } } };
            Some(operation(format!("one more of {host}.{items}"), vec![doc! { "update": host, "updates": [update] }]))
        }
        Kind::Constraint(_) | Kind::Lens(_) => Some(touch()),
    }
}

fn write_of_link(rule: &Rule, link: &Link) -> Option<Operation> {
    let source = &*link.source.collection;
    match (link.refers, &link.foreign) {
        (Refers::Host, LinkKey::Path(foreign)) => {
            let path = copied(&block(rule))?;
            let key = foreign.path.dotted();
            let change = doc! { "$set": { &path: { "$changed": format!("{source}.{path}") } } };
            let update = doc! { "q": { &key: sample(source, &key) }, "u": change };
            Some(operation(format!("update of {source}.{path}"), vec![doc! { "update": source, "updates": [update] }]))
        }
        // All items of an array are a collection to read only.
        _ if source.contains('.') => None,
        (_, LinkKey::Path(foreign)) if block(rule).contains_key("lift") => {
            write_of_lifted(rule, link, &foreign.path.dotted())
        }
        _ => {
            let insert = doc! { "insert": source, "documents": [{ "$copy": source }] };
            Some(operation(format!("insert into {source}"), vec![insert]))
        }
    }
}

/// One more item: into the array today, into its collection with the rule.
fn write_of_lifted(rule: &Rule, link: &Link, foreign: &str) -> Option<Operation> {
    let (host, source) = (&*rule.host.collection, &*link.source.collection);
    let array = block(rule).get_str("lift").ok()?.to_owned();
    let item = format!("{host}.{array}.0");
    let update = doc! { "q": { "_id": sample(host, "_id") }, "u": { "$push": { &array: { "$sample": &item } } } };
    let parent = sample(host, &link.local.path.dotted());
    let insert = doc! { "insert": source, "documents": [{ "$copy": item, "with": { foreign: parent } }] };
    let name = format!("one more of {host}.{array}");
    let instead = vec![(rule.name.to_string(), vec![insert])];
    Some(Operation { instead, ..operation(name, vec![doc! { "update": host, "updates": [update] }]) })
}

/// The first path of the source that is copied.
fn copied(block: &Document) -> Option<String> {
    match block.get("fields")? {
        Bson::Array(fields) => fields.first()?.as_str().map(str::to_owned),
        Bson::Document(fields) => fields.values().next()?.as_str().map(str::to_owned),
        _ => None,
    }
}

fn write_of_series(rule: &Rule) -> Option<Operation> {
    let host = &*rule.host.collection;
    let (block, bucket) = (block(rule), rule.bucket()?);
    let time = block.get_str("time").ok()?;
    let insert = doc! { "insert": host, "documents": [{ "$copy": host, "changing": time }] };
    let plain = operation(format!("insert into {host}"), vec![insert]);
    // Sums are added to their slot; without slots it is one document more.
    let Some(sum) = block.get_document("sum").ok().and_then(|sums| sums.keys().next()) else { return Some(plain) };
    let mut filter: Document =
        bucket.by.iter().map(|series| (series.field.to_string(), sample(host, &series.field))).collect();
    match block.get_document("slot").ok().and_then(|slot| slot.get_str("field").ok()) {
        Some(field) => drop(filter.insert(field, sample(host, field))),
        None => drop(filter.insert(time, sample(host, time))),
    }
    let update = doc! { "q": filter, "u": { "$inc": { sum: 1 } }, "upsert": true };
    let instead = vec![(rule.name.to_string(), vec![doc! { "update": host, "updates": [update] }])];
    Some(Operation { instead, ..plain })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(collections: &str) -> Mix {
        let text = format!("database: shop\ncollections:\n{collections}");
        of_rules(patterns::declare::from_yaml("pleach.yaml", &text).into_result().unwrap().rules.iter())
    }

    #[test]
    fn a_copy_saves_the_second_read_and_its_source_is_updated() {
        let mix = mix(
            "  orders:\n    extended_reference:\n      customer: { from: customers, by: customerId, fields: [name] }\n",
        );
        let read = &mix.reads[0];
        assert_eq!((read.commands.len(), read.instead[0].1.len()), (2, 1), "{read:?}");
        assert_eq!(mix.writes[0].name, "update of customers.name");
    }

    #[test]
    fn a_sum_is_grouped_by_hand_and_a_window_is_sorted() {
        let mix = mix(
            "  products:\n    computed:\n      total: { sum: amount, from: sales, by: productId }\n    subset:\n      recent: { from: reviews, by: productId, sort: { date: -1 }, keep: 3, fields: [text] }\n",
        );
        assert!(format!("{}", mix.reads[0].commands[1]).contains("\"$amount\""), "{mix:?}");
        assert!(mix.reads[1].commands[1].contains_key("limit"), "{mix:?}");
        let names: Vec<&str> = mix.writes.iter().map(|write| &*write.name).collect();
        assert_eq!(names, ["insert into sales", "insert into reviews"]);
    }

    #[test]
    fn an_array_that_is_lifted_is_read_with_its_document() {
        let mix = mix(
            "  products:\n    subset:\n      reviews: { from: productReviews, by: productId, sort: { date: -1 }, keep: 2, lift: reviews }\n",
        );
        assert_eq!((mix.reads[0].commands.len(), mix.reads[0].instead.len()), (1, 0), "{mix:?}");
        let write = &mix.writes[0];
        assert!(write.commands[0].contains_key("update") && write.instead[0].1[0].contains_key("insert"), "{mix:?}");
    }

    #[test]
    fn slots_are_added_to() {
        let mix = mix("  events:\n    bucket: { time: date, by: [key], every: quarter, slot: day, sum: { n: n } }\n");
        assert!(mix.writes[0].commands[0].contains_key("insert"));
        assert!(mix.writes[0].instead[0].1[0].contains_key("update"));
        assert_eq!(mix.reads.len(), 1);
    }
}
