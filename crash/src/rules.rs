//! The rules of the pattern scenario: those of a world that the registries give, and their changes under load.

use crate::scenario::Progress;
use crate::worker::{fine, send};
use anyhow::{Context, Result, ensure};
use bson::{Bson, doc};
use judge::client::Client;
use rand::RngExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use testing::registry::{bases, fields_on, merged, some, worlds};

pub(crate) const DB: &str = "crash_patterns";

/// Which world of the registries: all fields on plain collections, or on one of the shapes.
pub(crate) static WORLD: AtomicUsize = AtomicUsize::new(0);

/// Whether the rules change under load.
pub(crate) static CHANGING: AtomicBool = AtomicBool::new(false);

/// Whether the collections of the world have versions.
pub(crate) fn has_versions() -> bool {
    WORLD.load(Ordering::Relaxed) > 0
}

/// Whether documents are of kinds, which a search for text goes across; not while rules change.
pub(crate) fn has_kinds() -> bool {
    let world = WORLD.load(Ordering::Relaxed);
    (world == 0 || has_old_reviews()) && !CHANGING.load(Ordering::Relaxed)
}

/// Whether reviews were there before their versions: the migration is under way when the server is killed.
pub(crate) fn has_old_reviews() -> bool {
    WORLD.load(Ordering::Relaxed) + 1 == worlds().len()
}

pub(crate) fn declaration() -> Result<String> {
    let world = WORLD.load(Ordering::Relaxed);
    let worlds = worlds();
    let declared = worlds.get(world).with_context(|| format!("there are {} worlds", worlds.len()))?;
    Ok(testing::declaration(DB, &declared.collections))
}

/// Some of the fields, on the same forms.
fn variant() -> String {
    let base = bases().into_iter().nth(WORLD.load(Ordering::Relaxed)).unwrap_or_default();
    let blocks: Vec<&str> = base.iter().copied().chain(some(&fields_on(&base), 4, rand::random())).collect();
    testing::declaration(DB, &merged(&blocks))
}

/// Applies one declaration after the other and drops rules in between, until the connection is gone.
pub(crate) fn change(address: &str, progress: &Progress) -> Result<()> {
    let Ok(mut client) = Client::connect(address) else { return Ok(()) };
    let mut rng = rand::rng();
    while !progress.is_stopped() {
        let (with_data, wait) = (rng.random_bool(0.5), rng.random_bool(0.3));
        let variant = rng.random_bool(0.75).then(variant);
        let mut command = match &variant {
            // What a dropped rule left behind is overwritten.
            Some(variant) => {
                doc! { "pleach": "apply", "declaration": variant, "remove": true, "overwrite": true, "create_missing": true }
            }
            None => doc! { "pleach": "drop", "rule": "products.reviewCount" },
        };
        match variant.is_none() && rng.random_bool(0.5) {
            true => command.insert("restore", true),
            false => command.insert("with_data", with_data),
        };
        command.extend(doc! { "wait": wait, "$db": DB });
        let Some(reply) = send(&mut client, &command) else { return Ok(()) };
        // Whoever changes rules in a hurry meets one that is gone, or whose documents are getting back what they had.
        let expected = ["there is no rule", "are getting back what they had"];
        let gone = reply.get_str("errmsg").is_ok_and(|message| expected.iter().any(|text| message.contains(text)));
        ensure!(fine(&reply) || gone, "a change of rules was refused: {reply}");
        std::thread::sleep(Duration::from_millis(rng.random_range(1..60)));
    }
    Ok(())
}

/// Waits until nothing is left to be spread.
pub(crate) fn settle_outbox(client: &mut Client) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let status = client.must(&doc! { "pleach": "status", "$db": DB })?;
        let pending = status.get_document("outbox")?.get("pending").cloned();
        let rules_on = status
            .get_array("rules")?
            .iter()
            .all(|rule| rule.as_document().is_some_and(|rule| rule.get_str("state").is_ok_and(|state| state == "on")));
        if rules_on && matches!(pending, Some(Bson::Int32(0) | Bson::Int64(0))) {
            return Ok(());
        }
        ensure!(Instant::now() < end, "the outbox does not empty: {status}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
