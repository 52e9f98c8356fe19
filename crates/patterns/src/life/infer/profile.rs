//! Which field tells documents apart, and what those of one kind have in common.

use document::value::Path;
use document::{Doc, Value};
use std::collections::{BTreeMap, BTreeSet};

/// More texts than that are data, not kinds.
const MOST_KINDS: usize = 20;

/// The longest text that names a kind.
const LONGEST: usize = 64;

/// In how many of a hundred documents a discriminator must be: the others are from before it.
const PRESENT: usize = 95;

/// Names that people give a discriminator: they win over others that split as well.
const USUAL: [&str; 8] = ["type", "kind", "_t", "__t", "_type", "_cls", "category", "class"];

/// What is proposed.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) discriminator: String,
    pub(super) kinds: Vec<KindProfile>,
    pub(super) notes: Vec<String>,
}

/// The documents of one kind.
#[derive(Debug)]
pub(super) struct KindProfile {
    pub(super) name: String,
    pub(super) documents: u64,
    /// The fields that all of them have.
    pub(super) required: Vec<String>,
    /// The types of all fields that some have.
    pub(super) types: Vec<(String, Vec<&'static str>)>,
}

impl Proposal {
    /// `None` if no field splits the others.
    pub(super) fn of(documents: &[Doc<'static>], kept: &[Path]) -> Option<Proposal> {
        let names: BTreeSet<String> =
            documents.iter().flat_map(|doc| doc.iter().map(|(name, _)| name.as_str().to_owned())).collect();
        let is_own = |name: &&String| {
            let is_kept = kept.iter().any(|path| path.first() == &***name);
            !["_id", "_pleach", ""].contains(&&***name) && !name.contains('.') && !name.starts_with('$') && !is_kept
        };
        let names: Vec<&String> = names.iter().filter(is_own).collect();
        let best = names.iter().filter_map(|name| Split::by(documents, name, &names)).max_by_key(Split::rank)?;
        let missing = documents.len() - best.groups.values().map(Vec::len).sum::<usize>();
        let mut notes = Vec::new();
        if missing > 0 {
            notes.push(format!("{missing} of {} documents have no `{}`", documents.len(), best.discriminator));
        }
        let others: Vec<&String> = names.into_iter().filter(|name| **name != best.discriminator).collect();
        let kinds = best.groups.iter().map(|(name, group)| profile(name, group, &others)).collect();
        Some(Proposal { discriminator: best.discriminator.clone(), kinds, notes })
    }
}

/// The documents by the texts of one field.
struct Split<'d> {
    discriminator: String,
    groups: BTreeMap<String, Vec<&'d Doc<'static>>>,
    /// How many other fields it decides: some kinds always have them, others never.
    decided: usize,
}

impl<'d> Split<'d> {
    fn by(documents: &'d [Doc<'static>], name: &str, names: &[&String]) -> Option<Split<'d>> {
        let mut groups: BTreeMap<String, Vec<&Doc<'static>>> = BTreeMap::new();
        for doc in documents {
            match doc.get(name) {
                Some(Value::String(text)) if !text.as_str().is_empty() && text.as_str().len() <= LONGEST => {
                    groups.entry(text.as_str().to_owned()).or_default().push(doc);
                }
                None => {}
                Some(_) => return None,
            }
            if groups.len() > MOST_KINDS {
                return None;
            }
        }
        let present: usize = groups.values().map(Vec::len).sum();
        // A text that almost every document has for itself names no kind.
        if groups.len() < 2 || present * 100 < documents.len() * PRESENT || groups.len() * 2 > present {
            return None;
        }
        let decides = |field: &&&String| {
            let has = |group: &Vec<&Doc<'static>>| group.iter().filter(|doc| doc.contains(field)).count();
            let always = groups.values().any(|group| has(group) == group.len());
            always && groups.values().any(|group| has(group) == 0)
        };
        let decided = names.iter().filter(|field| ***field != name).filter(decides).count();
        (decided > 0).then(|| Split { discriminator: name.to_owned(), groups, decided })
    }

    /// The more it decides, the better; then a usual name, then few kinds.
    fn rank(&self) -> (usize, bool, std::cmp::Reverse<usize>) {
        (self.decided, USUAL.contains(&&*self.discriminator), std::cmp::Reverse(self.groups.len()))
    }
}

fn profile(name: &str, group: &[&Doc<'static>], others: &[&String]) -> KindProfile {
    let mut kind =
        KindProfile { name: name.to_owned(), documents: group.len() as u64, required: Vec::new(), types: Vec::new() };
    for field in others {
        let values: Vec<Value<'_>> = group.iter().filter_map(|doc| doc.get(field)).collect();
        if values.is_empty() {
            continue;
        }
        if values.len() == group.len() {
            kind.required.push((*field).clone());
        }
        kind.types.push(((*field).clone(), types(&values)));
    }
    kind
}

/// As `bsonType` says them; several kinds of numbers are numbers.
fn types(values: &[Value<'_>]) -> Vec<&'static str> {
    let mut all: BTreeSet<&'static str> = values.iter().map(Value::type_name).collect();
    const NUMBERS: [&str; 4] = ["double", "int", "long", "decimal"];
    if all.iter().filter(|name| NUMBERS.contains(name)).count() > 1 {
        all.retain(|name| !NUMBERS.contains(name));
        all.insert("number");
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn documents() -> Vec<Doc<'static>> {
        let mut all = Vec::new();
        for i in 0..10 {
            let colour = if i % 3 == 0 { "red" } else { "blue" };
            all.push(Doc::from(
                doc! { "_id": i, "type": "book", "title": "a", "isbn": format!("{i}"), "colour": colour },
            ));
            let radio = doc! { "_id": 10 + i, "type": "electronics", "title": "b", "volts": i, "colour": colour };
            all.push(Doc::from(radio));
        }
        all.push(Doc::from(
            doc! { "_id": 30, "type": "electronics", "title": "b", "volts": 1.5, "colour": "red", "note": "x" },
        ));
        all
    }

    #[test]
    fn the_field_that_decides_which_others_are_there_is_found() {
        let found = Proposal::of(&documents(), &[]).unwrap();
        assert_eq!(found.discriminator, "type");
        let kinds: Vec<(&str, u64, Vec<&str>)> = found
            .kinds
            .iter()
            .map(|kind| (&*kind.name, kind.documents, kind.required.iter().map(|name| &**name).collect()))
            .collect();
        assert_eq!(
            kinds,
            [("book", 10, vec!["colour", "isbn", "title"]), ("electronics", 11, vec!["colour", "title", "volts"])]
        );
        let volts = found.kinds[1].types.iter().find(|(name, _)| name == "volts").unwrap();
        assert_eq!(volts.1, ["number"]);
        assert!(found.kinds[1].types.iter().any(|(name, types)| name == "note" && types == &["string"]));
    }

    #[test]
    fn without_a_field_that_splits_there_is_no_proposal() {
        let same: Vec<Doc<'static>> = (0..10).map(|i| Doc::from(doc! { "_id": i, "type": "a", "x": i })).collect();
        assert!(Proposal::of(&same, &[]).is_none());
        let alike: Vec<Doc<'static>> = (0..10)
            .map(|i| Doc::from(doc! { "_id": i, "colour": if i % 2 == 0 { "r" } else { "b" }, "x": i }))
            .collect();
        assert!(Proposal::of(&alike, &[]).is_none());
    }
}
