//! The life of rules on the embedded store: declared, seeded under load, stopped at every step, audited, repaired, dropped.

mod buckets;
mod drift;
pub(crate) mod dying;
mod lifting;
mod outbox;
mod restoring;
mod seeding;
pub(crate) mod several;
mod stopped;
pub(crate) mod village;
