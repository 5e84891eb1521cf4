//! All integration tests, in one binary. One commented line a file.
