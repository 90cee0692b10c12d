//! The plugin `rules`, from the outside.
