//! What a method's signature says about it.

use quote::ToTokens;
use syn::{
    FnArg, GenericArgument, ImplItemFn, PathArguments, ReturnType, Signature, Type, TypeImplTrait,
    TypeParamBound,
};

const SHAPE: &str = "\
a method:  async fn name(&self, ctx: &CallCtx, p: Params) -> Result<Out, Error>
streaming: async fn name(&self, ctx: &CallCtx, p: Params, out: Emitter<Item>) -> Result<(), Error>
       or: fn name(&self, ctx: &CallCtx, p: Params) -> impl Stream<Item = Result<Item, Error>>
`p` may be left out";

/// How a method answers.
pub(crate) enum Answer {
    /// With one value.
    Unary,
    /// Through an emitter it takes, of items of this type.
    Emits(Box<Type>),
    /// By returning a stream of items of this type.
    Returns(Box<Type>),
}

/// A method's signature, understood.
pub(crate) struct Shape {
    /// The type of its parameters; `None` when it has none.
    pub(crate) params: Option<Box<Type>>,
    pub(crate) answer: Answer,
    /// Whether calling it gives a future.
    pub(crate) is_async: bool,
}

pub(crate) fn read(function: &ImplItemFn) -> syn::Result<Shape> {
    let signature = &function.sig;
    let mut inputs = signature.inputs.iter();
    receiver(signature, inputs.next())?;
    context(signature, inputs.next())?;
    if let Some(generic) = signature.generics.type_params().next() {
        let message = "a method has no type parameters: its parameters and its result are described once, by their types";
        return Err(syn::Error::new_spanned(generic, message));
    }
    let rest: Vec<&Type> = inputs
        .filter_map(|input| match input {
            FnArg::Typed(typed) => Some(&*typed.ty),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let (params, emitter) = match rest[..] {
        [] => (None, None),
        [one] if last_is(one, "Emitter") => (None, Some(one)),
        [params] => (Some(params), None),
        [params, emitter] if last_is(emitter, "Emitter") => (Some(params), Some(emitter)),
        [first, ..] if last_is(first, "Emitter") => {
            return Err(told(first, "the emitter comes last, after the parameters"));
        }
        [_, second, ..] => {
            let message =
                "a method has one parameter beside the context: a struct with a field for each";
            return Err(told(second, message));
        }
    };
    if let Some(Type::Reference(reference)) = params {
        return Err(syn::Error::new_spanned(
            reference,
            "a method owns its parameters: take them by value",
        ));
    }
    Ok(Shape {
        params: params.cloned().map(Box::new),
        answer: answer(signature, emitter)?,
        is_async: signature.asyncness.is_some(),
    })
}

fn receiver(signature: &Signature, first: Option<&FnArg>) -> syn::Result<()> {
    match first {
        Some(FnArg::Receiver(own)) if own.reference.is_some() && own.mutability.is_none() => Ok(()),
        Some(FnArg::Receiver(own)) => Err(told(
            own,
            "a method takes `&self`: many calls of it run at once",
        )),
        _ => Err(told(&signature.ident, "a method takes `&self` first")),
    }
}

fn context(signature: &Signature, second: Option<&FnArg>) -> syn::Result<()> {
    let message = "a method takes `ctx: &CallCtx` after `&self`";
    match second {
        Some(FnArg::Typed(ctx)) => match &*ctx.ty {
            Type::Reference(reference) if last_is(&reference.elem, "CallCtx") => Ok(()),
            _ => Err(told(ctx, message)),
        },
        _ => Err(told(&signature.ident, message)),
    }
}

fn answer(signature: &Signature, emitter: Option<&Type>) -> syn::Result<Answer> {
    let answer = match (emitter, stream_item(&signature.output)) {
        (Some(emitter), Some(_)) => {
            let message = "a method either takes an emitter or returns a stream, not both";
            return Err(told(emitter, message));
        }
        (Some(emitter), None) => {
            let missing = || told(emitter, "say what it emits: `Emitter<Tick>`");
            Answer::Emits(first_argument(emitter).ok_or_else(missing)?)
        }
        (None, Some(item)) => return Ok(Answer::Returns(item)),
        (None, None) => Answer::Unary,
    };
    let output = match &signature.output {
        ReturnType::Type(_, output) => output,
        ReturnType::Default => {
            return Err(told(&signature.ident, "a method returns a `Result`"));
        }
    };
    if let Type::ImplTrait(_) = &**output {
        let message = "a stream is returned as `impl Stream<Item = Result<Item, Error>>`";
        return Err(told(output, message));
    }
    if signature.asyncness.is_none() {
        return Err(told(signature.fn_token, "a method is an `async fn`"));
    }
    Ok(answer)
}

/// A problem, where it is, and what a method looks like.
fn told(at: impl ToTokens, message: &str) -> syn::Error {
    syn::Error::new_spanned(at, format!("{message}\n\n{SHAPE}"))
}

fn last_is(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|segment| segment.ident == name))
}

fn first_argument(ty: &Type) -> Option<Box<Type>> {
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(Box::new(ty.clone())),
        _ => None,
    })
}

/// `T` of `-> impl Stream<Item = Result<T, E>>`.
fn stream_item(output: &ReturnType) -> Option<Box<Type>> {
    let ReturnType::Type(_, ty) = output else {
        return None;
    };
    let Type::ImplTrait(TypeImplTrait { bounds, .. }) = &**ty else {
        return None;
    };
    bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else {
            return None;
        };
        let segment = bound
            .path
            .segments
            .last()
            .filter(|segment| segment.ident == "Stream")?;
        let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
            return None;
        };
        arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(assoc) if assoc.ident == "Item" => first_argument(&assoc.ty),
            _ => None,
        })
    })
}
