//! The list of all stages.

use super::*;

/// All stages, sorted by name.
pub const STAGES: &[&StageDef] = &[
    &project::ADD_FIELDS,
    &bucket::STAGE,
    &bucket_auto::STAGE,
    &refused::CHANGE_STREAM,
    &refused::COLL_STATS,
    &count::STAGE,
    &refused::CURRENT_OP,
    &refused::DENSIFY,
    &documents::STAGE,
    &facet::STAGE,
    &refused::FILL,
    &refused::GEO_NEAR,
    &graph_lookup::STAGE,
    &group::STAGE,
    &refused::INDEX_STATS,
    &limit::STAGE,
    &refused::LIST_LOCAL_SESSIONS,
    &refused::LIST_SEARCH_INDEXES,
    &refused::LIST_SESSIONS,
    &lookup::STAGE,
    &match_::STAGE,
    &merge::STAGE,
    &out::STAGE,
    &refused::PLAN_CACHE_STATS,
    &project::PROJECT,
    &redact::STAGE,
    &replace_root::REPLACE_ROOT,
    &replace_root::REPLACE_WITH,
    &sample::STAGE,
    &refused::SEARCH,
    &refused::SEARCH_META,
    &project::SET,
    &refused::SET_WINDOW_FIELDS,
    &skip::STAGE,
    &sort::STAGE,
    &sort_by_count::STAGE,
    &union_with::STAGE,
    &project::UNSET,
    &unwind::STAGE,
    &refused::VECTOR_SEARCH,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_sorted_unique_and_documented() {
        for pair in STAGES.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
        for def in STAGES {
            assert!(def.name.starts_with('$'), "{}", def.name);
            assert!(def.help.ends_with('.') && def.help.len() > 10, "{} has no help", def.name);
        }
    }
}
