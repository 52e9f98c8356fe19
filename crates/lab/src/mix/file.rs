//! Reads a mix from YAML. What is not understood is refused with its name.

use super::{Mix, Operation};
use bson::{Bson, Document};
use document::{Error, Result};

const READS: &[&str] = &["aggregate", "count", "distinct", "find"];
const WRITES: &[&str] = &["delete", "findAndModify", "insert", "update"];

/// What a mix looks like, for hints.
const FORM: &str = "a mix is `reads: [ { name: …, weight: 9, command: { find: … } } ]` and `writes: [ … ]`; docs/guide/lab.md has an example";

pub fn read(name: &str, text: &str) -> Result<Mix> {
    let value = patterns::declare::plain_yaml(name, text)?;
    let Bson::Document(root) = bson_of(&value)? else { return Err(wrong(format!("{name} is no map"))) };
    let mut mix = Mix::default();
    for (key, list) in root {
        match &*key {
            "reads" => mix.reads = operations(name, &key, list, READS)?,
            "writes" => mix.writes = operations(name, &key, list, WRITES)?,
            _ => return Err(wrong(format!("{name}: a mix has no key `{key}`"))),
        }
    }
    if mix.reads.is_empty() && mix.writes.is_empty() {
        return Err(wrong(format!("{name} has neither reads nor writes")));
    }
    Ok(mix)
}

fn bson_of(value: &document::Value<'_>) -> Result<Bson> {
    let mut doc = document::DocWriter::new();
    doc.append("v", value);
    Ok(Document::try_from(&doc.finish())?.remove("v").unwrap_or(Bson::Null))
}

fn wrong(message: String) -> Error {
    Error::bad_value(message).with_hint(FORM)
}

fn operations(file: &str, key: &str, list: Bson, allowed: &[&str]) -> Result<Vec<Operation>> {
    let Bson::Array(list) = list else { return Err(wrong(format!("{file}: `{key}` is no list"))) };
    let operation = |(at, item): (usize, Bson)| {
        let place = format!("{file}: {key}[{at}]");
        let Bson::Document(item) = item else { return Err(wrong(format!("{place} is no map"))) };
        operation(&place, item, allowed)
    };
    let all = list.into_iter().enumerate().map(operation).collect::<Result<Vec<Operation>>>()?;
    for (at, one) in all.iter().enumerate() {
        if all.iter().take(at).any(|other| other.name == one.name) {
            return Err(wrong(format!("{file}: `{key}` has the name `{}` twice", one.name)));
        }
    }
    Ok(all)
}

fn operation(place: &str, item: Document, allowed: &[&str]) -> Result<Operation> {
    let mut operation = Operation { name: String::new(), weight: 1.0, commands: Vec::new(), instead: Vec::new() };
    for (key, value) in item {
        match (&*key, value) {
            ("name", Bson::String(name)) if !name.is_empty() => operation.name = name,
            ("weight", Bson::Int32(weight)) if weight > 0 => operation.weight = f64::from(weight),
            ("weight", Bson::Double(weight)) if weight > 0.0 && weight.is_finite() => operation.weight = weight,
            ("command", value) => operation.commands = commands(place, Bson::Array(vec![value]), allowed)?,
            ("commands", value) => operation.commands = commands(place, value, allowed)?,
            ("instead", Bson::Document(rules)) => {
                for (rule, value) in rules {
                    let list = if matches!(value, Bson::Array(_)) { value } else { Bson::Array(vec![value]) };
                    operation.instead.push((rule, commands(place, list, allowed)?));
                }
            }
            ("name" | "weight" | "instead", value) => {
                return Err(wrong(format!("{place}: `{key}: {value}` is not usable")));
            }
            _ => return Err(wrong(format!("{place} has no key `{key}`"))),
        }
    }
    match (operation.name.is_empty(), operation.commands.is_empty()) {
        (true, _) => Err(wrong(format!("{place} has no name"))),
        (_, true) => Err(wrong(format!("{place} has no command"))),
        _ => Ok(operation),
    }
}

fn commands(place: &str, list: Bson, allowed: &[&str]) -> Result<Vec<Document>> {
    let Bson::Array(list) = list else { return Err(wrong(format!("{place}: `commands` is no list"))) };
    let command = |value: Bson| {
        let Bson::Document(command) = value else { return Err(wrong(format!("{place}: a command is no map"))) };
        let name = command.keys().next().cloned().unwrap_or_default();
        if !allowed.contains(&&*name) {
            return Err(wrong(format!("{place}: `{name}` is none of the commands {}", allowed.join(", "))));
        }
        let writes = |stage: &Bson| {
            stage.as_document().is_some_and(|stage| stage.contains_key("$out") || stage.contains_key("$merge"))
        };
        if command.get_array("pipeline").is_ok_and(|stages| stages.iter().any(writes)) {
            return Err(wrong(format!("{place}: a pipeline that writes is no read")));
        }
        Ok(command)
    };
    list.into_iter().map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_read_as_it_is_written() {
        let text = "reads:
  - name: product page
    weight: 9
    command: { find: products, filter: { _id: { $sample: products._id } } }
    instead: { products.recent: { find: products, limit: 1 } }
writes:
  - name: new review
    commands: [ { insert: reviews, documents: [ { $copy: reviews } ] } ]
";
        let mix = read("mix.yaml", text).unwrap();
        let page = &mix.reads[0];
        assert_eq!((&*page.name, page.weight, page.instead.len()), ("product page", 9.0, 1));
        assert_eq!(mix.writes[0].commands[0].get_str("insert").unwrap(), "reviews");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, said) in [
            ("a: 1", "no key `a`"),
            ("reads: 1", "no list"),
            ("reads: []", "neither reads nor writes"),
            ("reads: [ { name: x } ]", "no command"),
            ("reads: [ { command: { find: a } } ]", "no name"),
            ("reads: [ { name: x, command: { drop: a } } ]", "`drop` is none"),
            ("reads: [ { name: x, weight: 0, command: { find: a } } ]", "weight"),
            ("reads: [ { name: x, command: { aggregate: a, pipeline: [ { $out: b } ] } } ]", "no read"),
            ("writes: [ { name: x, command: { find: a } } ]", "`find` is none"),
        ] {
            let error = read("mix.yaml", text).unwrap_err();
            assert!(error.message().contains(said), "{text}: {}", error.message());
            assert!(error.hint().is_some(), "{text}");
        }
    }
}
