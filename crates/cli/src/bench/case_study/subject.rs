//! What is measured once: a layout, at a place, written by hand or declared.

use super::calendar::Day;
use super::events::{Event, Status};
use super::layout::{Layout, slot_number};
use super::place::Place;
use super::template::Template;
use super::{declared, hand};
use bson::Document;
use std::collections::HashMap;

/// Who keeps the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// The application, with upserts and pipelines of its own.
    Hand,
    /// Pleach, by a declaration.
    Declared,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Hand => "by hand",
            Way::Declared => "declared",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Way::Hand => "hand",
            Way::Declared => "declared",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    pub(crate) place: Place,
    pub(crate) way: Way,
    pub(crate) layout: Layout,
}

impl Subject {
    /// All that can be compared: the layouts as they are asked for, at each place.
    pub(crate) fn all(layouts: &[Layout], with_mongod: bool) -> Vec<Subject> {
        let mut places = vec![(Place::Mongod, Way::Hand), (Place::Embedded, Way::Hand)];
        places.extend([(Place::Embedded, Way::Declared), (Place::Proxy, Way::Declared)]);
        places.retain(|(place, _)| with_mongod || *place == Place::Embedded);
        let of_place = |(place, way): (Place, Way)| {
            let subject = move |layout: &Layout| Subject { place, way, layout: *layout };
            layouts.iter().map(subject).filter(Subject::is_possible)
        };
        places.into_iter().flat_map(of_place).collect()
    }

    /// Day documents are no buckets: nothing declares them.
    fn is_possible(&self) -> bool {
        self.way == Way::Hand || self.layout != Layout::Day
    }

    /// For people: `Pleach embedded, declared`.
    pub(crate) fn where_and_how(&self) -> String {
        format!("{}, {}", self.place.name(), self.way.name())
    }

    /// In file names, and to choose by.
    pub(crate) fn word(&self) -> String {
        let place = match self.place {
            Place::Mongod => "mongod",
            Place::Embedded => "embedded",
            Place::Proxy => "proxy",
        };
        format!("{place}-{}-{}", self.way.word(), self.layout.word())
    }

    /// The database that it has for itself.
    pub(crate) fn db(&self) -> String {
        format!("pleach_case_study_{}", self.word().replace('-', "_"))
    }

    /// What clients write to and read from.
    pub(crate) fn collection(&self) -> &'static str {
        match self.way {
            Way::Hand => hand::COLLECTION,
            Way::Declared => declared::COLLECTION,
        }
    }

    /// Where the documents are.
    pub(crate) fn stored(&self) -> &'static str {
        match self.way {
            Way::Hand => hand::COLLECTION,
            Way::Declared => declared::STORED,
        }
    }

    pub(crate) fn declaration(&self) -> Option<String> {
        match self.way {
            Way::Hand => None,
            Way::Declared => declared::declaration(&self.db(), self.layout),
        }
    }

    pub(crate) fn report(&self, key: u32, start: Day, end: Day) -> Vec<Document> {
        match self.way {
            Way::Hand => hand::report(self.layout, key, start, end),
            Way::Declared => declared::report(key, start, end),
        }
    }
}

/// The upserts of a subject as bytes; each kind is made once.
pub(crate) struct Statements {
    subject: Subject,
    made: HashMap<(Status, u16), Template>,
}

impl Statements {
    pub(crate) fn of(subject: Subject) -> Statements {
        Statements { subject, made: HashMap::new() }
    }

    pub(crate) fn append(&mut self, event: &Event, out: &mut Vec<u8>) {
        let Subject { way, layout, .. } = self.subject;
        let slot = match way {
            Way::Hand => slot_number(layout, event),
            Way::Declared => 0,
        };
        let make = || match way {
            Way::Hand => Template::of(&hand::upsert(layout, event), layout),
            Way::Declared => Template::of(&declared::upsert(event), layout),
        };
        self.made.entry((event.status, slot)).or_insert_with(make).append(event, out);
    }
}
