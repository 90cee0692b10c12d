//! System calls that fail.
