//! What the catalog remembers about a shape: where its documents are, and what is about to change.
//!
//! `{ places: [ { stored, declaration } ], turn: { places, renames: [ { from, to } ], begun }, timeseries, indexes, plain_indexes,
//! plain_options, duplicates, moved: { stored, position } }` in the rule's row. A place without a declaration holds the documents as they are. New documents go to the first place.

use crate::life::catalog::long;
use crate::rule::shape::Place;
use document::op::Namespace;
use document::{ArrayWriter, Code, Doc, DocWriter, Error, Result, Value};

/// Where documents are, and in which form: that of a declaration, or as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    pub stored: String,
    pub declaration: Option<Doc<'static>>,
}

/// A change that is no transaction: collections are renamed and the view is made anew.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Switchover {
    /// Where the documents are when it is done.
    pub places: Vec<Location>,
    /// From, to.
    pub renames: Vec<(String, String)>,
    /// Some of it may be done already.
    pub begun: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relocation {
    /// None: the collection is still stored as it is, under its own name.
    pub places: Vec<Location>,
    pub switchover: Option<Switchover>,
    /// The options of `create` that made the rule, as `listCollections` shows them.
    pub timeseries: Option<Doc<'static>>,
    /// The indexes that clients have made on a time-series collection, as `listIndexes` shows them.
    pub indexes: Vec<Doc<'static>>,
    /// The indexes that the collection had when it was plain, as `listIndexes` shows them: made again when it becomes plain.
    pub plain_indexes: Vec<Doc<'static>>,
    /// The options that it had then, as `listCollections` shows them: given back with the indexes.
    pub plain_options: Option<Doc<'static>>,
    /// On the way back: how many readings shared their `_id` with another and got a new one.
    pub duplicates: i64,
    /// How far the mover has come: of which collection the documents before which `_id` were moved.
    pub moved: Option<(String, Value<'static>)>,
}

impl Location {
    pub(crate) fn plain(stored: &str) -> Location {
        Location { stored: stored.to_owned(), declaration: None }
    }

    pub(crate) fn place(&self, db: &str) -> Result<Place> {
        let stored = Namespace::new(db, &self.stored);
        let shape = match &self.declaration {
            None => return Ok(Place::plain(stored)),
            Some(declaration) => match crate::declare::from_catalog(declaration)?.shape() {
                Some(shape) => shape.clone(),
                None => {
                    let message = format!("{} is said to hold documents of a rule that keeps a field", self.stored);
                    return Err(Error::new(Code::InternalError, message));
                }
            },
        };
        Ok(Place { stored, shape })
    }

    fn read(place: &Value<'_>) -> Option<Location> {
        let Value::Document(place) = place else { return None };
        let declaration = match place.get("declaration") {
            Some(Value::Document(declaration)) => Some(declaration.into_owned()),
            _ => None,
        };
        Some(Location { stored: place.get("stored")?.as_str()?.to_owned(), declaration })
    }

    fn write(&self) -> Value<'static> {
        let mut place = DocWriter::new();
        place.append("stored", &Value::from(&*self.stored));
        if let Some(declaration) = &self.declaration {
            place.append("declaration", &Value::Document(declaration.borrow()));
        }
        Value::Document(place.finish())
    }
}

/// All places, as the layer knows them.
pub(crate) fn places(places: &[Location], db: &str) -> Result<Vec<Place>> {
    places.iter().map(|place| place.place(db)).collect()
}

impl Relocation {
    pub(crate) fn read(row: &Doc<'_>) -> Option<Relocation> {
        let Some(Value::Document(shape)) = row.get("shape") else { return None };
        let switchover = match shape.get("turn") {
            Some(Value::Document(switchover)) => Some(Switchover {
                places: read_places(&switchover),
                renames: read_renames(&switchover),
                begun: switchover.get("begun").is_some_and(|begun| begun.is_truthy()),
            }),
            _ => None,
        };
        let options = |name: &str| shape.get(name).and_then(document);
        let documents = |name: &str| match shape.get(name) {
            Some(Value::Array(documents)) => documents.iter().filter_map(document).collect(),
            _ => Vec::new(),
        };
        let moved = match shape.get("moved") {
            Some(Value::Document(moved)) => moved
                .get("stored")
                .and_then(|stored| stored.as_str().map(str::to_owned))
                .zip(moved.get("position").map(Value::into_owned)),
            _ => None,
        };
        Some(Relocation {
            places: read_places(&shape),
            switchover,
            timeseries: options("timeseries"),
            indexes: documents("indexes"),
            plain_indexes: documents("plain_indexes"),
            plain_options: options("plain_options"),
            duplicates: long(shape.get("duplicates")),
            moved,
        })
    }

    pub(crate) fn write(&self) -> Doc<'static> {
        let mut shape = DocWriter::new();
        shape.append("places", &write_places(&self.places));
        if let Some(switchover) = &self.switchover {
            shape.start_document("turn").append("places", &write_places(&switchover.places));
            let mut renames = ArrayWriter::new();
            for (from, to) in &switchover.renames {
                let mut rename = DocWriter::new();
                rename.append("from", &Value::from(&**from)).append("to", &Value::from(&**to));
                renames.push(&Value::Document(rename.finish()));
            }
            shape
                .append("renames", &Value::Array(renames.finish()))
                .append("begun", &Value::Bool(switchover.begun))
                .end();
        }
        for (name, options) in [("timeseries", &self.timeseries), ("plain_options", &self.plain_options)] {
            if let Some(options) = options {
                shape.append(name, &Value::Document(options.borrow()));
            }
        }
        for (name, indexes) in [("indexes", &self.indexes), ("plain_indexes", &self.plain_indexes)] {
            if !indexes.is_empty() {
                let indexes = indexes.iter().map(|index| Value::Document(index.borrow())).collect();
                shape.append(name, &Value::Array(indexes));
            }
        }
        if self.duplicates > 0 {
            shape.append("duplicates", &Value::Int64(self.duplicates));
        }
        if let Some((stored, position)) = &self.moved {
            shape.start_document("moved").append("stored", &Value::from(&**stored)).append("position", position).end();
        }
        shape.finish()
    }

    /// The same form under a declaration that says it in other words.
    pub(crate) fn declared_as(self, before: &Doc<'static>, now: &Doc<'static>) -> Relocation {
        self.redeclared(|declaration| if declaration == before { now.clone() } else { declaration.clone() })
    }

    /// The same with every place's declaration changed.
    pub(crate) fn redeclared(mut self, change: impl Fn(&Doc<'static>) -> Doc<'static>) -> Relocation {
        let switchover = self.switchover.iter_mut().flat_map(|switchover| &mut switchover.places);
        for place in self.places.iter_mut().chain(switchover) {
            place.declaration = place.declaration.as_ref().map(&change);
        }
        self
    }

    /// Where the mover goes on in a collection.
    pub(crate) fn position(&self, stored: &Namespace) -> Option<&Value<'static>> {
        self.moved.as_ref().filter(|(name, _)| **name == *stored.collection).map(|(_, position)| position)
    }

    /// A shape whose collections are looked at anew: what is known of the plain collection stays.
    pub(crate) fn begun_anew(self) -> Relocation {
        Relocation { plain_indexes: self.plain_indexes, plain_options: self.plain_options, ..Relocation::default() }
    }

    /// Where documents still are that go to the first place.
    pub(crate) fn is_moving(&self) -> bool {
        self.places.len() > 1 || self.switchover.is_some()
    }
}

fn document(value: Value<'_>) -> Option<Doc<'static>> {
    match value {
        Value::Document(doc) => Some(doc.into_owned()),
        _ => None,
    }
}

fn read_places(doc: &Doc<'_>) -> Vec<Location> {
    match doc.get("places") {
        Some(Value::Array(places)) => places.iter().filter_map(|place| Location::read(&place)).collect(),
        _ => Vec::new(),
    }
}

fn write_places(places: &[Location]) -> Value<'static> {
    Value::Array(places.iter().map(Location::write).collect())
}

fn read_renames(switchover: &Doc<'_>) -> Vec<(String, String)> {
    let Some(Value::Array(renames)) = switchover.get("renames") else { return Vec::new() };
    let names = |rename: Value<'_>| match rename {
        Value::Document(rename) => {
            let text = |name: &str| Some(rename.get(name)?.as_str()?.to_owned());
            Some((text("from")?, text("to")?))
        }
        _ => None,
    };
    renames.iter().filter_map(names).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn what_is_under_way_is_read_as_it_was_written() {
        let declaration = Doc::from(doc! { "time": "ts" });
        let stored = Location { stored: "hours".to_owned(), declaration: Some(declaration.clone()) };
        let switchover = Switchover {
            places: vec![stored.clone(), Location::plain("pleach.aside.data")],
            renames: vec![("data".to_owned(), "pleach.aside.data".to_owned())],
            begun: true,
        };
        for relocation in [
            Relocation::default(),
            Relocation {
                places: vec![stored.clone()],
                switchover: None,
                timeseries: Some(declaration.clone()),
                indexes: vec![declaration.clone()],
                plain_indexes: vec![declaration.clone()],
                plain_options: Some(declaration),
                duplicates: 2,
                moved: Some(("hours".to_owned(), Value::Int32(7))),
            },
            Relocation { places: vec![stored], switchover: Some(switchover), ..Relocation::default() },
        ] {
            let mut row = DocWriter::new();
            row.append("shape", &Value::Document(relocation.write()));
            assert_eq!(Relocation::read(&row.finish()), Some(relocation));
        }
    }
}
