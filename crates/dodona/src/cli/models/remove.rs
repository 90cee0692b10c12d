//! `dodona models default` and `dodona models remove`.

use super::Known;
use crate::config::ConfigFile;
use crate::failure::Failure;
use crate::home::Home;
use crate::nearest::nearest;

/// The model that needs no settings.
const OFFLINE: &str = "offline";

pub(super) fn make_default(name: &str) -> Result<String, Failure> {
    let known = Known::load()?;
    if name != OFFLINE && !known.settings.models.contains_key(name) {
        return Err(unknown(name, &known));
    }
    let mut file = ConfigFile::read(&Home::find()?.config_file())?;
    file.set_default(name)?;
    let path = file.write()?.display().to_string();
    Ok(format!(
        "`{name}` is the default model in {path}; restart a running `dodona serve` to use it\n"
    ))
}

pub(super) fn remove(name: &str) -> Result<String, Failure> {
    let known = Known::load()?;
    if !known.settings.models.contains_key(name) {
        return Err(unknown(name, &known));
    }
    let uses = known.settings.models.iter();
    let mut fallbacks = uses.filter(|(_, model)| model.fallback.as_deref() == Some(name));
    if let Some((other, _)) = fallbacks.next() {
        let message = format!("model `{name}` is the fallback of `{other}`");
        let hint = format!("choose a different one: dodona models set {other} --fallback NAME");
        return Err(Failure::usage(message).hint(hint));
    }
    let mut file = ConfigFile::read(&Home::find()?.config_file())?;
    file.remove_model(name);
    if known.settings.agent.model.as_deref() == Some(name) {
        file.unset(&["agent", "model"]);
    }
    let path = file.write()?.display().to_string();
    Ok(format!("removed model `{name}` from {path}\n"))
}

fn unknown(name: &str, known: &Known) -> Failure {
    let names = known.settings.models.keys().map(String::as_str);
    let failure = Failure::usage(format!("no model is called `{name}`"));
    match nearest(name, names) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`dodona models list` shows the configured models"),
    }
}
