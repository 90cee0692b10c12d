//! What a program brings as built-in plugins.

use std::sync::Arc;

use dodona_plugin::Plugin;

/// A module of the program: what `module = "builtin:NAME"` in the roster names. It exports one
/// plugin or several, and `class` in the roster picks one of several.
#[derive(Clone)]
pub struct Module {
    pub(crate) name: String,
    pub(crate) exports: Vec<Export>,
}

/// A plugin of a module.
#[derive(Clone)]
pub(crate) struct Export {
    pub(crate) class: String,
    pub(crate) plugin: Arc<dyn Plugin>,
}

impl Module {
    /// A module without exports.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            exports: Vec::new(),
        }
    }

    /// Adds a plugin under the name that `class` picks it by.
    #[must_use]
    pub fn export(mut self, class: impl Into<String>, plugin: Arc<dyn Plugin>) -> Self {
        let class = class.into();
        self.exports.push(Export { class, plugin });
        self
    }

    /// The export that a roster entry refers to, or an error.
    pub(crate) fn resolve(&self, class: Option<&str>) -> Result<&Export, String> {
        let module = &self.name;
        let classes = || {
            let names = self
                .exports
                .iter()
                .map(|export| format!("`{}`", export.class));
            names.collect::<Vec<_>>().join(", ")
        };
        match (class, self.exports.as_slice()) {
            (None, [only]) => Ok(only),
            (None, []) => Err(format!("module `builtin:{module}` exports no plugin")),
            (None, many) => Err(format!(
                "module `builtin:{module}` exports {} plugins; pick one with `class`: {}",
                many.len(),
                classes()
            )),
            (Some(class), exports) => {
                let found = exports.iter().find(|export| export.class == class);
                found.ok_or_else(|| {
                    format!(
                        "module `builtin:{module}` exports no `{class}`; it has {}",
                        classes()
                    )
                })
            }
        }
    }
}

/// A module of the plugin's name with the plugin alone.
impl From<Arc<dyn Plugin>> for Module {
    fn from(plugin: Arc<dyn Plugin>) -> Self {
        let name = plugin.name().to_owned();
        Self::new(name.clone()).export(name, plugin)
    }
}

impl<P: Plugin> From<Arc<P>> for Module {
    fn from(plugin: Arc<P>) -> Self {
        Self::from(plugin as Arc<dyn Plugin>)
    }
}
