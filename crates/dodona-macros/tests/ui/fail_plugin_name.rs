use dodona_plugin::{plugin};

struct Echo;

#[plugin(name = "Echo Chamber")]
impl Echo {}

#[plugin]
impl Echo {}

#[plugin(title = "echo")]
impl Echo {}

fn main() {}
