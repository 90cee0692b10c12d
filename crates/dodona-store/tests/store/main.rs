//! The databases, from outside: what a caller is promised, and what a failure leaves behind.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

mod bounds;
mod closing;
mod damage;
mod doctor;
mod failures;
mod group_commit;
mod guards;
mod journal;
mod migration_properties;
mod migrations;
mod names;
mod reads;
mod support;
mod values;
mod writes;
