//! From an impl block to `fn plugin_methods`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Expr, ExprLit, ImplItem, ImplItemFn, ItemImpl, Lit, Meta};

use crate::args::{MethodArgs, PluginArgs, ToolArgs};
use crate::signature::{self, Answer, Shape};

pub(crate) fn plugin(args: TokenStream, block: TokenStream) -> syn::Result<TokenStream> {
    let args: PluginArgs = syn::parse2(args)?;
    let belongs = "`#[plugin]` belongs on an inherent impl block: `impl Echo { … }`";
    let mut block: ItemImpl =
        syn::parse2(block.clone()).map_err(|_| syn::Error::new_spanned(block, belongs))?;
    if let Some((_, path, _)) = &block.trait_ {
        return Err(syn::Error::new_spanned(path, belongs));
    }
    let mut methods = Vec::new();
    let mut problems: Option<syn::Error> = None;
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else {
            continue;
        };
        let Some(position) = function.attrs.iter().position(is_method) else {
            continue;
        };
        let attribute = function.attrs.remove(position);
        match method(&args, function, &attribute) {
            Ok(tokens) => methods.push(tokens),
            // Every problem is told, not only the first.
            Err(error) => match &mut problems {
                Some(problems) => problems.combine(error),
                None => problems = Some(error),
            },
        }
    }
    if let Some(problems) = problems {
        let errors = problems.to_compile_error();
        return Ok(quote!(#block #errors));
    }
    let (impl_generics, _, where_clause) = block.generics.split_for_impl();
    let ty = &block.self_ty;
    Ok(quote! {
        #block

        impl #impl_generics #ty #where_clause {
            /// The methods of this plugin: what surfaces need to know, and what the hub runs.
            pub(crate) fn plugin_methods(
                self: &::std::sync::Arc<Self>,
            ) -> ::std::result::Result<::std::vec::Vec<::dodona_plugin::Method>, ::dodona_plugin::ContractError> {
                ::std::result::Result::Ok(::std::vec![#(#methods),*])
            }
        }
    })
}

fn is_method(attribute: &Attribute) -> bool {
    attribute
        .path()
        .segments
        .last()
        .is_some_and(|segment| segment.ident == "method")
}

fn method(
    plugin: &PluginArgs,
    function: &ImplItemFn,
    attribute: &Attribute,
) -> syn::Result<TokenStream> {
    let args = match &attribute.meta {
        Meta::Path(_) => MethodArgs::default(),
        _ => attribute.parse_args()?,
    };
    let shape = signature::read(function)?;
    let name = format!("{}.{}", plugin.name.value(), function.sig.ident.unraw());
    let description = doc(function)?;
    let spec = spec(&name, &description, &args);
    let ident = &function.sig.ident;
    let params = match &shape.params {
        Some(ty) => quote!(#ty),
        None => quote!(::dodona_plugin::NoParams),
    };
    let given = shape.params.as_ref().map(|_| quote!(, p));
    Ok(match &shape.answer {
        Answer::Unary => quote! {
            ::dodona_plugin::Method::unary(&#spec, {
                let me = ::std::sync::Arc::clone(self);
                move |ctx: ::dodona_plugin::CallCtx, p: #params| {
                    let me = ::std::sync::Arc::clone(&me);
                    async move { let _ = &p; me.#ident(&ctx #given).await }
                }
            })?
        },
        Answer::Emits(item) => quote! {
            ::dodona_plugin::Method::streaming(&#spec, {
                let me = ::std::sync::Arc::clone(self);
                move |ctx: ::dodona_plugin::CallCtx, p: #params, out: ::dodona_plugin::Emitter<#item>| {
                    let me = ::std::sync::Arc::clone(&me);
                    async move { let _ = &p; me.#ident(&ctx #given, out).await }
                }
            })?
        },
        Answer::Returns(item) => {
            let wait = wait(&shape);
            quote! {
                ::dodona_plugin::Method::streaming(&#spec, {
                    let me = ::std::sync::Arc::clone(self);
                    move |ctx: ::dodona_plugin::CallCtx, p: #params, out: ::dodona_plugin::Emitter<#item>| {
                        let me = ::std::sync::Arc::clone(&me);
                        async move { let _ = &p; ::dodona_plugin::forward(me.#ident(&ctx #given) #wait, &out).await }
                    }
                })?
            }
        }
    })
}

fn wait(shape: &Shape) -> TokenStream {
    if shape.is_async {
        quote!(.await)
    } else {
        quote!()
    }
}

fn spec(name: &str, description: &str, args: &MethodArgs) -> TokenStream {
    let MethodArgs {
        scope,
        mutates,
        timeout_ms,
        tool,
    } = args;
    let option = |value: Option<TokenStream>| match value {
        Some(value) => quote!(::std::option::Option::Some(#value)),
        None => quote!(::std::option::Option::None),
    };
    let scope = option(scope.as_ref().map(|scope| quote!(#scope)));
    let timeout_ms = option(timeout_ms.as_ref().map(|ms| quote!(#ms)));
    let tool = option(tool.as_ref().map(tool_spec));
    quote! {
        ::dodona_plugin::MethodSpec {
            name: #name,
            description: #description,
            scope: #scope,
            mutates: #mutates,
            timeout_ms: #timeout_ms,
            tool: #tool,
        }
    }
}

fn tool_spec(tool: &ToolArgs) -> TokenStream {
    let ToolArgs {
        category,
        agents,
        approval,
    } = tool;
    quote! {
        ::dodona_plugin::ToolSpec {
            category: ::dodona_plugin::proto::ToolCategory::#category,
            agents: &[#(#agents),*],
            approval: ::dodona_plugin::proto::Approval::#approval,
        }
    }
}

/// The doc comment, unindented; it is what people and models read about the method.
fn doc(function: &ImplItemFn) -> syn::Result<String> {
    let lines: Vec<String> = function.attrs.iter().filter_map(doc_line).collect();
    let text = lines.join("\n").trim().to_owned();
    if text.is_empty() {
        let message =
            "a method needs a doc comment: it is the description that people and models see";
        return Err(syn::Error::new_spanned(&function.sig.ident, message));
    }
    Ok(text)
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    if !pair.path.is_ident("doc") {
        return None;
    }
    let Expr::Lit(ExprLit {
        lit: Lit::Str(text),
        ..
    }) = &pair.value
    else {
        return None;
    };
    let line = text.value();
    Some(
        line.strip_prefix(' ')
            .unwrap_or(&line)
            .trim_end()
            .to_owned(),
    )
}
