//! The end of an outlier rule: all items come back into their arrays, and what was made for it goes. A document whose array no longer
//! fits keeps its flag and its overflow, and is named.

use crate::execute::access::{Access, update_one, update_op};
use crate::execute::gate::Point;
use crate::life::outlier::arrange::{Arranged, arrange, counts};
use crate::life::relocate::stored::{drop_if_there, is_empty, look_up};
use crate::life::transaction::OwnTransaction;
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, WalkEnd, walk};
use crate::life::{CatalogRule, Life, catalog, retire};
use crate::mql::{document, object};
use crate::rule::Outlier;
use document::backend::{Answer, Session};
use document::filter::Filter;
use document::pipeline::expr::Names;
use document::update::Update;
use document::value::{order, show};
use document::{Doc, Result, Value};
use std::sync::Arc;

const PACE: Pace = Pace { first: 100, most: 1_000, bytes: 8 << 20 };

pub(crate) async fn bring_back(life: &Life, entry: &CatalogRule, outlier: &Arc<Outlier>) -> Result<()> {
    // Nobody may still be moving items to the overflow.
    life.settled_everywhere(&entry.db).await?;
    let whole = Arc::new(outlier.without_limit());
    let mut returning = Returning { life, entry, outlier: &whole, too_large: Vec::new() };
    match walk(life, PACE, None, &mut returning).await? {
        WalkEnd::Superseded => return life.reload().await,
        WalkEnd::Reached => {}
    }
    for id in &returning.too_large {
        tracing::warn!(
            rule = &*entry.rule.name,
            id = %show::element(id),
            "the array no longer fits into its document: the overflow stays"
        );
    }
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    life.pass(Point::Life("unview")).await?;
    let items = outlier.items();
    if look_up(&mut at, &items).await?.is_some_and(|found| found.is_view()) {
        drop_if_there(&mut at, &items).await?;
    }
    if is_empty(&mut at, &outlier.overflow).await? {
        drop_if_there(&mut at, &outlier.overflow).await?;
    }
    retire::end(life, entry).await
}

struct Returning<'a> {
    life: &'a Life,
    entry: &'a CatalogRule,
    outlier: &'a Arc<Outlier>,
    /// The documents whose array does not fit.
    too_large: Vec<Value<'static>>,
}

impl PartWork for Returning<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(self.one_part(part))
    }
}

impl Returning<'_> {
    async fn one_part(&mut self, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let (life, outlier) = (self.life, self.outlier);
        let context = life.adding_context();
        loop {
            let mut began = OwnTransaction::begin(life, &context).await?;
            let mut at = Access { backend: &*life.backend, session: &mut began.session, context: &context };
            let epoch = catalog::epoch(&mut at, &self.entry.db, &self.entry.rule.name).await?;
            if epoch != Some(self.entry.row.epoch) {
                return Ok(None);
            }
            let (hosts, next) = walk::read(&mut at, &outlier.host, part, None).await?;
            let is_whole = self.each(&mut at, &hosts).await?;
            life.pass(Point::Life("return")).await?;
            began.commit().await?;
            if is_whole {
                return Ok(Some(PartDone::of(&hosts, next)));
            }
        }
    }

    async fn each(&mut self, at: &mut Access<'_>, hosts: &[Doc<'static>]) -> Result<bool> {
        let outlier = self.outlier;
        let owners = hosts.iter().filter_map(|host| host.get("_id")).collect();
        let counts = counts(at, outlier, owners).await?;
        for host in hosts {
            let id = host.get("_id").unwrap_or(Value::Missing);
            let overflow = counts.iter().find(|(owner, _)| order::equal(owner, &id)).map_or(0, |(_, count)| *count);
            if overflow > 0 && !self.too_large.iter().any(|other| order::equal(other, &id)) {
                match arrange(at, outlier, host, overflow).await? {
                    Arranged::More => return Ok(false),
                    Arranged::TooLarge => self.too_large.push(id.clone()),
                    Arranged::Done => {}
                }
            }
            let is_kept = self.too_large.iter().any(|other| order::equal(other, &id));
            if self.entry.row.with_data && host.contains(&outlier.count) && !is_kept {
                let spec = document([("$unset", object([(&*outlier.count, Value::from(""))]))]);
                let update = Update::parse(&Value::Document(spec), &[], &mut Names::new())?;
                at.write(&update_op(&outlier.host, vec![update_one(Filter::equality("_id", &id), update)])).await?;
            }
        }
        Ok(true)
    }
}
