//! A real kernel on a virtual SoC.

pub mod dtb;
mod initramfs;
mod qemu;
mod tree;
