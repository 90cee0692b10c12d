//! A loop that measures peers side by side.
