//! The decision: pure, from a situation to actions and reasons.
