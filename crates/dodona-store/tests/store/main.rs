//! The databases, from outside: what a caller is promised, and what a failure leaves behind.

mod closing;
mod damage;
mod doctor;
mod failures;
mod group_commit;
mod guards;
mod migration_properties;
mod migrations;
mod names;
mod reads;
mod support;
mod values;
mod writes;
