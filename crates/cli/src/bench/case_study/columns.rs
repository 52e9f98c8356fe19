//! An estimate: what a column codec under the record header would bring.
//!
//! The documents of a layout are made in memory, in the order of `_id`, cut into blocks as the store cuts them, and each block is
//! compressed with LZ4: once as BSON, once with each record as columns (its days as distances, which statuses they have, the
//! counts that are not 1). No file is written and no index counted: it is an estimate, and called so wherever it is shown.

use super::events::Status;
use super::layout::Layout;
use super::stored::{Days, each_bucket, each_document};
use super::truth::Truth;

/// Bytes of all blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub(crate) layout: Layout,
    pub(crate) bson_4k: u64,
    pub(crate) bson_32k: u64,
    pub(crate) columns_4k: u64,
    pub(crate) columns_32k: u64,
}

impl Estimate {
    pub(crate) fn of(truth: &Truth, layout: Layout) -> Estimate {
        let mut bson = [Blocks::of(4 << 10), Blocks::of(32 << 10)];
        each_document(truth, layout, |document| {
            // The `_id` is the key of the record too: kind, length, subtype, bytes.
            let key = document.get(9..14 + layout.id_length()).unwrap_or_default();
            bson.iter_mut().for_each(|blocks| blocks.add(key, document));
        });
        let mut columns = [Blocks::of(4 << 10), Blocks::of(32 << 10)];
        let mut record = Vec::new();
        each_bucket(truth, layout, |key, days| {
            let Some((first, _)) = days.first() else { return };
            record.clear();
            encode(layout, days, &mut record);
            let key = layout.id(key, *first);
            columns.iter_mut().for_each(|blocks| blocks.add(&key, &record));
        });
        let [bson_4k, bson_32k] = bson.map(Blocks::end);
        let [columns_4k, columns_32k] = columns.map(Blocks::end);
        Estimate { layout, bson_4k, bson_32k, columns_4k, columns_32k }
    }
}

/// A run of records, compressed whenever it is as large as a block.
struct Blocks {
    size: usize,
    open: Vec<u8>,
    compressed: u64,
}

impl Blocks {
    fn of(size: usize) -> Blocks {
        Blocks { size, open: Vec::new(), compressed: 0 }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        varint(key.len(), &mut self.open);
        varint(value.len(), &mut self.open);
        self.open.extend_from_slice(key);
        self.open.extend_from_slice(value);
        if self.open.len() >= self.size {
            self.close();
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.compressed += lz4_flex::compress(&self.open).len() as u64;
            self.open.clear();
        }
    }

    fn end(mut self) -> u64 {
        self.close();
        self.compressed
    }
}

/// One record as columns: how many days; their distances; which statuses each has, two days in a byte; where a count is not 1.
fn encode(layout: Layout, days: &Days, out: &mut Vec<u8>) {
    // The format byte of the record header.
    out.push(1);
    varint(days.len(), out);
    let mut before = days.first().map_or(0, |(first, _)| start(layout, *first));
    for (day, _) in days {
        varint(usize::from(day - before), out);
        before = *day;
    }
    let masks = days.iter().map(|(_, sums)| {
        let bit = |(at, sum): (usize, &i64)| u8::from(*sum > 0) << at;
        sums.iter().enumerate().map(bit).fold(0, |mask, bit| mask | bit)
    });
    let masks: Vec<u8> = masks.collect();
    out.extend(masks.chunks(2).map(|pair| pair.iter().rev().fold(0, |byte, mask| byte << 4 | mask)));
    let counts = days.iter().flat_map(|(_, sums)| sums.iter().filter(|sum| **sum > 0));
    let exceptions: Vec<(usize, i64)> = counts.copied().enumerate().filter(|(_, count)| *count != 1).collect();
    varint(exceptions.len(), out);
    let mut before = 0;
    for (place, count) in exceptions {
        varint(place - before, out);
        varint(usize::try_from(count).unwrap_or_default(), out);
        before = place;
    }
}

/// The first day of the document that `day` is in: the distance of its first day is counted from there.
fn start(layout: Layout, day: u16) -> u16 {
    let of = layout.period(day);
    (0..=day).rev().take_while(|before| layout.period(*before) == of).last().unwrap_or(day)
}

fn varint(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7F).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or_default());
}

const _: () = assert!(Status::ALL.len() == 4, "a mask is half a byte");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_holds_all_that_its_document_does() {
        let days: Days = vec![(0, [1, 0, 0, 0]), (4, [2, 1, 0, 0]), (5, [0, 0, 0, 300])];
        let mut record = Vec::new();
        encode(Layout::Quarter, &days, &mut record);
        // Format, days, distances, masks, exceptions: the second count is 2, the fourth 300.
        assert_eq!(record, [1, 3, 0, 4, 1, 0b0011_0001, 0b1000, 2, 1, 2, 2, 0xAC, 0x02]);
    }

    #[test]
    fn columns_are_smaller_than_bson() {
        let truth = Truth::of(&super::super::events::Events::generate(6_000, 1));
        let estimate = Estimate::of(&truth, Layout::Quarter);
        assert!(estimate.columns_4k * 2 < estimate.bson_4k, "{estimate:?}");
        assert!(estimate.bson_32k <= estimate.bson_4k, "{estimate:?}");
    }
}
