//! Dropping a shape: back to documents as they are, or the rule only, or all of it.

use crate::execute::access::Access;
use crate::life::relocate::{change, finish, readers_of_source};
use crate::life::{CatalogRule, Life, catalog};
use crate::rule::Rule;
use crate::rule::State;
use document::{Code, Error, Result};
use std::sync::atomic::Ordering;

/// What stays of a rule that is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaving {
    /// The field, or the collection, goes.
    pub with_data: bool,
    /// Of a bucket rule: the buckets stay as they are stored, and the view over them.
    pub keep_buckets: bool,
    /// Everything gets back what it had before the rule.
    pub restore: bool,
}

impl Leaving {
    pub(crate) fn check(self) -> Result<()> {
        let chosen = [("with_data", self.with_data), ("keep_buckets", self.keep_buckets), ("restore", self.restore)];
        let mut chosen = chosen.into_iter().filter(|(_, is)| *is).map(|(name, _)| name);
        match (chosen.next(), chosen.next()) {
            (Some(one), Some(other)) => {
                Err(Error::bad_value(format!("'{one}' and '{other}' contradict each other"))
                    .with_hint("say one of them"))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn refuse_buckets(self, rule: &Rule) -> Result<()> {
        match self.keep_buckets {
            true => Err(Error::bad_value(format!("rule {} has no buckets to keep: it keeps a field", rule.name))),
            false => Ok(()),
        }
    }
}

/// Writes down what becomes of it; the reconciler does it.
pub(crate) async fn begin(life: &Life, at: &mut Access<'_>, entry: &CatalogRule, leaving: Leaving) -> Result<()> {
    if leaving.with_data {
        readers_of_source::refuse_if_read(life, &entry.rule, "with its data")?;
    }
    if leaving.keep_buckets {
        readers_of_source::refuse_if_read(life, &entry.rule, "while its buckets stay")?;
        return finish::leave(life, at, entry).await;
    }
    let mut row = entry.row.clone();
    let since = row.epoch;
    let switchover = change::to_plain(at, entry).await?;
    let shape = row.shape.get_or_insert_default();
    shape.switchover = match leaving.with_data {
        true => None,
        // Nothing has to be made or renamed if it is on its way there already.
        false => switchover.filter(|switchover| switchover.places != shape.places),
    };
    row.state = State::Retiring;
    row.with_data = leaving.with_data;
    row.replaced.restore = leaving.restore;
    row.epoch += 1;
    row.by.clone_from(&life.process);
    (row.done, row.total) = (0, 0);
    life.unpublished.store(true, Ordering::Relaxed);
    if !catalog::replace(at, &entry.db, &row, since).await? {
        life.refresh(at).await?;
        return Err(Error::new(Code::ConflictingOperationInProgress, "the rule was changed meanwhile; try again"));
    }
    life.put_entry(CatalogRule::new(&entry.db, row, entry.rule.clone())?);
    life.put_in_force()
}
