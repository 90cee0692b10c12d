//! Running scripts, on virtual machines that are kept.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;

use crate::error::{ErrorKind, ScriptError};
use crate::host::Host;
use crate::json::Reader;
use crate::limits::Limits;
use crate::object::Object;
use crate::outcome::Outcome;
use crate::script::Script;
use crate::vm::Vm;

/// Runs scripts. Share it: every thread that runs a script takes a virtual machine of its own.
pub struct Engine {
    idle: Mutex<Vec<Vm>>,
    keep: usize,
    no_host: Arc<Host>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine that keeps so many virtual machines for later runs. More may run at the same time.
    pub fn new(keep: usize) -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
            keep,
            no_host: Arc::new(Host::new()),
        }
    }

    /// Runs a script on this thread, which is free again at the latest shortly after the time limit.
    ///
    /// # Errors
    ///
    /// If the script fails, reaches a limit or returns what is no result.
    pub fn run(
        &self,
        script: &Script,
        context: Arc<dyn Object>,
        limits: &Limits,
    ) -> Result<Outcome, ScriptError> {
        self.run_with(script, context, self.no_host.clone(), limits)
    }

    /// As [`run`](Self::run), with functions that the script may call.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_with(
        &self,
        script: &Script,
        context: Arc<dyn Object>,
        host: Arc<Host>,
        limits: &Limits,
    ) -> Result<Outcome, ScriptError> {
        let value = self.evaluate(script, context, host, limits)?;
        Outcome::of(value)
    }

    /// Runs a script for its value, which may be any JSON.
    ///
    /// # Errors
    ///
    /// If the script fails, reaches a limit or returns what is no JSON.
    pub fn evaluate(
        &self,
        script: &Script,
        context: Arc<dyn Object>,
        host: Arc<Host>,
        limits: &Limits,
    ) -> Result<Json, ScriptError> {
        self.session(context, host).evaluate(script, limits)
    }

    /// For several scripts about the same context: they run one after the other, on one virtual
    /// machine if none of them spoils it.
    pub fn session(&self, context: Arc<dyn Object>, host: Arc<Host>) -> Session<'_> {
        Session {
            engine: self,
            vm: None,
            context,
            host,
        }
    }

    fn take(&self) -> Result<Vm, ScriptError> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        match idle {
            Some(vm) => Ok(vm),
            None => Vm::new().map_err(|error| ScriptError::from_lua(&error)),
        }
    }

    fn give_back(&self, vm: Vm) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.keep {
            idle.push(vm);
        }
    }
}

/// Runs of scripts that see the same context. None of them sees what another left behind.
pub struct Session<'e> {
    engine: &'e Engine,
    vm: Option<Vm>,
    context: Arc<dyn Object>,
    host: Arc<Host>,
}

impl Session<'_> {
    /// Runs a script on this thread, as [`Engine::run_with`] does.
    ///
    /// # Errors
    ///
    /// As [`Engine::run`].
    pub fn run(&mut self, script: &Script, limits: &Limits) -> Result<Outcome, ScriptError> {
        let value = self.evaluate(script, limits)?;
        Outcome::of(value)
    }

    /// Runs a script for its value, as [`Engine::evaluate`] does.
    ///
    /// # Errors
    ///
    /// As [`Engine::evaluate`].
    pub fn evaluate(&mut self, script: &Script, limits: &Limits) -> Result<Json, ScriptError> {
        let mut vm = match self.vm.take() {
            Some(vm) => vm,
            None => self.engine.take()?,
        };
        let (context, host) = (Arc::clone(&self.context), Arc::clone(&self.host));
        // A function of the program around may panic; that is an error of this run only.
        let ran = catch_unwind(AssertUnwindSafe(|| {
            run(&mut vm, script, (context, host), limits)
        }));
        let Ok(result) = ran else {
            return Err(ScriptError::new(
                ErrorKind::Runtime,
                "a function it called panicked",
            ));
        };
        let limited = result.as_ref().is_err_and(|error| error.kind.is_limit());
        if !limited && vm.is_fit() {
            self.vm = Some(vm);
        }
        result
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let Some(vm) = self.vm.take() {
            self.engine.give_back(vm);
        }
    }
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

fn run(
    vm: &mut Vm,
    script: &Script,
    seen: (Arc<dyn Object>, Arc<Host>),
    limits: &Limits,
) -> Result<Json, ScriptError> {
    let mut no_result = false;
    let result = vm.run(script, seen, limits, |value| {
        let json = Reader::new(limits.result_bytes).read(&value);
        no_result = json.is_err();
        json
    });
    // A script that caught the error of its limit has reached it all the same.
    if let Some(error) = vm.budget().error() {
        return Err(error);
    }
    result.map_err(|error| {
        let error = ScriptError::from_lua(&error);
        match no_result && !error.kind.is_limit() {
            true => ScriptError::new(ErrorKind::Result, error.message),
            false => error,
        }
    })
}
