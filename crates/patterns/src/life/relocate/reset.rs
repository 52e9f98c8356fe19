//! `dropDatabase` and shapes: the documents go; declared shapes are made anew, on and empty, and those that `create` made go too.

use crate::execute::access::Access;
use crate::life::catalog::Row;
use crate::life::relocate::record::{Location, Relocation, Switchover};
use crate::life::relocate::stored;
use crate::life::{CatalogRule, Life, catalog};
use crate::rule::Rule;
use crate::rule::State;
use crate::rule::names;
use document::Result;
use document::op::Namespace;

/// Writes into the row of a shape that its collections are to be made anew. Clients are held until they are.
pub(crate) fn begin(rule: &Rule, row: &mut Row) {
    let Some(into) = rule.shape().and_then(|shape| shape.declared_place()) else { return };
    let declaration = Some(rule.declaration.clone());
    let places = vec![Location { stored: into.collection.to_string(), declaration }];
    let timeseries = row.shape.take().and_then(|shape| shape.timeseries);
    let switchover = Switchover { places: places.clone(), renames: Vec::new(), begun: true };
    row.shape = Some(Relocation { places, switchover: Some(switchover), timeseries, ..Relocation::default() });
}

impl Life {
    /// Everything has gone but what belongs to Pleach: so do the collections that had made room, and the rules that go.
    pub(crate) async fn end_reset(&self, at: &mut Access<'_>, db: &str, before: &[CatalogRule]) -> Result<()> {
        for entry in before.iter().filter(|entry| entry.rule.shape().is_some()) {
            let shape = entry.row.shape.iter();
            let switchovers =
                shape.clone().flat_map(|shape| &shape.switchover).flat_map(|switchover| &switchover.places);
            for place in shape.flat_map(|shape| &shape.places).chain(switchovers) {
                let ns = Namespace::new(db, &place.stored);
                if names::is_bookkeeping(&ns) {
                    stored::drop_if_there(at, &ns).await?;
                }
            }
            if let Some(now) =
                self.entries().iter().find(|now| now.rule.host == entry.rule.host && now.rule.name == entry.rule.name)
                && (!now.is_declared() || now.row.state == State::Retiring)
            {
                catalog::remove(at, db, &now.row).await?;
                self.remove_entry(now);
            }
        }
        self.put_in_force()
    }
}
