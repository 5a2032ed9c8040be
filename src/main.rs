//! The command `altbi`.
fn main() {}
