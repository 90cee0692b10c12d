//! The host: roster, the one dispatcher, call tree, limits, streams, bus.
