//! The numbers of the ranking, in one place.
//!
//! They were chosen by `cargo xtask bench search -- --tune` on one half of the known items, and
//! are measured on the other: docs/reference/search.md.

/// Of the fields in the order title, heading, symbol, path, body.
pub(super) const FIELDS: usize = 5;
/// The body's place in that order.
pub(super) const BODY: usize = 4;
/// The symbol's place.
pub(super) const SYMBOL: usize = 2;

/// How much each sign of relevance counts.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// What an occurrence in a field is worth, against one in the body.
    pub boost: [f32; FIELDS],
    /// How much a field's length counts against it.
    pub length: [f32; FIELDS],
    /// How soon more occurrences stop counting.
    pub saturation: f32,
    /// An identifier as a whole, beside its parts.
    pub whole: f32,
    /// Neighbouring words written together.
    pub joined: f32,
    /// The short or long form of a word.
    pub short: f32,
    /// A word that code would say instead, in the name of a symbol.
    pub sense: f32,
    /// A longer word that begins with the last one, if that one exists, and if it does not.
    pub prefix: [f32; 2],
    /// All terms present.
    pub coverage: f32,
    /// Neighbours in the question that are neighbours in the passage.
    pub proximity: f32,
    /// A symbol that is exactly what was asked.
    pub name: f32,
    /// A symbol whose words were asked for.
    pub named: f32,
    /// What the other passages of the file earned.
    pub file: f32,
    /// Terms that are anywhere in the file.
    pub spread: f32,
    /// The first passage of a file that has anything to say.
    pub first: f32,
    /// A short passage.
    pub brevity: f32,
    /// How many candidates are looked at closely.
    pub candidates: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            boost: [3.2, 3.5, 6.0, 3.2, 1.0],
            length: [0.5, 0.5, 0.5, 0.5, 0.75],
            saturation: 3.0,
            whole: 0.7,
            joined: 0.2,
            short: 0.7,
            sense: 0.5,
            prefix: [0.1, 0.7],
            coverage: 0.2,
            proximity: 0.35,
            name: 0.6,
            named: 0.3,
            file: 0.15,
            spread: 0.15,
            first: 0.06,
            brevity: 0.03,
            candidates: 400,
        }
    }
}
