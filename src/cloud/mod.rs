//! Providers: where machines come from.
