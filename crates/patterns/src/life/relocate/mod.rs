//! The life of a shape: a collection is brought into buckets, into other buckets and back, while clients read and write it.
//!
//! A move has two kinds of steps. A [`switchover`] renames collections and makes the view anew; clients are held for that moment. Then
//! [`mover`] takes documents from one place to the other, part by part. The catalog says what is under way ([`record`]), so that a
//! stop anywhere costs nothing.

pub(crate) mod adopt;
pub(crate) mod audit;
pub(crate) mod change;
pub mod drop;
pub(crate) mod finish;
pub(crate) mod health;
pub(crate) mod moved;
pub(crate) mod mover;
pub(crate) mod own;
pub(crate) mod plan;
mod readers;
pub(crate) mod readers_of_source;
pub mod record;
pub(crate) mod repair;
pub(crate) mod reset;
pub(crate) mod stored;
mod stored_access;
pub(crate) mod switchover;
pub(crate) mod way_back;

use crate::life::replaced::plain;
use crate::life::{CatalogRule, Life};
use crate::rule::State;
use document::Result;

/// Brings a shape one step further.
pub(crate) async fn advance(life: &Life, entry: &CatalogRule) -> Result<()> {
    let switchover = entry.row.shape.as_ref().and_then(|shape| shape.switchover.as_ref());
    match (&entry.row.state, switchover) {
        (State::On | State::Restoring, _) => Ok(()),
        (State::Retiring, Some(switchover)) if switchover.places.is_empty() => finish::off(life, entry).await,
        (State::Retiring, None) if entry.row.with_data => finish::off(life, entry).await,
        (_, Some(_)) => switchover::run(life, entry).await,
        (State::Maintaining | State::Gathering { .. } | State::Seeding { .. }, None) => {
            match settled_and_drained(life, entry).await? {
                true => finish::on(life, entry).await,
                false => Ok(()),
            }
        }
        (State::Retiring, None) => match settled_and_drained(life, entry).await? && given_back(life, entry).await? {
            true => finish::off(life, entry).await,
            false => Ok(()),
        },
    }
}

/// No process may still write without knowing where documents go.
async fn settled_and_drained(life: &Life, entry: &CatalogRule) -> Result<bool> {
    if entry.places.len() > 1 {
        life.settled_everywhere(&entry.db).await?;
    }
    mover::drain(life, entry).await
}

/// What earlier lives of the rule have kept. Returns `false` if the rule was changed meanwhile.
async fn given_back(life: &Life, entry: &CatalogRule) -> Result<bool> {
    match entry.row.replaced.restore {
        true => plain::restore(life, entry).await,
        false => Ok(true),
    }
}
