//! Development only: in-process hubs, temporary stores, crash and fault harnesses.
