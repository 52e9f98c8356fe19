//! The life of a rule: catalog, states, seeding, outbox, audit, repair, drop, status.
