//! What stands in the parentheses of the attributes.

use syn::parse::{Parse, ParseStream};
use syn::{Expr, ExprArray, ExprLit, Ident, Lit, LitInt, LitStr, Token};

/// `#[plugin(name = "echo")]`
pub(crate) struct PluginArgs {
    pub(crate) name: LitStr,
}

impl Parse for PluginArgs {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let usage = "write the plugin's name: `#[plugin(name = \"echo\")]`";
        let key: Ident = input
            .parse()
            .map_err(|error| syn::Error::new(error.span(), usage))?;
        if key != "name" {
            return Err(syn::Error::new(key.span(), usage));
        }
        input.parse::<Token![=]>()?;
        let name: LitStr = input.parse()?;
        check_name(&name)?;
        let _: Option<Token![,]> = input.parse()?;
        Ok(Self { name })
    }
}

fn check_name(name: &LitStr) -> syn::Result<()> {
    if is_name(&name.value()) {
        return Ok(());
    }
    Err(syn::Error::new(
        name.span(),
        "a plugin's name is lower-case letters, digits, `_` and `-`, begins with a letter and has \
         at most 64 characters",
    ))
}

/// The same rule as `dodona_proto::PluginName`, told at compile time.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= 64
        && text
            .chars()
            .all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-'))
}

/// `#[method(scope = "…", mutates, timeout_ms = 5000, tool(…))]`
#[derive(Default)]
pub(crate) struct MethodArgs {
    pub(crate) scope: Option<LitStr>,
    pub(crate) mutates: bool,
    pub(crate) timeout_ms: Option<LitInt>,
    pub(crate) tool: Option<ToolArgs>,
}

/// `tool(category = "vault", agents = ["oracle"], approval)`, or `approval = "agents"`
pub(crate) struct ToolArgs {
    pub(crate) category: Ident,
    pub(crate) agents: Vec<LitStr>,
    /// A variant of `dodona_proto::Approval`.
    pub(crate) approval: Ident,
}

impl Parse for MethodArgs {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut args = Self::default();
        each(input, |key, input| {
            match key.to_string().as_str() {
                "scope" => args.scope = Some(scope(input)?),
                "mutates" => args.mutates = true,
                "timeout_ms" => {
                    input.parse::<Token![=]>()?;
                    args.timeout_ms = Some(input.parse()?);
                }
                "tool" => args.tool = Some(tool(key, input)?),
                _ => return Err(unknown(key, "`scope`, `mutates`, `timeout_ms` or `tool`")),
            }
            Ok(())
        })?;
        Ok(args)
    }
}

fn scope(input: ParseStream<'_>) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    let scope: LitStr = input.parse()?;
    let text = scope.value();
    let fits = text
        .split_once(':')
        .is_some_and(|(plugin, access)| is_name(plugin) && is_name(access));
    if !fits {
        return Err(syn::Error::new(
            scope.span(),
            "a scope is `plugin:access`, two names in lower case: `\"vault:read\"`",
        ));
    }
    Ok(scope)
}

fn tool(key: &Ident, input: ParseStream<'_>) -> syn::Result<ToolArgs> {
    let inner;
    syn::parenthesized!(inner in input);
    let mut category = None;
    let mut agents = vec![LitStr::new("oracle", key.span())];
    let mut approval = Ident::new("Never", key.span());
    each(&inner, |key, input| {
        match key.to_string().as_str() {
            "category" => {
                input.parse::<Token![=]>()?;
                category = Some(variant(&input.parse()?)?);
            }
            "agents" => {
                input.parse::<Token![=]>()?;
                agents = strings(&input.parse()?)?;
            }
            "approval" => approval = approval_of(key, input)?,
            _ => return Err(unknown(key, "`category`, `agents` or `approval`")),
        }
        Ok(())
    })?;
    let category = category.ok_or_else(|| {
        syn::Error::new(
            key.span(),
            "a tool needs a category: `tool(category = \"meta\")`",
        )
    })?;
    Ok(ToolArgs {
        category,
        agents,
        approval,
    })
}

/// `approval` alone is for each call, `approval = "agents"` for those that agents make.
fn approval_of(key: &Ident, input: ParseStream<'_>) -> syn::Result<Ident> {
    if !input.peek(Token![=]) {
        return Ok(Ident::new("Always", key.span()));
    }
    input.parse::<Token![=]>()?;
    let whose: LitStr = input.parse()?;
    match whose.value().as_str() {
        "agents" => Ok(Ident::new("Agents", whose.span())),
        _ => {
            let message =
                "write `approval` for each call, `approval = \"agents\"` for those of agents";
            Err(syn::Error::new(whose.span(), message))
        }
    }
}

fn variant(name: &LitStr) -> syn::Result<Ident> {
    let variant = match name.value().as_str() {
        "vault" => "Vault",
        "thread" => "Thread",
        "code" => "Code",
        "web" => "Web",
        "meta" => "Meta",
        _ => {
            let message = "unknown category: one of `vault`, `thread`, `code`, `web`, `meta`";
            return Err(syn::Error::new(name.span(), message));
        }
    };
    Ok(Ident::new(variant, name.span()))
}

fn strings(array: &ExprArray) -> syn::Result<Vec<LitStr>> {
    let literal = |expr: &Expr| match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Ok(text.clone()),
        other => Err(syn::Error::new_spanned(other, "expected a string literal")),
    };
    array.elems.iter().map(literal).collect()
}

fn each(
    input: ParseStream<'_>,
    mut take: impl FnMut(&Ident, ParseStream<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    let mut seen: Vec<Ident> = Vec::new();
    while !input.is_empty() {
        let key: Ident = input.parse()?;
        if seen.contains(&key) {
            return Err(syn::Error::new(
                key.span(),
                format!("`{key}` stands here twice"),
            ));
        }
        take(&key, input)?;
        seen.push(key);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

fn unknown(key: &Ident, known: &str) -> syn::Error {
    syn::Error::new(
        key.span(),
        format!("unknown option `{key}`: expected {known}"),
    )
}
