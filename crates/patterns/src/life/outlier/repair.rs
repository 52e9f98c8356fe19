//! Makes hosts right that an audit found wrong: what is in the overflow counts, nothing of it is lost. Items without a host are deleted.

use crate::execute::access::Access;
use crate::life::Life;
use crate::life::audit::{AuditedRule, Figures, Report};
use crate::life::outlier::audit::found;
use crate::life::outlier::convert::each;
use crate::life::transaction::{OwnTransaction, retried};
use crate::rule::Outlier;
use document::filter::Filter;
use document::{Result, Value};
use std::sync::Arc;

pub(crate) async fn repair(
    life: &Life,
    asked: &AuditedRule,
    outlier: &Arc<Outlier>,
    figures: &mut Figures,
    report: &mut Report,
) -> Result<()> {
    for drift in found(life, asked, outlier, figures).await? {
        let is_host = drift.collection == outlier.host.collection;
        let outcome = retried(life, || mended(life, outlier, &drift.id, is_host)).await;
        match outcome {
            Ok(()) => report.note(figures, drift),
            Err(error) if error.is_of_statement() => report.failures.push((drift, error.message().to_owned())),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Mends one document, step by step.
async fn mended(life: &Life, outlier: &Arc<Outlier>, id: &Value<'static>, is_host: bool) -> Result<()> {
    let context = life.adding_context();
    loop {
        let mut began = OwnTransaction::begin(life, &context).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context: &context };
        let is_done = match is_host {
            true => match at.one(&outlier.host, id).await? {
                Some(host) => each(&mut at, outlier, &[host]).await?,
                None => true,
            },
            false => {
                if let Some(item) = at.one(&outlier.overflow, id).await? {
                    let owner = item.get(&outlier.owner).unwrap_or(Value::Missing);
                    if at.one(&outlier.host, &owner).await?.is_none() {
                        at.delete(&outlier.overflow, Filter::equality("_id", id)).await?;
                    }
                }
                true
            }
        };
        began.commit().await?;
        if is_done {
            return Ok(());
        }
    }
}
