//! Which documents are looked at: a seeded sample spread over the range of `_id`, never the first ones. Bounded in documents and in bytes.
//!
//! Points are spread over the range by value where `_id` is an ObjectId, a number or a date. Where it is anything else, or where the
//! values are so uneven that most points meet the same documents, they are spread by rank: by steps along the index of `_id`, which
//! costs one walk over its keys. From each point a short run of documents is read. `$sample` is not used: it has no seed.

use crate::options::READ_OF_COLLECTION;
use crate::reader::{Bound, Reader, own};
use crate::statistics::Statistics;
use crate::values::{figures, key_bytes, number};
use document::filter::Filter;
use document::op::{Find, Hint, Namespace, ReadOp, SortKey, SortSpec};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::Path;
use document::{Doc, Result, Value};
use std::sync::Arc;

/// So many documents are read from each point: a round trip costs more than they do.
const RUN: u64 = 50;

/// A collection of documents so large that fewer fit is seen through so many at least.
const FEWEST: u64 = 50;

/// How a collection was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// All documents were read.
    #[default]
    Whole,
    ByValue,
    ByRank,
}

/// Pseudo-random numbers from a seed (SplitMix64): the same on every machine.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64, of: &str) -> Seeded {
        Seeded(seed ^ xxhash_rust::xxh3::xxh3_64(of.as_bytes()))
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in [0, 1).
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn fraction(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform below a number.
    pub fn below(&mut self, number: usize) -> usize {
        usize::try_from(self.draw() % (number.max(1) as u64)).unwrap_or_default()
    }
}

/// How many documents are looked at: fewer where they are large.
pub fn size(statistics: &Statistics, asked: u64) -> u64 {
    let fitting = READ_OF_COLLECTION.checked_div(statistics.average()).unwrap_or(asked);
    asked.min(fitting.max(FEWEST))
}

/// Gives the sampled documents to `visit`, in order of `_id`.
pub async fn each(
    reader: &Reader<'_>,
    ns: &Namespace,
    statistics: &Statistics,
    asked: u64,
    seed: u64,
    visit: &mut (dyn FnMut(Doc<'static>) + Send),
) -> Result<Spread> {
    let size = size(statistics, asked);
    // The count of a collection may be stale after a crash: one that seems small may have more.
    if statistics.count <= size {
        let mut left = size.max(asked.min(FEWEST));
        let find = Find { limit: Some(left), sort: Some(by_id(false)), ..Find::matching(ns.clone(), Filter::all()) };
        reader
            .each(ReadOp::Find(find), &mut |doc| {
                visit(own(&doc));
                left -= 1;
                left > 0
            })
            .await?;
        return Ok(Spread::Whole);
    }
    let points = size.div_ceil(RUN).max(1);
    let walk = Walk { reader, ns, points, run: size.div_ceil(points), step: statistics.count / points };
    let mut seeded = Seeded::new(seed, &ns.to_string());
    if let Some(ends) = Ends::of(reader, ns).await? {
        let found = walk.by_value(&ends, &mut seeded).await?;
        if let Some(found) = found {
            found.into_iter().for_each(visit);
            return Ok(Spread::ByValue);
        }
    }
    walk.by_rank(&mut seeded, visit).await?;
    Ok(Spread::ByRank)
}

struct Walk<'w> {
    reader: &'w Reader<'w>,
    ns: &'w Namespace,
    points: u64,
    run: u64,
    /// So many documents lie between two points.
    step: u64,
}

impl Walk<'_> {
    /// `None` if the values are too uneven: then too many points lead to documents that were met before.
    async fn by_value(&self, ends: &Ends, seeded: &mut Seeded) -> Result<Option<Vec<Doc<'static>>>> {
        let mut last: Option<(Vec<u8>, Value<'static>)> = None;
        let (mut overlaps, mut found) = (0, Vec::new());
        for number in 0..self.points {
            if self.reader.cancel.is_set() {
                break;
            }
            #[expect(clippy::cast_precision_loss, reason = "a place in a range")]
            let point = ends.at((number as f64 + seeded.fraction()) / self.points as f64);
            let (operator, from) = match &last {
                Some((bytes, last)) if *bytes >= key_bytes(&point) => {
                    overlaps += 1;
                    ("$gt", last)
                }
                _ => ("$gte", &point),
            };
            if overlaps * 3 > self.points {
                return Ok(None);
            }
            let condition = Value::Document(figures([(operator, from.borrow())]));
            let filter = Filter::parse(&figures([("_id", condition)]), &mut Names::new())?;
            let find = Find { sort: Some(by_id(false)), ..Find::matching(self.ns.clone(), filter) };
            let documents = self.reader.find(find, Bound { documents: self.run, bytes: READ_OF_COLLECTION }).await?;
            if let Some(id) = documents.last().and_then(|doc| doc.get("_id")) {
                last = Some((key_bytes(&id), id));
            }
            found.extend(documents);
        }
        // The end of the range met long before its last point: some documents lie far from all others.
        let enough = found.len() as u64 * 2 > self.points * self.run || self.reader.cancel.is_set();
        Ok(enough.then_some(found))
    }

    async fn by_rank(&self, seeded: &mut Seeded, visit: &mut (dyn FnMut(Doc<'static>) + Send)) -> Result<()> {
        let mut from: Option<Doc<'static>> = None;
        for number in 0..self.points {
            if self.reader.cancel.is_set() {
                break;
            }
            // A run begins somewhere in its own step, so that no two meet.
            let room = self.step.saturating_sub(self.run).max(1);
            let offset = seeded.draw() % room;
            let documents = self.run_at(from.as_ref(), offset).await?;
            let is_last = documents.is_empty() || number + 1 == self.points;
            documents.into_iter().for_each(&mut *visit);
            if is_last {
                break;
            }
            let Some(next) = self.id_at(from.as_ref(), self.step).await? else { break };
            from = Some(next);
        }
        Ok(())
    }

    /// A read in the order of `_id`, from one on. Bounds of the index, not a filter: a filter would end where another type begins.
    fn ordered(&self, from: Option<&Doc<'static>>, skip: u64) -> Find {
        let keys = figures([("_id", Value::Int32(1))]);
        Find {
            sort: Some(by_id(false)),
            hint: Some(Hint::Keys(keys)),
            min: from.cloned(),
            skip,
            ..Find::matching(self.ns.clone(), Filter::all())
        }
    }

    async fn run_at(&self, from: Option<&Doc<'static>>, skip: u64) -> Result<Vec<Doc<'static>>> {
        self.reader.find(self.ordered(from, skip), Bound { documents: self.run, bytes: READ_OF_COLLECTION }).await
    }

    async fn id_at(&self, from: Option<&Doc<'static>>, skip: u64) -> Result<Option<Doc<'static>>> {
        let only_id = Projection::parse_find(&figures([("_id", Value::Int32(1))]), &Filter::all(), &mut Names::new())?;
        let find = Find { projection: Some(Arc::new(only_id)), ..self.ordered(from, skip) };
        let found = self.reader.find(find, Bound::documents(1)).await?;
        Ok(found.into_iter().next())
    }
}

/// The least and the greatest `_id`, where values between them can be computed.
enum Ends {
    ObjectId(u128, u128),
    Number(f64, f64),
    Date(f64, f64),
}

impl Ends {
    async fn of(reader: &Reader<'_>, ns: &Namespace) -> Result<Option<Ends>> {
        let mut ends = Vec::new();
        for descending in [false, true] {
            let find = Find { sort: Some(by_id(descending)), ..Find::matching(ns.clone(), Filter::all()) };
            let found = reader.find(find, Bound::documents(1)).await?;
            let Some(id) = found.first().and_then(|doc| doc.get("_id")) else { return Ok(None) };
            ends.push(id);
        }
        #[expect(clippy::cast_precision_loss, reason = "a place in a range")]
        Ok(match ends.as_slice() {
            [Value::ObjectId(first), Value::ObjectId(last)] => Some(Ends::ObjectId(wide(first), wide(last))),
            [Value::DateTime(first), Value::DateTime(last)] => Some(Ends::Date(*first as f64, *last as f64)),
            [first, last] => number(first).zip(number(last)).map(|(first, last)| Ends::Number(first, last)),
            _ => None,
        })
    }

    /// The value at that fraction of the range.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a range, between its ends"
    )]
    fn at(&self, fraction: f64) -> Value<'static> {
        match self {
            Ends::ObjectId(first, last) => {
                let between = first + ((last.saturating_sub(*first)) as f64 * fraction) as u128;
                let [_, _, _, _, id @ ..] = between.to_be_bytes();
                Value::ObjectId(id)
            }
            Ends::Number(first, last) => Value::Double(first + (last - first) * fraction),
            Ends::Date(first, last) => Value::DateTime((first + (last - first) * fraction) as i64),
        }
    }
}

fn wide(id: &[u8; 12]) -> u128 {
    id.iter().fold(0, |number, byte| (number << 8) | u128::from(*byte))
}

fn by_id(descending: bool) -> SortSpec {
    SortSpec { keys: vec![SortKey { path: Path::new("_id"), descending }] }
}
