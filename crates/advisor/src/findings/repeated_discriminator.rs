//! Elements of an array that each repeat a bounded discriminator, such as the day: as names of fields the discriminators cost less.

mod rule;

use super::Symptom;
use crate::declare::{self, word};
use crate::report::{Against, Finding, Severity, grouped};
use crate::shape::PathFacts;
use crate::statistics::Statistics;
use crate::survey::{Collection, Survey};
use crate::values::{at, count, figures, hash, ids, measure, share};
use document::{Array, Doc, Value};
use hashbrown::HashSet;

pub(super) const SYMPTOM: Symptom = Symptom {
    name: "repeated_discriminator",
    pattern: "field_names",
    help: "A bounded discriminator, such as the day, is repeated in every element of an array.",
    looks_at: "Arrays in bucket-like documents whose elements have a date of whole days or a short code, once per document, and numbers beside it.",
    reasons_against: "The discriminator has no bound; the index is nearly as large as the data, so that the bottleneck would move there.",
    find: |survey| Box::pin(find(survey)),
};

/// Shorter arrays are no buckets.
const ELEMENTS: f64 = 3.0;
/// Fewer documents do not show a form.
const FEWEST: u64 = 20;
/// A bucket has at most so many slots.
const MOST_SLOTS: usize = 250;
/// A document has this share of all discriminators at least.
const FILLED: f64 = 0.15;
/// The longest word that is a name of a field.
const LONGEST: usize = 24;
/// The index against the data, from where on it is the bottleneck.
const INDEX_SHARE: f64 = 0.8;
/// Smaller collections have no bottleneck.
const SMALL: u64 = 4 << 20;

const DAY: i64 = 86_400_000;
/// The longest period of a bucket.
const YEAR: i64 = 12 * 31 * DAY;

async fn find<'a>(survey: &'a Survey<'a>) -> document::Result<Vec<Finding>> {
    let mut all = Vec::new();
    for collection in &survey.collections {
        for facts in arrays(collection) {
            all.extend(of_array(survey, collection, facts));
        }
    }
    all.extend(rule::of_rules(survey).await);
    Ok(all)
}

fn arrays(collection: &Collection) -> impl Iterator<Item = &PathFacts> {
    collection.shape.paths.iter().filter(|facts| !facts.in_array && facts.has_documents())
}

/// Whether the elements of this array are slots: then its length is bounded, whatever it is.
pub(super) fn is_slots(collection: &Collection, path: &str) -> bool {
    collection.shape.path(path).is_some_and(|facts| Slots::of(collection, facts).is_some_and(|slots| slots.is_bounded))
}

/// What the elements of an array are.
struct Slots {
    /// The field that tells them apart.
    discriminator: String,
    is_date: bool,
    numbers: Vec<String>,
    distinct: usize,
    is_bounded: bool,
}

impl Slots {
    /// `None` if they are no slots: another field than numbers, a discriminator twice in one document, elements that are few.
    fn of(collection: &Collection, facts: &PathFacts) -> Option<Slots> {
        if facts.lengths.average() < ELEMENTS || collection.sampled() < FEWEST {
            return None;
        }
        let elements: u64 = facts.items.iter().map(|(_, count)| count).sum();
        let fields: Vec<&PathFacts> = collection.shape.below(&facts.path).collect();
        let is_number = |field: &&&PathFacts| {
            ["int", "long", "double", "decimal"].iter().map(|name| field.count_of(name)).sum::<u64>() == field.values
        };
        let mut others = fields.iter().filter(|field| !is_number(field));
        let discriminator = match (others.next(), others.next()) {
            (Some(discriminator), None) => discriminator,
            // Hours, minutes, days of a month: whole numbers, none of them twice in a document.
            (None, _) => fields.iter().find(|field| {
                is_small_number(field) && once_each(collection, &facts.path, field.name(), false).is_some()
            })?,
            _ => return None,
        };
        let is_other = |field: &&&PathFacts| field.path != discriminator.path;
        let numbers: Vec<String> =
            fields.iter().filter(is_number).filter(is_other).map(|field| field.name().to_owned()).collect();
        let is_date = discriminator.count_of("date") == discriminator.values;
        let is_text = discriminator.count_of("string") == discriminator.values;
        let is_known = is_date || is_text || is_small_number(discriminator);
        if numbers.is_empty() || discriminator.values != elements || !is_known {
            return None;
        }
        let name = discriminator.name().to_owned();
        let (distinct, longest_span) = once_each(collection, &facts.path, &name, is_date)?;
        let is_day = |(value, _): &(Value<'static>, u64)| value.as_str().and_then(day_of).is_some();
        let is_day_text = is_text && discriminator.distinct.counted.iter().all(is_day);
        let is_bounded = match is_date || is_day_text {
            // Elements of a bucket lie in one period.
            true => longest_span <= YEAR,
            false => {
                // Each document has a good part of all there are: lines of orders have few of many articles.
                distinct <= MOST_SLOTS
                    && (!is_text || is_code(discriminator))
                    && facts.lengths.average() >= FILLED * share(distinct as u64, 1)
            }
        };
        Some(Slots { discriminator: name, is_date, numbers, distinct, is_bounded })
    }
}

/// Whether no document has a discriminator twice; how many there are, and the longest time between two of one document.
fn once_each(collection: &Collection, path: &str, name: &str, is_date: bool) -> Option<(usize, i64)> {
    let (mut all, mut longest) = (HashSet::new(), 0);
    for doc in &collection.sample {
        let Some(Value::Array(items)) = at(doc, path) else { continue };
        let mut own = HashSet::new();
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for value in values(&items, name) {
            if let Value::DateTime(millis) = &value {
                if is_date && millis.rem_euclid(DAY) != 0 {
                    return None;
                }
                (first, last) = (first.min(*millis), last.max(*millis));
            }
            if let Some(day) = value.as_str().and_then(day_of) {
                (first, last) = (first.min(day * DAY), last.max(day * DAY));
            }
            if !own.insert(hash(&value)) {
                return None;
            }
        }
        longest = longest.max(last.saturating_sub(first));
        all.extend(own);
    }
    Some((all.len(), longest))
}

fn values<'a>(items: &'a Array<'_>, name: &'a str) -> impl Iterator<Item = Value<'a>> {
    items.iter().filter_map(move |item| match item {
        Value::Document(item) => item.get(name).map(Value::into_owned),
        _ => None,
    })
}

/// The number of a day that is written as `2025-03-07`; months count 31 days.
fn day_of(text: &str) -> Option<i64> {
    let [year, month, day] =
        text.split('-').map(|part| part.parse().ok()).collect::<Option<Vec<i64>>>()?.try_into().ok()?;
    let is_day = text.len() == 10 && (1..=12).contains(&month) && (1..=31).contains(&day);
    is_day.then_some((year * 12 + month) * 31 + day)
}

/// Short words: `DE`, `EUR`, `mobile`. Sentences and long keys have no bound.
fn is_code(facts: &PathFacts) -> bool {
    let texts = || facts.distinct.counted.iter().filter_map(|(value, _)| value.as_str());
    let is_word = |text: &str| {
        (1..=LONGEST).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    texts().next().is_some() && texts().all(is_word)
}

/// Whole numbers from 0 to at most the days of a year.
fn is_small_number(facts: &PathFacts) -> bool {
    facts.count_of("int") + facts.count_of("long") == facts.values
        && facts.numbers.is_some_and(|(least, greatest)| least >= 0.0 && greatest <= 366.0)
}

fn of_array(survey: &Survey<'_>, collection: &Collection, facts: &PathFacts) -> Option<Finding> {
    let slots = Slots::of(collection, facts)?;
    let average = facts.lengths.average();
    // A name costs as much as the digits it has; a field of an element its type, its name and its value.
    #[expect(clippy::cast_precision_loss, reason = "bytes")]
    let repeated = slots.discriminator.len() as f64 + 7.0;
    let saved = repeated * average;
    let saved_share = saved / collection.shape.sizes.average().max(1.0);
    let mut finding = Finding::new(&SYMPTOM, &collection.ns, &facts.path);
    finding.severity = Severity::Warn;
    finding.confidence = if slots.is_date { 0.9 } else { 0.75 };
    finding.verdict = format!(
        "each element of `{}` repeats its `{}`: store it as the name of a field",
        facts.path, slots.discriminator
    );
    finding.shown = vec![
        format!("{average:.1} elements in a document, each with its own `{}`", slots.discriminator),
        format!("{} different values, none twice in a document", grouped(slots.distinct as u64)),
        format!("about {saved:.0} bytes less in a document ({:.0} %)", saved_share * 100.0),
    ];
    finding.evidence = figures([
        ("elements", measure(average)),
        ("discriminator", Value::string(&*slots.discriminator)),
        ("distinct", count(slots.distinct as u64)),
        ("document_bytes", measure(collection.shape.sizes.average())),
        ("index_bytes", count(collection.statistics.index_bytes)),
        ("data_bytes", count(collection.statistics.bytes)),
        ("examples", ids(collection.sample.iter().take(3))),
    ]);
    finding.gain = figures([("bytes_a_document", measure(saved)), ("share", measure(saved_share))]);
    let mut against = Vec::new();
    if !slots.is_bounded {
        let figures = figures([("distinct", count(slots.distinct as u64))]);
        against.push(
            Against::new(format!("nothing bounds the values of `{}`", slots.discriminator), figures).outweighing(),
        );
    } else {
        finding.declaration = declaration(survey, collection, facts, &slots);
    }
    against.extend(index_is_large(&collection.statistics));
    Some(finding.weighed(against))
}

fn index_is_large(statistics: &Statistics) -> Option<Against> {
    let index_share = share(statistics.index_bytes, statistics.bytes);
    let figures = figures([("index_bytes", count(statistics.index_bytes)), ("data_bytes", count(statistics.bytes))]);
    let reason =
        "the index is nearly as large as the data: the bottleneck would move there, so larger buckets help more";
    (statistics.bytes > SMALL && index_share >= INDEX_SHARE).then(|| Against::new(reason, figures).outweighing())
}

/// The documents are buckets that somebody made by hand: what is declared is the collection of the events that they hold. Its
/// documents are the elements, with the fields that the document has beside the array as series.
fn declaration(survey: &Survey<'_>, collection: &Collection, facts: &PathFacts, slots: &Slots) -> Option<String> {
    let events = survey.free_name(&format!("{}_events", collection.name()));
    let into = survey.free_name(&format!("{}_by_name", collection.name()));
    let top = |field: &&PathFacts| {
        !field.in_array && !field.path.contains('.') && !["_id", &*facts.path].contains(&&*field.path)
    };
    let is_key = |field: &&PathFacts| {
        ["string", "objectId", "binData", "int", "long"].iter().any(|name| field.is_always(name, collection.sampled()))
    };
    let key = collection.shape.paths.iter().filter(top).find(is_key).map_or("key", PathFacts::name);
    let time = match slots.is_date {
        true => slots.discriminator.clone(),
        false => collection
            .shape
            .paths
            .iter()
            .filter(top)
            .find(|field| field.is_always("date", collection.sampled()))
            .map_or("date", PathFacts::name)
            .to_owned(),
    };
    let slot = match slots.is_date {
        true => "day".to_owned(),
        false => {
            let (least, most) = lengths(&collection.sample, &facts.path, &slots.discriminator);
            let times = if least == most { format!("{{{most}}}") } else { format!("{{{least},{most}}}") };
            format!(
                "{{ field: {}, keys: \"^[A-Za-z0-9_-]{times}$\", at_most: {MOST_SLOTS} }}",
                word(&slots.discriminator)
            )
        }
    };
    declare::collection_rule(
        survey.database,
        &events,
        "bucket",
        &[
            format!("into: {}", word(&into)),
            format!("time: {}", word(&time)),
            format!("by: [{}]", word(key)),
            "every: quarter".to_owned(),
            format!("slot: {slot}"),
            format!("sum: {}", declare::words(slots.numbers.iter().map(|name| &**name))),
            "layout: field_names".to_owned(),
        ],
    )
}

/// The lengths of the shortest and of the longest name.
fn lengths(sample: &[Doc<'static>], path: &str, name: &str) -> (usize, usize) {
    let (mut least, mut most) = (LONGEST, 1);
    for doc in sample {
        let Some(Value::Array(items)) = at(doc, path) else { continue };
        for value in values(&items, name) {
            let length = match (value.as_str(), value.as_i64_exact()) {
                (Some(text), _) => text.len(),
                (None, number) => number.unwrap_or_default().to_string().len(),
            };
            (least, most) = (least.min(length), most.max(length));
        }
    }
    (least.min(most), most)
}
