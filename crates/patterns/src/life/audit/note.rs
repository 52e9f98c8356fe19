//! What an audit says besides its counts: what it could not compare, or not yet, and why.

use crate::life::preview::AllReferencesDangle;
use crate::rule::Rule;
use document::op::Namespace;

/// How complete the comparison of one rule is; the largest of several counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Coverage {
    /// Every document was compared.
    #[default]
    Whole,
    /// Some documents could not be compared yet.
    Partial,
    /// There was nothing to compare with, or nothing to compare.
    Impossible,
}

/// One thing to know about the comparison of a rule.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// The rule is applied in another form; that of the declaration was compared.
    Differs,
    /// Its database does not exist; a name that is near and does.
    NoDatabase {
        near: Option<String>,
    },
    /// The collection of its documents does not exist; a name that is near and does.
    NoCollection {
        collection: Namespace,
        near: Option<String>,
    },
    /// What its values come from does not exist.
    NoSource {
        source: Namespace,
        near: Option<String>,
    },
    /// No reference leads to a document, so nothing was compared with anything.
    AllReferencesDangle(AllReferencesDangle),
    /// The collection holds plain documents, no buckets.
    NotInBuckets {
        into: Namespace,
    },
    /// The array whose items it shows first still holds them.
    NotLifted {
        array: String,
    },
    /// So many documents have items in the array again: they came past Pleach.
    ItemsInArray {
        array: String,
        documents: u64,
    },
    Empty {
        collection: Namespace,
    },
    Seeding {
        checked: u64,
        unchecked: u64,
    },
    Retiring,
    /// So many documents are not right yet because a job for them is in the outbox.
    Waiting {
        documents: u64,
    },
    /// Source documents that count nowhere.
    Unkeyed(String),
    /// So many documents are still to be brought into buckets.
    Moving {
        documents: u64,
    },
    /// The rules are switched off for this run.
    Raw,
}

impl Note {
    /// The name by which programs know it.
    pub(crate) fn about(&self) -> &'static str {
        match self {
            Note::Differs => "differs",
            Note::NoDatabase { .. } => "no_database",
            Note::NoCollection { .. } => "no_collection",
            Note::NoSource { .. } => "no_source",
            Note::AllReferencesDangle(AllReferencesDangle { lacks_field: true, .. }) => "no_field",
            Note::AllReferencesDangle(_) => "dangling",
            Note::NotInBuckets { .. } => "not_in_buckets",
            Note::NotLifted { .. } => "not_lifted",
            Note::ItemsInArray { .. } => "items_in_array",
            Note::Empty { .. } => "empty",
            Note::Seeding { .. } => "seeding",
            Note::Retiring => "retiring",
            Note::Waiting { .. } => "outbox",
            Note::Unkeyed(_) => "unkeyed",
            Note::Moving { .. } => "moving",
            Note::Raw => "raw",
        }
    }

    pub(crate) fn extent(&self) -> Coverage {
        match self {
            Note::NoDatabase { .. }
            | Note::NoCollection { .. }
            | Note::NoSource { .. }
            | Note::AllReferencesDangle(_)
            | Note::NotLifted { .. }
            | Note::NotInBuckets { .. } => Coverage::Impossible,
            Note::Seeding { .. }
            | Note::Retiring
            | Note::Waiting { .. }
            | Note::ItemsInArray { .. }
            | Note::Moving { .. } => Coverage::Partial,
            Note::Differs | Note::Empty { .. } | Note::Unkeyed(_) | Note::Raw => Coverage::Whole,
        }
    }

    /// Whether what is missing may still come: no name that exists could be meant instead.
    pub(crate) fn may_come(&self) -> bool {
        matches!(
            self,
            Note::NoDatabase { near: None }
                | Note::NoCollection { near: None, .. }
                | Note::NoSource { near: None, .. }
                | Note::AllReferencesDangle(AllReferencesDangle { may_come: true, .. })
        )
    }

    pub(crate) fn text(&self, rule: &Rule) -> String {
        match self {
            Note::Differs => {
                "applied in another form than the declaration's; the declaration's form was compared".to_owned()
            }
            Note::NoDatabase { near } => no_database(&rule.host.db, near),
            Note::NoCollection { collection, near } => {
                format!("the collection `{collection}` does not exist{}", meant(near))
            }
            Note::NoSource { source, near } => format!(
                "the collection `{source}` does not exist{}; documents were compared as if it were empty",
                meant(near)
            ),
            Note::AllReferencesDangle(AllReferencesDangle { text, .. }) => {
                format!("{text}, so no reference was followed")
            }
            Note::NotInBuckets { into } => {
                format!("`{}` is not stored in buckets yet: `{into}` does not exist", rule.host)
            }
            Note::NotLifted { array } => {
                format!("the items of `{array}` are no documents yet: `pleach apply` lifts them")
            }
            Note::ItemsInArray { array, documents } => format!(
                "{documents} documents have items in `{array}` that were written past Pleach: move them to where the others are"
            ),
            Note::Empty { collection } => format!("nothing to check: `{collection}` is empty"),
            Note::Seeding { checked, unchecked } => {
                format!("being seeded: {checked} of {} documents were checked", checked + unchecked)
            }
            Note::Retiring => "being removed: its documents were not checked".to_owned(),
            Note::Waiting { documents } => {
                format!("{documents} wait for the outbox: these documents were not checked")
            }
            Note::Unkeyed(text) => text.clone(),
            Note::Moving { documents } => {
                format!("being brought into buckets: {documents} documents are not there yet and were not checked")
            }
            Note::Raw => {
                "the rules are switched off (--raw): what was compared may drift with the next write".to_owned()
            }
        }
    }
}

pub(super) fn no_database(db: &str, near: &Option<String>) -> String {
    format!("the database `{db}` does not exist{}", meant(near))
}

fn meant(near: &Option<String>) -> String {
    near.as_ref().map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"))
}
