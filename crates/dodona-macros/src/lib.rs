//! `#[plugin]` and `#[method]`: an impl block of plain async functions becomes descriptors and
//! closures.
//!
//! ```text
//! #[plugin(name = "echo")]
//! impl Echo {
//!     /// Says it back.
//!     #[method(scope = "echo:use", tool(category = "meta"))]
//!     async fn say(&self, ctx: &CallCtx, p: SayParams) -> Result<Said, EchoError> { … }
//!
//!     /// Counts, one item each.
//!     #[method(scope = "echo:use")]
//!     async fn count(&self, ctx: &CallCtx, p: CountParams, out: Emitter<Tick>) -> Result<(), EchoError> { … }
//! }
//! ```
//!
//! adds `Echo::plugin_methods(self: &Arc<Self>) -> Result<Vec<Method>, ContractError>`. What a method
//! may say: `scope = "plugin:access"`, `mutates`, `timeout_ms = 5000`, and
//! `tool(category = "vault", agents = ["oracle"], approval)`, where `approval = "agents"` asks
//! only about calls that agents make. A method is streaming when it takes
//! an `Emitter<T>` or returns `impl Stream<Item = Result<T, E>>`.
//!
//! # What it does not do
//!
//! No policy and no transport: the macro emits data and closures, and everything that happens
//! around a call is ordinary code in the hub.

#![warn(missing_docs)]

mod args;
mod expand;
mod signature;

use proc_macro::TokenStream;

/// Turns the `#[method]` functions of an impl block into `fn plugin_methods`. See the crate's docs.
#[proc_macro_attribute]
pub fn plugin(args: TokenStream, block: TokenStream) -> TokenStream {
    expand::plugin(args.into(), block.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Marks a function as a method; only within a `#[plugin]` block, which reads it.
#[proc_macro_attribute]
pub fn method(_args: TokenStream, item: TokenStream) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    let error =
        "`#[method]` belongs on a function of an impl block that has `#[plugin(name = \"…\")]`";
    let error = syn::Error::new(proc_macro2::Span::call_site(), error).to_compile_error();
    quote::quote!(#item #error).into()
}
