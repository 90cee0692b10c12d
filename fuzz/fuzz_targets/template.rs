//! Any text as a template: it ends within its limits, and what it renders is a text of that size.

#![no_main]

use dodona_fuzz::DOCUMENT;
use dodona_template::{Limits, Template};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    let limits = Limits::message();
    let Ok(template) = Template::compile(source, &limits) else {
        return;
    };
    let rendered = template.render(&*DOCUMENT, &limits);
    assert_eq!(rendered, template.render(&*DOCUMENT, &limits), "{source:?}");
    if template.is_expression() {
        let _ = template.evaluate(&*DOCUMENT, &limits);
    }
});
