//! What a sample in an embedded store says of a real MongoDB.

use super::source::Opened;
use lab::bottleneck;
use lab::measure::{self, Bytes};
use lab::outcome::Outcome;
use lab::plan::Plan;

/// Index and disk bytes of the embedded store as a MongoDB would have them: by what the same figures of today are there.
pub(super) async fn calibrate(outcome: &mut Outcome, opened: &Opened, plan: &Plan, is_plain: bool) {
    let mut real = Bytes::default();
    for member in &plan.members {
        let Ok(found) = measure::statistics(&opened.stored, &outcome.database, &member.name).await else {
            continue;
        };
        real.indexes += found.bytes.indexes;
        real.disk += found.bytes.disk;
    }
    let now = outcome.rows.iter().find(|row| row.name == "now").map(|row| row.full);
    let Some(now) = now.filter(|now| is_plain && now.indexes > 0.0 && now.disk > 0.0 && real.disk > 0.0) else {
        outcome.notes.push("bytes of indexes and on disk are those of the embedded store: with --declare now as well they are scaled by what the MongoDB has today, with --scratch mongodb://… they are measured".to_owned());
        return;
    };
    let (indexes, disk) = (real.indexes / now.indexes, real.disk / now.disk);
    for row in &mut outcome.rows {
        row.full.indexes *= indexes;
        row.full.disk *= disk;
    }
    outcome.notes.push(format!(
        "bytes of indexes and on disk are estimates: those of the embedded store, scaled by what this MongoDB has today ({} and {}); --scratch mongodb://… measures them",
        bottleneck::shown(real.indexes),
        bottleneck::shown(real.disk)
    ));
}
