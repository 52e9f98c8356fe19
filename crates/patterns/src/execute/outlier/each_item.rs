//! What an update makes of each item of an overflow by itself: gone, or another; and where no item may be there twice, that none is.

use crate::execute::attempt::Attempt;
use crate::execute::outlier::change::{HostArray, spill};
use crate::execute::outlier::derive;
use crate::execute::outlier::owners::{self, of_owner};
use crate::rule::Outlier;
use crate::shapes::outlier::array_update::ArrayUpdate;
use crate::shapes::outlier::filter::{contains, one_of};
use crate::shapes::outlier::stored::index_of;
use document::filter::{Details, Filter};
use document::op::{Capture, Find, ReadOp, UpdateOp, UpdateStatement, WriteOp};
use document::update::Applied;
use document::{Doc, DocWriter, Result, Value};

impl HostArray<'_> {
    /// Applies the update to items of the overflow; returns how many are gone.
    pub(super) async fn each_item(
        &mut self,
        attempt: &mut Attempt<'_>,
        embedded: &[Value<'static>],
        part: &ArrayUpdate,
    ) -> Result<u64> {
        let outlier = self.outlier.clone();
        let Some(update) = &part.each else { return Ok(0) };
        if part.changes_each {
            // Two that change items and leave the owner as it is are ordered by nothing else.
            for kept in self.local.rule_of(&outlier) {
                attempt.exclusive(&kept, &self.owner()).await?;
            }
        }
        let mut filter = of_owner(&outlier, &self.owner());
        if let (Some(Some(values)), false) = (&part.pulled, part.changes_each) {
            filter = filter.and(Filter::from_node(one_of(&outlier, values.clone())));
        }
        let find = Find::matching(outlier.overflow.clone(), filter);
        let env = attempt.context.env.clone();
        let (mut gone, mut others) = (Vec::new(), Vec::new());
        for document in attempt.read(&self.local.rule_of(&outlier), ReadOp::Find(find)).await? {
            let mut alone = DocWriter::new();
            let item = document.get(&outlier.item).unwrap_or(Value::Null);
            alone.start_array(&outlier.field).append_at(0, &item).end();
            let Applied::Changed(after) = update.apply(&alone.finish(), &Details::default(), &env)? else { continue };
            match after.get(&outlier.field) {
                Some(Value::Array(items)) if !items.is_empty() => {
                    if let Some(item) = items.get(0) {
                        others.push((document, item.into_owned()));
                    }
                }
                _ => gone.push(document),
            }
        }
        if outlier.unique
            && let Some((_, item)) = others.iter().find(|(_, item)| contains(embedded, item))
        {
            return Err(outlier.twice(&self.owner(), item));
        }
        self.delete_all(attempt, &gone).await?;
        match outlier.unique && others.len() > 1 {
            true => self.written_anew(attempt, &others).await?,
            false => self.written_over(attempt, &others).await?,
        }
        Ok(gone.len() as u64)
    }

    /// Items of the overflow become others.
    async fn written_over(
        &mut self,
        attempt: &mut Attempt<'_>,
        others: &[(Doc<'static>, Value<'static>)],
    ) -> Result<()> {
        let (outlier, mut statements) = (self.outlier.clone(), Vec::new());
        for (document, item) in others {
            let id = document.get("_id").unwrap_or(Value::Missing);
            let (filter, update) = (Filter::equality("_id", &id), owners::set_item(&outlier, item)?);
            statements.push(UpdateStatement { filter, update, multi: false, upsert: false, hint: None });
            let after = with_item(&outlier, document, item);
            self.rows.overflow(&outlier, Some(document), Some(&after));
        }
        if !statements.is_empty() {
            self.overflow_changed = true;
            let op = WriteOp::Update(UpdateOp::of(outlier.overflow.clone(), statements));
            derive(attempt, self.local, &outlier, &op, &Capture::Nothing).await?;
        }
        Ok(())
    }

    /// The same where no item may be there twice: one may become what another was until now.
    async fn written_anew(
        &mut self,
        attempt: &mut Attempt<'_>,
        others: &[(Doc<'static>, Value<'static>)],
    ) -> Result<()> {
        let before: Vec<Doc<'static>> = others.iter().map(|(document, _)| document.clone()).collect();
        self.delete_all(attempt, &before).await?;
        let numbered: Vec<(u64, Value<'static>)> =
            others.iter().map(|(document, item)| (index_of(document), item.clone())).collect();
        spill(attempt, self.local, self.outlier, &self.owner(), &numbered, self.rows).await
    }

    /// Where no item may be there twice: embedded ones that became others are none of those that overflow.
    pub(super) async fn refuse_twice(&self, attempt: &mut Attempt<'_>, items: &[Value<'static>]) -> Result<()> {
        let outlier = self.outlier;
        outlier.refuse_twice(&self.owner(), items)?;
        let before = outlier.read(self.stored).items.unwrap_or_default();
        let others: Vec<Value<'static>> = items.iter().filter(|item| !contains(&before, item)).cloned().collect();
        if others.is_empty() {
            return Ok(());
        }
        let filter = of_owner(outlier, &self.owner()).and(Filter::from_node(one_of(outlier, others)));
        let find = Find { limit: Some(1), ..Find::matching(outlier.overflow.clone(), filter) };
        let found = attempt.read(&self.local.rule_of(outlier), ReadOp::Find(find)).await?;
        match found.first().and_then(|document| document.get(&outlier.item)) {
            Some(item) => Err(outlier.twice(&self.owner(), &item)),
            None => Ok(()),
        }
    }
}

fn with_item(outlier: &Outlier, document: &Doc<'static>, item: &Value<'_>) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(document.as_bytes().len());
    for (name, value) in document.iter() {
        writer.append(name.as_str(), if name.as_str() == outlier.item { item } else { &value });
    }
    writer.finish()
}
