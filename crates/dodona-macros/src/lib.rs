//! The #[plugin] and #[method] attributes.
