//! The harness that the end-to-end suite drives the binaries with.
