//! What is left of a lift that was not ended: the host that the walk was about has some of its items twice, as documents and in its array.
//! When the rule goes, these documents do.

use crate::execute::access::Access;
use crate::life::lift::item::Lift;
use crate::life::lift::order_rows::{self, is_order_row};
use crate::life::lift::{IDS, children};
use crate::life::replaced::amount::Amount;
use crate::life::replaced::restore::among;
use crate::life::replaced::{Lifted, amount, host_id, host_of};
use crate::life::transaction::{OwnTransaction, retried};
use crate::life::{CatalogRule, Life, catalog, walk};
use crate::rule::{key, names};
use document::filter::Filter;
use document::op::{Delete, DeleteStatement, Find, WriteOp};
use document::{Doc, Result, Value};

/// Deletes the children of the host whose array was being lifted: all its items are still in the array. Returns the row as it is then, or
/// `None` if somebody has changed the rule meanwhile.
pub(crate) async fn undo(
    life: &Life,
    entry: &CatalogRule,
    mut row: catalog::Row,
    since: i64,
) -> Result<Option<catalog::Row>> {
    let Some(Lifted { array, to: Some(host), items, .. }) = row.replaced.lifted.clone() else { return Ok(Some(row)) };
    let Some(lift) = Lift::new(&entry.rule, &array).filter(|_| items > 0) else { return Ok(Some(row)) };
    loop {
        let Some(rest) = retried(life, || undo_some(life, &lift, &row, since, &host)).await? else { return Ok(None) };
        if rest {
            continue;
        }
        if let Some(lifted) = &mut row.replaced.lifted {
            lifted.items = 0;
        }
        life.advanced(&entry.db, &row);
        return Ok(Some(row));
    }
}

/// Undoes one row of the host. Returns whether there may be more, or `None` if the rule was changed.
async fn undo_some(
    life: &Life,
    lift: &Lift<'_>,
    row: &catalog::Row,
    since: i64,
    host: &Value<'static>,
) -> Result<Option<bool>> {
    let context = &life.context();
    let mut began = OwnTransaction::begin(life, context).await?;
    let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
    let db = &lift.host().db;
    if catalog::epoch(&mut at, db, &row.rule).await? != Some(row.epoch) {
        return Ok(None);
    }
    let first = host_id(&lift.rule.name, since, Some(host));
    let of_host = |row: &Doc<'static>| host_of(row).is_some_and(|of| key::bytes(&of) == key::bytes(host));
    let rows = at.find(Find { limit: Some(2), ..walk::range(&names::replaced(db), Some(&first), None) }).await?;
    let Some(order) = rows.into_iter().find(|row| is_order_row(row) && of_host(row)) else {
        let mut done = row.clone();
        if let Some(lifted) = &mut done.replaced.lifted {
            lifted.items = 0;
        }
        catalog::save(&mut at, db, &done).await?;
        began.commit().await?;
        return Ok(Some(false));
    };
    delete_children(life, &mut began, lift, &order_rows::ids(&order), &[]).await?;
    let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
    at.delete(&names::replaced(db), among(order.get("_id").into_iter().collect())).await?;
    amount::add(&mut at, lift.rule, since, Amount::default().minus(&order)).await?;
    began.commit().await?;
    Ok(Some(true))
}

/// Deletes children as a client would: what comes from them follows.
pub(super) async fn delete_children(
    life: &Life,
    began: &mut OwnTransaction<'_>,
    lift: &Lift<'_>,
    ids: &[Value<'static>],
    keys: &[Value<'static>],
) -> Result<()> {
    let is_shaped = life.patterned.rules().shaped(lift.source()).is_some();
    for some in ids.chunks(IDS) {
        let mut filter = among(some.to_vec());
        if is_shaped && !keys.is_empty() {
            filter = filter.and(Filter::among(&lift.by.dotted(), keys.to_vec()));
        }
        let op = Delete::of(lift.source().clone(), vec![DeleteStatement::all(filter)]);
        children(life, began).write(&WriteOp::Delete(op)).await?;
    }
    Ok(())
}
