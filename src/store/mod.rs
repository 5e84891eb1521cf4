//! Where the state and the decision log are kept.
