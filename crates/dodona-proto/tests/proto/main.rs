//! Properties of names, paths, ids and items.

mod identity;
mod wire;
