//! Nothing: the walls are tests, in a crate of their own, so that `make check` has them in seconds.
