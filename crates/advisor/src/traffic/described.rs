//! Shapes as `document::traffic::describe` says them: from a running Pleach, or from what the profiler and the log show.

use super::{CommandShape, Stage};
use crate::values::text;
use document::{Doc, Value};

/// What a described shape says, without its figures. `None` if it names no collection.
pub(super) fn shape(described: &Doc<'_>) -> Option<CommandShape> {
    let namespace = text(described, "ns");
    let (database, collection) = namespace.split_once('.')?;
    let mut shape = CommandShape {
        database: database.to_owned(),
        collection: collection.to_owned(),
        kind: kind(&text(described, "command")),
        ..CommandShape::default()
    };
    shape.conditions(&words(described, "filter"));
    shape.sort = paths(&words(described, "sort"));
    shape.project(&words(described, "projection"));
    shape.changed = paths(&words(described, "changes"));
    shape.removes = matches!(&*shape.kind, "delete") || described.contains("removes");
    let stages = stages(described);
    if let Some(first) = stages.first().filter(|stage| name(stage) == "$match") {
        shape.conditions(&words(first, "$match"));
    }
    shape.stages = stages.iter().enumerate().map(|(place, stage)| of_stage(stage, stages.get(place + 1..))).collect();
    Some(shape)
}

/// The command's name as MongoDB's documents spell it.
fn kind(command: &str) -> String {
    match command {
        "findandmodify" => "findAndModify",
        other => other,
    }
    .to_owned()
}

impl CommandShape {
    fn conditions(&mut self, words: &[String]) {
        for entry in words {
            let mut parts = entry.split(' ');
            let (Some(path), operator) = (parts.next(), parts.next()) else { continue };
            if path.starts_with('$') {
                self.has_expression = true;
                continue;
            }
            if !self.filter.iter().any(|known| known == path) {
                self.filter.push(path.to_owned());
            }
            if matches!(operator, Some("$eq" | "$in")) && !self.equal.iter().any(|known| known == path) {
                self.equal.push(path.to_owned());
            }
        }
    }

    fn project(&mut self, words: &[String]) {
        let (mut given, mut excludes) = (Vec::new(), false);
        for entry in words {
            match entry.split_once(' ') {
                None => given.push(entry.clone()),
                Some((path, "0")) => {
                    excludes |= path != "_id";
                    self.left_out.push(path.to_owned());
                }
                // A part of the field, or a value made of others.
                Some((path, _)) => self.left_out.push(path.to_owned()),
            }
        }
        self.fields = (!excludes && !given.is_empty()).then_some(given);
    }
}

fn of_stage(stage: &Doc<'_>, later: Option<&[Doc<'_>]>) -> Stage {
    let name = name(stage);
    let mut made = Stage { name: name.clone(), ..Stage::default() };
    match (&*name, stage.get(&name)) {
        ("$lookup", Some(Value::Document(spec))) => lookup(&mut made, &spec, later.unwrap_or_default()),
        ("$group", Some(Value::Document(spec))) => {
            made.keys = words(&spec, "by").iter().map(|key| key.trim_start_matches('$').to_owned()).collect();
            made.folds = words(&spec, "fold").iter().filter_map(|entry| fold(entry)).collect();
        }
        ("$unionWith" | "$graphLookup", Some(Value::Document(spec))) => {
            made.from = Some(text(&spec, "from")).filter(|from| !from.is_empty());
        }
        _ => {}
    }
    made
}

/// `localField` and `foreignField`, or the equality in the stage's own pipeline; and which fields of the other document are used.
fn lookup(made: &mut Stage, spec: &Doc<'_>, later: &[Doc<'_>]) {
    let own = |name: &str| Some(text(spec, name)).filter(|text| !text.is_empty());
    made.from = own("from");
    made.local = own("localField");
    made.foreign = own("foreignField");
    let inner = stages(spec);
    if made.local.is_none() {
        let variables = words(spec, "let");
        let matched = inner.iter().filter(|stage| name(stage) == "$match").flat_map(|stage| words(stage, "$match"));
        if let Some((foreign, local)) = matched.into_iter().find_map(|entry| equality(&entry, &variables)) {
            (made.foreign, made.local) = (Some(foreign), Some(local));
        }
    }
    made.folds = inner
        .iter()
        .filter_map(|stage| match stage.get("$group") {
            Some(Value::Document(group)) => Some(words(&group, "fold")),
            _ if stage.contains("$count") => Some(vec!["count $sum ?".to_owned()]),
            _ => None,
        })
        .flatten()
        .filter_map(|entry| fold(&entry))
        .collect();
    if let Some(name) = own("as") {
        made.folds.extend(lengths(&name, later));
    }
    let of_inner = inner.iter().rev().find(|stage| name(stage) == "$project").map(|stage| words(stage, "$project"));
    made.fields = match of_inner {
        Some(entries) => {
            let given = entries.iter().filter(|entry| !entry.ends_with(" 0"));
            Some(given.map(|entry| used(entry)).filter(|path| path != "_id").collect())
        }
        None => own("as").and_then(|name| used_later(&name, later)),
    };
}

/// Later stages that take nothing but the number of what was found: `n $size $reviews`.
fn lengths(name: &str, later: &[Doc<'_>]) -> Vec<super::Accumulated> {
    let mut texts = Vec::new();
    later.iter().for_each(|stage| every_text(stage, &mut texts));
    let size = format!("$size ${name}");
    let field = |text: &String| Some(text.strip_suffix(&*size)?.trim_end().to_owned());
    let path = format!("${name}");
    let is_other = |text: &&String| {
        !text.ends_with(&*size)
            && text
                .split(' ')
                .any(|part| part == path || part.strip_prefix(&*path).is_some_and(|rest| rest.starts_with('.')))
    };
    if texts.iter().any(|text| is_other(&text)) {
        return Vec::new();
    }
    let folds = texts.iter().filter_map(field);
    folds.map(|name| super::Accumulated { name, operator: "$sum".to_owned(), path: None }).collect()
}

/// `city $address.city` reads `address.city`, `name` reads itself.
fn used(entry: &str) -> String {
    let (path, rest) = entry.split_once(' ').unwrap_or((entry, ""));
    rest.strip_prefix('$').filter(|rest| !rest.contains(' ')).unwrap_or(path).to_owned()
}

/// The fields below `name` that later stages speak of; `None` if one of them takes all of it, or none says anything.
fn used_later(name: &str, later: &[Doc<'_>]) -> Option<Vec<String>> {
    let mut all: Vec<String> = Vec::new();
    let mut texts = Vec::new();
    later.iter().filter(|stage| !stage.contains("$unwind")).for_each(|stage| every_text(stage, &mut texts));
    for part in texts.iter().flat_map(|text| text.split(' ')) {
        let path = part.strip_prefix('$').unwrap_or(part);
        if path == name {
            return None;
        }
        if let Some(field) = path.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'))
            && !all.iter().any(|known| known == field)
        {
            all.push(field.to_owned());
        }
    }
    all.retain(|field| field != "_id");
    (!all.is_empty()).then_some(all)
}

fn every_text(doc: &Doc<'_>, texts: &mut Vec<String>) {
    for (_, value) in doc.iter() {
        of_value(&value, texts);
    }
}

fn of_value(value: &Value<'_>, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.as_str().to_owned()),
        Value::Document(inner) => every_text(inner, texts),
        Value::Array(items) => items.iter().for_each(|item| of_value(&item, texts)),
        _ => {}
    }
}

/// `$expr $eq $_id $$c` with `c $customerId`: the foreign path and the local one.
fn equality(entry: &str, variables: &[String]) -> Option<(String, String)> {
    let parts: Vec<&str> = entry.split(' ').collect();
    let place = parts.windows(3).position(|three| three.first() == Some(&"$eq"))?;
    let sides = (*parts.get(place + 1)?, *parts.get(place + 2)?);
    let (variable, foreign) = match (sides.0.strip_prefix("$$"), sides.1.strip_prefix("$$")) {
        (Some(variable), None) => (variable, sides.1),
        (None, Some(variable)) => (variable, sides.0),
        _ => return None,
    };
    let local = variables.iter().find_map(|entry| entry.strip_prefix(variable)?.strip_prefix(" $"))?;
    Some((foreign.strip_prefix('$')?.to_owned(), local.to_owned()))
}

/// `stars $avg $rating` as `(stars, $avg, rating)`. What is made of several paths is no fold of one.
fn fold(entry: &str) -> Option<super::Accumulated> {
    let parts: Vec<&str> = entry.split(' ').collect();
    let [name, operator, argument @ ..] = parts.as_slice() else { return None };
    let path = match argument {
        [] | ["?"] => None,
        [path] => Some(path.strip_prefix('$')?.to_owned()),
        _ => return None,
    };
    Some(super::Accumulated { name: (*name).to_owned(), operator: (*operator).to_owned(), path })
}

fn stages<'d>(doc: &Doc<'d>) -> Vec<Doc<'d>> {
    let Some(Value::Array(stages)) = doc.get("stages") else { return Vec::new() };
    let documents = stages.iter().filter_map(|stage| match stage {
        Value::Document(stage) => Some(stage),
        _ => None,
    });
    documents.collect()
}

fn name(stage: &Doc<'_>) -> String {
    stage.iter().next().map(|(name, _)| name.as_str().to_owned()).unwrap_or_default()
}

fn words(doc: &Doc<'_>, name: &str) -> Vec<String> {
    let Some(Value::Array(list)) = doc.get(name) else { return Vec::new() };
    list.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

fn paths(words: &[String]) -> Vec<String> {
    words.iter().filter_map(|entry| entry.split(' ').next().map(str::to_owned)).collect()
}
