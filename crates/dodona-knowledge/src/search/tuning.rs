//! The numbers of the ranking, in one place. Boosts, saturation and the exact name were chosen on
//! known items; for the others the measured differences were within noise.

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
    /// A longer word that begins with the last one, if that one exists, and if it does not.
    pub prefix: [f32; 2],
    /// All terms present.
    pub coverage: f32,
    /// Neighbours in the question that are neighbours in the passage.
    pub proximity: f32,
    /// A symbol that is exactly what was asked.
    pub name: f32,
    /// What the other passages of the file say.
    pub file: f32,
    /// How much of a symbol's name was asked for.
    pub named: f32,
    /// How many candidates are looked at closely.
    pub candidates: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            boost: [1.5, 2.5, 4.0, 2.0, 1.0],
            length: [0.5, 0.5, 0.5, 0.5, 0.75],
            saturation: 3.0,
            whole: 0.7,
            joined: 0.4,
            short: 0.5,
            prefix: [0.1, 0.7],
            coverage: 0.5,
            proximity: 0.4,
            name: 1.0,
            file: 0.0,
            named: 0.0,
            candidates: 400,
        }
    }
}
