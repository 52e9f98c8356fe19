//! The states of a rule (SEMANTICS R3): `absent → maintaining → seeding → on → retiring → absent`. While a dump is being restored the
//! rules that it brings or touches are `restoring`; then they begin at `maintaining`.
//!
//! A rule is maintained by every writer before its seeding begins, so that nothing falls between the two. While it is being
//! seeded, the position says which hosts are done: a change for a host before it is a delta; for any other host a shared
//! fence and nothing else, since seeding will evaluate that host later.
//!
//! The position that writers are shown runs ahead: it is moved to the end of a chunk *before* the chunk is seeded. A delta
//! that meets a host too early is overwritten by the exact value; a fence where a delta was needed would be a gap. Writers
//! look at it after their transaction began: whoever began after a chunk was committed then knows of it.

use document::value::order;
use document::{Doc, DocWriter, Value};
use std::cmp::Ordering;

/// The phase of seeding that walks the source.
const SOURCE: &str = "source";

/// Where a rule is in its life. A rule that is absent has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum State {
    /// Written down, and kept for hosts that are written anew; no host is seeded yet.
    #[default]
    Maintaining,
    /// Of a roll-up: source documents before `position`, by `_id`, are counted in the states of their hosts, which show nothing of
    /// it yet. Written to the catalog as a phase of seeding.
    Gathering {
        position: Option<Value<'static>>,
    },
    /// Hosts before `position`, by `_id`, are right and kept so; the largest value there is stands for all.
    Seeding {
        position: Option<Value<'static>>,
    },
    On,
    /// No longer kept; its traces are being removed.
    Retiring,
    /// A dump is being restored that has the rule or its documents: not in force until that has ended.
    Restoring,
}

impl State {
    pub fn name(&self) -> &'static str {
        match self {
            State::Maintaining => "maintaining",
            State::Gathering { .. } | State::Seeding { .. } => "seeding",
            State::On => "on",
            State::Retiring => "retiring",
            State::Restoring => "restoring",
        }
    }

    /// Whether the rule's field of the host `id` is right and must be kept so by deltas.
    pub fn reached(&self, id: &Value<'_>) -> bool {
        match self {
            State::On => true,
            State::Seeding { position: Some(Value::MaxKey) } => true,
            State::Seeding { position: Some(position) } => order::compare(id, position) == Ordering::Less,
            State::Maintaining
            | State::Gathering { .. }
            | State::Seeding { position: None }
            | State::Retiring
            | State::Restoring => false,
        }
    }

    /// Whether the source document `id` of a roll-up is counted in the state of its hosts, and must be kept so.
    pub fn has_gathered(&self, id: &Value<'_>) -> bool {
        match self {
            State::On | State::Seeding { .. } => true,
            State::Gathering { position: Some(Value::MaxKey) } => true,
            State::Gathering { position: Some(position) } => order::compare(id, position) == Ordering::Less,
            State::Maintaining | State::Gathering { position: None } | State::Retiring | State::Restoring => false,
        }
    }

    /// Whether writers keep the rule at all.
    pub fn is_kept(&self) -> bool {
        !matches!(self, State::Retiring | State::Restoring)
    }

    /// From a row of the catalog; `None` if it is no state that we know.
    pub(crate) fn of(row: &Doc<'_>) -> Option<State> {
        Some(match row.get("state")?.as_str()? {
            "maintaining" => State::Maintaining,
            "seeding" if row.get("phase").is_some_and(|phase| phase.as_str() == Some(SOURCE)) => {
                State::Gathering { position: row.get("position").map(Value::into_owned) }
            }
            "seeding" => State::Seeding { position: row.get("position").map(Value::into_owned) },
            "on" => State::On,
            "retiring" => State::Retiring,
            "restoring" => State::Restoring,
            _ => return None,
        })
    }

    pub(crate) fn write(&self, row: &mut DocWriter) {
        row.append("state", &Value::from(self.name()));
        if let State::Gathering { .. } = self {
            row.append("phase", &Value::from(SOURCE));
        }
        if let State::Seeding { position: Some(position) } | State::Gathering { position: Some(position) } = self {
            row.append("position", position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_reached_before_the_position() {
        let at = |position: Option<i32>| State::Seeding { position: position.map(Value::Int32) };
        for (state, id, reached) in [
            (State::Maintaining, 1, false),
            (at(None), 1, false),
            (at(Some(5)), 4, true),
            (at(Some(5)), 5, false),
            (State::Seeding { position: Some(Value::MaxKey) }, 5, true),
            (State::On, 6, true),
            (State::Retiring, 1, false),
        ] {
            assert_eq!(state.reached(&Value::Int32(id)), reached, "{state:?} {id}");
        }
    }

    #[test]
    fn a_source_is_gathered_before_the_position() {
        let at = |position: Option<i32>| State::Gathering { position: position.map(Value::Int32) };
        for (state, id, gathered) in [
            (State::Maintaining, 1, false),
            (at(None), 1, false),
            (at(Some(5)), 4, true),
            (at(Some(5)), 5, false),
            (State::Gathering { position: Some(Value::MaxKey) }, 5, true),
            (State::Seeding { position: None }, 5, true),
            (State::On, 6, true),
        ] {
            assert_eq!(state.has_gathered(&Value::Int32(id)), gathered, "{state:?} {id}");
            assert_eq!(state.reached(&Value::Int32(id)), state == State::On, "{state:?} {id}");
        }
    }

    #[test]
    fn states_are_read_as_they_were_written() {
        for state in [
            State::Maintaining,
            State::Gathering { position: None },
            State::Gathering { position: Some(Value::Int32(3)) },
            State::Seeding { position: None },
            State::Seeding { position: Some(Value::Null) },
            State::On,
            State::Retiring,
            State::Restoring,
        ] {
            let mut row = DocWriter::new();
            state.write(&mut row);
            assert_eq!(State::of(&row.finish()), Some(state));
        }
    }
}
