//! What a method's signature says about it.

use syn::{
    FnArg, GenericArgument, ImplItemFn, PathArguments, ReturnType, Signature, Type, TypeImplTrait,
    TypeParamBound,
};

const SHAPE: &str = "a method is `async fn name(&self, ctx: &CallCtx, p: Params) -> Result<Out, Error>`; \
    a streaming one also takes `out: Emitter<Item>`, or returns `impl Stream<Item = Result<Item, Error>>`";

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
    if !matches!(inputs.next(), Some(FnArg::Receiver(receiver)) if receiver.reference.is_some() && receiver.mutability.is_none())
    {
        return Err(wrong(signature));
    }
    match inputs.next() {
        Some(FnArg::Typed(ctx)) if matches!(&*ctx.ty, Type::Reference(reference) if last_is(&reference.elem, "CallCtx")) =>
            {}
        _ => return Err(wrong(signature)),
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
        _ => return Err(wrong(signature)),
    };
    if let Some(Type::Reference(reference)) = params {
        return Err(syn::Error::new_spanned(
            reference,
            "a method owns its parameters: take them by value",
        ));
    }
    let returned = stream_item(&signature.output);
    let answer = match (emitter, returned) {
        (Some(_), Some(_)) => return Err(wrong(signature)),
        (Some(emitter), None) => {
            Answer::Emits(first_argument(emitter).ok_or_else(|| wrong(signature))?)
        }
        (None, Some(item)) => Answer::Returns(item),
        (None, None) => Answer::Unary,
    };
    let is_async = signature.asyncness.is_some();
    if !is_async && !matches!(answer, Answer::Returns(_)) {
        return Err(syn::Error::new_spanned(
            signature.fn_token,
            format!("a method is async: {SHAPE}"),
        ));
    }
    Ok(Shape {
        params: params.cloned().map(Box::new),
        answer,
        is_async,
    })
}

fn wrong(signature: &Signature) -> syn::Error {
    syn::Error::new_spanned(signature, SHAPE)
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
