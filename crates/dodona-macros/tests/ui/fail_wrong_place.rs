use dodona_plugin::{plugin};

struct Echo;

trait Speak {}

#[plugin(name = "echo")]
impl Speak for Echo {}

#[plugin(name = "echo")]
struct Other;

fn main() {}
