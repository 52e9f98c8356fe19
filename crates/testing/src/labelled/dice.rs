//! Chance from a seed, and what realistic documents are made of: ids of several kinds, names, dates. The same on every machine.

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, doc};

/// 2026-01-01: the newest documents are from the days before.
pub const NOW: i64 = 1_767_225_600_000;
pub const DAY: i64 = 86_400_000;

/// Pseudo-random numbers (SplitMix64). `Dice::at` gives the same ones for the same seed and number, so that documents can be made in any
/// order.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn at(seed: u64, salt: &str, number: usize) -> Dice {
        let salted = salt.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut dice = Dice(salted ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        dice.draw();
        dice
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `most`.
    pub fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.draw() % (most.max(1) as u64)).unwrap()
    }

    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// From 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits of chance")]
    pub fn part(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn chance(&mut self, share: f64) -> bool {
        self.part() < share
    }

    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    pub fn int(&mut self, most: usize) -> i32 {
        i32::try_from(self.below(most)).unwrap()
    }

    /// An amount of money.
    pub fn money(&mut self, most: usize) -> f64 {
        cents(self.below(most * 100))
    }

    /// Made-up words.
    pub fn words(&mut self, number: usize) -> String {
        let words: Vec<String> = (0..number).map(|_| self.word()).collect();
        words.join(" ")
    }

    pub fn word(&mut self) -> String {
        const PARTS: &[&str] = &[
            "ba", "ce", "do", "fi", "gu", "ka", "le", "mo", "ni", "pu", "ra", "se", "to", "vi", "zu", "lan", "mer",
            "tis",
        ];
        (0..self.between(2, 4)).map(|_| *self.pick(PARTS)).collect()
    }

    /// A person: two names that hardly anybody else has.
    pub fn person(&mut self) -> String {
        format!("{} {}", capital(&self.word()), capital(&self.word()))
    }

    pub fn date(&mut self, days: i64) -> DateTime {
        days_ago(self.part() * as_f64(days))
    }
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
pub(super) fn as_f64(number: i64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
pub(super) fn cents(number: usize) -> f64 {
    number as f64 / 100.0
}

pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

#[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
pub(super) fn days_ago(days: f64) -> DateTime {
    DateTime::from_millis(NOW - (days * as_f64(DAY)) as i64)
}

/// The kind of the ids of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    Object,
    Int,
    Uuid,
    Text,
}

pub const IDS: [Ids; 4] = [Ids::Object, Ids::Int, Ids::Uuid, Ids::Text];

impl Ids {
    /// The `_id` of the document of this number, of so many, made over a year.
    pub fn of(self, seed: u64, salt: &str, number: usize, all: usize) -> Bson {
        let mut dice = Dice::at(seed, salt, number);
        let noise = dice.draw();
        match self {
            Ids::Int => Bson::Int32(i32::try_from(number).unwrap() + 1),
            Ids::Text => Bson::String(format!("{}_{noise:012x}", salt.get(..3).unwrap_or(salt))),
            Ids::Uuid => {
                let bytes = [noise.to_be_bytes(), dice.draw().to_be_bytes()].concat();
                Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes })
            }
            Ids::Object => {
                let made = made_of(number, all, 365).timestamp_millis() / 1_000;
                let mut bytes = [0; 12];
                bytes[..4].copy_from_slice(&u32::try_from(made).unwrap().to_be_bytes());
                bytes[4..9].copy_from_slice(&noise.to_be_bytes()[..5]);
                bytes[9..].copy_from_slice(&u32::try_from(number).unwrap().to_be_bytes()[1..]);
                Bson::ObjectId(ObjectId::from_bytes(bytes))
            }
        }
    }
}

/// When the document of this number was made: the first ones at the beginning of so many days, the last one now.
pub(super) fn made_of(number: usize, all: usize, days: i64) -> DateTime {
    let number = i64::try_from(number).unwrap();
    let all = i64::try_from(all.max(1)).unwrap();
    DateTime::from_millis(NOW - days * DAY + days * DAY / all * number)
}

/// Fields that say nothing about any pattern: some of those that a document of any application has.
pub(super) fn plain(dice: &mut Dice) -> Document {
    doc! {
        "active": dice.chance(0.8),
        "country": *dice.pick(&["DE", "FR", "PT", "US", "IN", "BR"]),
        "note": dice.words(4),
    }
}

/// `left` with the fields of `right`.
pub(super) fn with(mut left: Document, right: Document) -> Document {
    left.extend(right);
    left
}
