//! The map comes here.
