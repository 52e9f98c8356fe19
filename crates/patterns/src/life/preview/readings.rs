//! What a move into buckets does to the documents that exist: whose `_id` is lost, whose time is cut, which have no place.

use crate::execute::access::{Access, aggregate};
use crate::life::preview::refusal::{Need, Refusal};
use crate::life::preview::sample::shown;
use crate::life::preview::{RulePreview, documents, long};
use crate::life::relocate::change::RelocationPlan;
use crate::life::{catalog, relocate};
use crate::rule::Rule;
use crate::shapes::bucket::{Body, Bucket};
use document::{Doc, DocWriter, Result};

/// What becomes of the documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Losses {
    /// How many get another `_id`, or are added up with others. `None` if the buckets keep each `_id`.
    ids: Option<u64>,
    /// How many have a time that is cut. `None` if the buckets cut none.
    times: Option<u64>,
    /// How many have no place in the buckets.
    misfits: u64,
    /// One of these, and why.
    misfit: Option<String>,
}

/// Counts what the documents would lose, and refuses what is lost without a word or cannot be moved at all.
pub(super) async fn look(at: &mut Access<'_>, change: &RelocationPlan, rule_preview: &mut RulePreview) -> Result<()> {
    let rule = rule_preview.rule.clone();
    let Some(bucket) = rule.bucket() else { return Ok(()) };
    let mut losses = Losses::of(bucket);
    for (now, place) in relocate::moved::sources(&rule, &change.switchover)? {
        let assessed = match place.bucket() {
            None => bucket.assess()?,
            Some(from) => from.unpack().then(bucket.assess()?),
        };
        let rows = at.all(aggregate(&now, assessed)).await?;
        rows.iter().for_each(|row| losses.add(bucket, row));
    }
    rule_preview.refusals.extend(losses.refusals(&rule, bucket));
    rule_preview.losses = Some(losses);
    Ok(())
}

impl Losses {
    fn of(bucket: &Bucket) -> Losses {
        let (ids, times) = (bucket.makes_ids().then_some(0), bucket.cuts_to().map(|_| 0));
        Losses { ids, times, ..Losses::default() }
    }

    /// Adds a row of [`Bucket::assess`].
    fn add(&mut self, bucket: &Bucket, row: &Doc<'static>) {
        let number = |name: &str| u64::try_from(catalog::long(row.get(name))).unwrap_or(0);
        let id = |name: &str| row.get(name).map_or_else(String::new, |id| shown(&id));
        if let Some(why) = row.get("_id").as_ref().and_then(|why| why.as_str()) {
            self.misfits += number("documents");
            self.misfit.get_or_insert_with(|| format!("_id {}: {why}", id("example")));
            return;
        }
        if let Some(times) = &mut self.times {
            *times += number("cut");
        }
        let Some(ids) = &mut self.ids else { return };
        *ids += number("documents") - number("kept").min(number("documents"));
        match &bucket.body {
            // The document whose `_id` stays is not what it was either.
            Body::Slots(_) => *ids += number("grouped_kept"),
            Body::Readings(_) if number("groups") > 0 => {
                self.misfits += number("grouped") - number("groups");
                let example = format!("_id {}: there is another reading of its series and time", id("latest"));
                self.misfit.get_or_insert(example);
            }
            Body::Readings(_) => {}
        }
    }

    fn refusals(&self, rule: &Rule, bucket: &Bucket) -> Vec<Refusal> {
        let (name, ns, mut all) = (&rule.name, &rule.host.collection, Vec::new());
        let mut refuse = |need, reason: String| all.push(Refusal { need, reason: format!("rule {name}: {reason}") });
        let is_slots = matches!(&bucket.body, Body::Slots(_));
        if let Some(lost @ 1..) = self.ids {
            let declared = match is_slots {
                false => "for `reading_id: time` makes it from series and time (`reading_id: stored` keeps it)",
                true => "for a `slot` adds documents up (buckets without `slot` keep each one)",
            };
            let lost = documents(lost);
            refuse(Need::Overwrite, format!("the `_id` of {lost} of {ns} would be lost, {declared}"));
        }
        if let (Some(cut @ 1..), Some(unit)) = (self.times, bucket.cuts_to()) {
            let declared = match is_slots {
                false => "for `inexact: truncate` (a finer `unit` keeps it)",
                true => "for a `slot` has one time (buckets without `slot` keep each one)",
            };
            let cut = documents(cut);
            refuse(
                Need::Overwrite,
                format!("the `{}` of {cut} of {ns} would be cut to the {unit}, {declared}", bucket.time),
            );
        }
        if let Some(misfit) = &self.misfit {
            let hint = "change or delete these documents, or declare buckets that take them".to_owned();
            let reason = format!("{} of {ns} cannot be moved into buckets, such as {misfit}", documents(self.misfits));
            refuse(Need::OtherData(hint), reason);
        }
        all
    }

    pub(super) fn show(&self, doc: &mut DocWriter) {
        if let Some(lost) = self.ids {
            doc.append("ids_lost", &long(lost));
        }
        if let Some(cut) = self.times {
            doc.append("times_cut", &long(cut));
        }
        doc.append("cannot_move", &long(self.misfits));
    }
}
