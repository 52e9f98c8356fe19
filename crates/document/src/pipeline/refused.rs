//! Stages that MongoDB knows and we refuse, in so many words.

use super::{Place, StageDef, parse::unrecognized, refuse};

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
refused!(CURRENT_OP, "$currentOp", Place::First, "Lists what the server is doing.");
refused!(GEO_NEAR, "$geoNear", Place::First, "Gives the documents nearest to a point.");
refused!(INDEX_STATS, "$indexStats", Place::First, "Tells how much each index is used.");
refused!(LIST_LOCAL_SESSIONS, "$listLocalSessions", Place::First, "Lists the sessions of this server.");
refused!(LIST_SESSIONS, "$listSessions", Place::First, "Lists the sessions of the deployment.");
refused!(PLAN_CACHE_STATS, "$planCacheStats", Place::First, "Lists the cached query plans.");
atlas!(LIST_SEARCH_INDEXES, "$listSearchIndexes", "Lists the full-text indexes of a collection.");
atlas!(SEARCH, "$search", "Searches full text.");
atlas!(SEARCH_META, "$searchMeta", "Gives figures about a search of full text.");
atlas!(VECTOR_SEARCH, "$vectorSearch", "Gives the documents nearest to a vector.");
