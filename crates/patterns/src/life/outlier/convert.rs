//! Walks the hosts and divides the arrays that are there, online: part by part, each in one transaction; a huge array in several. It can
//! be killed anywhere and goes on from its position.

use crate::execute::access::Access;
use crate::execute::gate::Point;
use crate::life::outlier::arrange::{Arranged, arrange, counts};
use crate::life::transaction::OwnTransaction;
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, WalkEnd, walk};
use crate::life::{CatalogRule, Life, catalog};
use crate::rule::Outlier;
use crate::rule::state::State;
use document::backend::Answer;
use document::value::order;
use document::{Doc, Result, Value};
use std::sync::Arc;

/// A part holds about so many bytes of hosts.
const PACE: Pace = Pace { first: 100, most: 1_000, bytes: 8 << 20 };

pub(crate) async fn convert(life: &Life, entry: &CatalogRule, outlier: &Arc<Outlier>) -> Result<()> {
    let State::Seeding { position } = &entry.row.state else { return Ok(()) };
    if matches!(position, Some(Value::MaxKey)) {
        return Ok(());
    }
    let mut converting = Converting { life, outlier, row: entry.row.clone() };
    match walk(life, PACE, position.clone(), &mut converting).await? {
        WalkEnd::Reached => Ok(()),
        WalkEnd::Superseded => life.reload().await,
    }
}

struct Converting<'a> {
    life: &'a Life,
    outlier: &'a Arc<Outlier>,
    row: catalog::Row,
}

impl PartWork for Converting<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(self.one_part(part))
    }
}

impl Converting<'_> {
    async fn one_part(&mut self, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let (life, outlier) = (self.life, self.outlier);
        let context = life.adding_context();
        loop {
            let mut began = OwnTransaction::begin(life, &context).await?;
            let mut at = Access { backend: &*life.backend, session: &mut began.session, context: &context };
            if catalog::epoch(&mut at, &outlier.host.db, &self.row.rule).await? != Some(self.row.epoch) {
                return Ok(None);
            }
            let (hosts, next) = walk::read(&mut at, &outlier.host, part, None).await?;
            life.pass(Point::Life("arrange")).await?;
            let is_whole = each(&mut at, outlier, &hosts).await?;
            if !is_whole {
                began.commit().await?;
                continue;
            }
            let mut row = self.row.clone();
            row.state = State::Seeding { position: Some(next.clone().unwrap_or(Value::MaxKey)) };
            row.done += i64::try_from(hosts.len()).unwrap_or(i64::MAX);
            life.pass(Point::Life("save")).await?;
            catalog::save(&mut at, &outlier.host.db, &row).await?;
            began.commit().await?;
            life.advanced(&outlier.host.db, &row);
            self.row = row;
            return Ok(Some(PartDone::of(&hosts, next)));
        }
    }
}

/// Arranges hosts that were read in the transaction; returns whether all are as they should be, or one needs another.
pub(crate) async fn each(at: &mut Access<'_>, outlier: &Outlier, hosts: &[Doc<'static>]) -> Result<bool> {
    let owners = hosts.iter().filter_map(|host| host.get("_id")).collect();
    let counts = counts(at, outlier, owners).await?;
    for host in hosts {
        let id = host.get("_id").unwrap_or(Value::Missing);
        let overflow = counts.iter().find(|(owner, _)| order::equal(owner, &id)).map_or(0, |(_, count)| *count);
        // A huge array has its transaction to itself and what was arranged before it.
        if arrange(at, outlier, host, overflow).await? == Arranged::More {
            return Ok(false);
        }
    }
    Ok(true)
}
