//! Hook points: typed, ordered callbacks and their verdicts.
