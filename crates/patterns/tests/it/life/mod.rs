//! The life of rules on the embedded store: declared, seeded under load, stopped at every step, audited, repaired, dropped.

mod drift;
mod outbox;
mod seeding;
mod stopped;
mod village;
