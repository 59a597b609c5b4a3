//! A real kernel on a virtual SoC.
