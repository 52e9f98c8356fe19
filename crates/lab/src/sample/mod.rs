//! The sample: which units, loaded into every scratch store as they are read.

mod load;
mod survey;

use crate::plan::Plan;
use crate::source::Source;
use crate::store::Store;
use crate::strata::Stratum;
use document::{Doc, Error, Result, Value};
use std::collections::HashMap;
use std::str::FromStr;

/// How much is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Share(f64),
    Documents(u64),
    /// One document in twenty, and not fewer than make a decent sample.
    Default,
}

/// A sample of so many documents is decent whatever the share.
const DECENT: u64 = 20_000;

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Amount, String> {
        let wrong = || format!("'{text}' is no sample: write a share such as 5%, or a number of documents");
        match text.strip_suffix('%') {
            Some(share) => {
                let share: f64 = share.trim().parse().map_err(|_| wrong())?;
                if share > 0.0 && share <= 100.0 { Ok(Amount::Share(share / 100.0)) } else { Err(wrong()) }
            }
            None => match text.parse() {
                Ok(number) if number > 0 => Ok(Amount::Documents(number)),
                _ => Err(wrong()),
            },
        }
    }
}

impl Amount {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
    fn of(self, family: u64, all: u64) -> u64 {
        let share = |share: f64| (family as f64 * share).ceil() as u64;
        match self {
            Amount::Share(part) => share(part),
            Amount::Documents(number) => share((number as f64 / all.max(1) as f64).min(1.0)),
            Amount::Default => share((DECENT as f64 / all.max(1) as f64).clamp(0.05, 1.0)),
        }
    }
}

/// A unit that was taken, measured as it is.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The place of its family's root in the plan.
    pub family: usize,
    pub stratum: usize,
    /// What it has as the data is.
    pub documents: u64,
    pub bytes: u64,
    /// How many units of the whole it stands for.
    pub weight: f64,
}

/// A collection's place in the plan, and the paths of a key of it.
pub type Field = (usize, Vec<String>);

/// What was taken, and what is known of the whole.
#[derive(Debug, Default)]
pub struct Sample {
    /// By the root's place in the plan.
    pub families: HashMap<usize, Vec<Stratum>>,
    pub units: Vec<Taken>,
    /// Which unit the documents of a collection belong to, by the fields that others refer to them by.
    pub belongs: HashMap<Field, HashMap<Vec<u8>, (Value<'static>, u32)>>,
    /// The units again, by keys in lower case, as hex digits come back from a store.
    pub lowered: HashMap<Field, HashMap<Vec<u8>, u32>>,
    pub documents: u64,
    /// How many documents the whole has.
    pub of: u64,
    /// How many documents each collection has, by its place in the plan.
    pub counts: HashMap<usize, u64>,
    /// Some documents of each collection, by its place: what reads and writes of the mix are made of.
    pub pools: Vec<Vec<Doc<'static>>>,
    /// What could not be taken as it is, in words.
    pub notes: Vec<String>,
    pub is_snapshot: bool,
}

/// Reports how far it is: documents done, of about so many.
pub type Report<'r> = dyn FnMut(u64, u64) + Send + 'r;

/// Takes the sample, and puts it into all stores.
pub async fn take(
    source: &Source,
    plan: &Plan,
    amount: Amount,
    seed: u64,
    stores: &[Store],
    report: &mut Report<'_>,
) -> Result<Sample> {
    let existing = source.collections().await?;
    if !plan.members.iter().any(|member| existing.contains(&member.name)) {
        let names: Vec<&str> = plan.members.iter().map(|member| &*member.name).collect();
        return Err(Error::bad_value(format!(
            "database {} has none of the collections {}",
            source.db,
            names.join(", ")
        ))
        .with_hint("the declaration names the database; `pleach check --infer` compares its names with the data"));
    }
    let surveyed = survey::survey(source, plan, seed).await?;
    let all: u64 = surveyed.units.values().map(crate::strata::Strata::documents).sum();
    if all == 0 {
        return Err(Error::bad_value(format!(
            "the collections of database {} are empty: there is nothing to measure",
            source.db
        ))
        .with_hint("name the database that holds the data in the declaration"));
    }
    load::load(source, plan, surveyed, amount, seed, stores, report).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shares_or_numbers() {
        assert_eq!("5%".parse(), Ok(Amount::Share(0.05)));
        assert_eq!("2.5 %".parse(), Ok(Amount::Share(0.025)));
        assert_eq!("10000".parse(), Ok(Amount::Documents(10_000)));
        for text in ["", "0", "0%", "101%", "-1", "many", "5 percent"] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
        assert_eq!(Amount::Share(0.05).of(1_000, 5_000), 50);
        assert_eq!(Amount::Documents(500).of(1_000, 5_000), 100);
        assert_eq!(Amount::Default.of(1_000, 5_000), 1_000);
        assert_eq!(Amount::Default.of(1_000_000, 1_000_000), 50_000);
    }
}
