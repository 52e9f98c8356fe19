//! Stages that MongoDB knows and we refuse, in so many words.

use super::{Place, StageDef, parse::unrecognized, refuse};
use crate::code::Code;
use crate::error::Error;
use crate::value::Value;

/// A stage of ordinary MongoDB servers that is not there.
macro_rules! refused {
    ($constant:ident, $name:literal, $place:expr, $help:literal) => {
        pub(super) const $constant: StageDef =
            StageDef { name: $name, help: $help, parse: |_, _| Err(refuse($name)), place: $place, refused: true };
    };
}

/// A stage of MongoDB Atlas only: a server of one's own says that it does not know it.
macro_rules! atlas {
    ($constant:ident, $name:literal, $help:literal) => {
        pub(super) const $constant: StageDef = StageDef {
            name: $name,
            help: $help,
            parse: |_, _| Err(unrecognized($name).with_hint("it is a stage of MongoDB Atlas")),
            place: Place::First,
            refused: true,
        };
    };
}

refused!(CHANGE_STREAM, "$changeStream", Place::First, "Watches the changes of a collection.");
refused!(COLL_STATS, "$collStats", Place::First, "Gives figures about a collection.");
pub(super) const GEO_NEAR: StageDef = StageDef {
    name: "$geoNear",
    help: "Gives the documents nearest to a point.",
    parse: |spec, _| match spec {
        Value::Document(options) if !options.contains("near") => {
            Err(Error::new(Code::Location(5_860_400), "$geoNear requires a 'near' argument"))
        }
        _ => Err(refuse("$geoNear")),
    },
    place: Place::First,
    refused: true,
};
refused!(DENSIFY, "$densify", Place::Anywhere, "Adds documents where a sequence of values has gaps.");
refused!(FILL, "$fill", Place::Anywhere, "Fills in missing values from neighbouring documents.");
refused!(INDEX_STATS, "$indexStats", Place::First, "Tells how much each index is used.");
refused!(PLAN_CACHE_STATS, "$planCacheStats", Place::First, "Lists the cached query plans.");
refused!(SET_WINDOW_FIELDS, "$setWindowFields", Place::Anywhere, "Adds fields computed over a window of documents.");
atlas!(LIST_SEARCH_INDEXES, "$listSearchIndexes", "Lists the full-text indexes of a collection.");
atlas!(SEARCH, "$search", "Searches full text.");
atlas!(SEARCH_META, "$searchMeta", "Gives figures about a search of full text.");
atlas!(VECTOR_SEARCH, "$vectorSearch", "Gives the documents nearest to a vector.");

/// A stage that has its own place, which no collection of a client is.
macro_rules! elsewhere {
    ($constant:ident, $name:literal, $where:literal, $help:literal) => {
        pub(super) const $constant: StageDef = StageDef {
            name: $name,
            help: $help,
            parse: |_, _| Err(Error::new(Code::InvalidNamespace, concat!($name, $where))),
            place: Place::First,
            refused: true,
        };
    };
}

elsewhere!(
    CURRENT_OP,
    "$currentOp",
    " must be run against the 'admin' database with {aggregate: 1}",
    "Lists what the server is doing."
);
elsewhere!(
    LIST_LOCAL_SESSIONS,
    "$listLocalSessions",
    " must be run against the database with {aggregate: 1}, not a collection",
    "Lists the sessions of this server."
);
elsewhere!(
    LIST_SESSIONS,
    "$listSessions",
    " may only be run against config.system.sessions",
    "Lists the sessions of the deployment."
);
