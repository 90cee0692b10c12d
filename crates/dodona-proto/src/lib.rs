//! The names, ids, items, descriptors and error codes that cross crates and wires.
