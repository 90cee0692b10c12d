//! Calls: which function or method is meant, and whether the arguments fit it.

use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::Ranged;

use super::Lowering;
use crate::builtins::{self, Builtin, Method};
use crate::error::{Error, ErrorKind, Fault};
use crate::ir::{Call, Callee, Entry, Id, MethodCall, Op};
use crate::schema::{Function, Schema};
use crate::suggest;
use crate::value::Value;

pub(super) fn is_function(schema: &Schema, name: &str) -> bool {
    Builtin::named(name).is_some() || schema.root().method(name).is_some()
}

/// Arguments by position, with none for those that were left out.
type Bound = Vec<Option<Id>>;

impl Lowering<'_> {
    pub(super) fn call(&mut self, node: &ast::ExprCall) -> Result<Id, Error> {
        self.check_plain(node)?;
        match &*node.func {
            Expr::Name(name) => self.function(node, name),
            Expr::Attribute(attribute) => self.method(node, attribute),
            _ => Err(self.unsupported("only functions and methods can be called", node)),
        }
    }

    /// Refuses `*args` and `**kwargs`.
    fn check_plain(&self, node: &ast::ExprCall) -> Result<(), Error> {
        if let Some(star) = node.arguments.args.iter().find(|arg| arg.is_starred_expr()) {
            return Err(self.unsupported("`*` cannot stand in a call", star));
        }
        let unnamed = node.arguments.keywords.iter().find(|kw| kw.arg.is_none());
        match unnamed {
            Some(keyword) => Err(self.unsupported("`**` cannot stand in a call", keyword)),
            None => Ok(()),
        }
    }

    fn function(&mut self, node: &ast::ExprCall, name: &ast::ExprName) -> Result<Id, Error> {
        let text = name.id.as_str();
        if let Some(function) = self.schema.root().method(text).cloned() {
            return self.host(node, &function);
        }
        match Builtin::named(text) {
            Some(Builtin::Any | Builtin::All) => self.quantifier(node, text == "any"),
            Some(Builtin::Dict) => self.dict_call(node),
            Some(builtin) => self.builtin(node, builtin),
            None => Err(self.error(suggest::function(self.schema, text), name)),
        }
    }

    /// `any` and `all` of a comprehension stop as soon as the answer is known.
    fn quantifier(&mut self, node: &ast::ExprCall, any: bool) -> Result<Id, Error> {
        let (element, generators) = match (&*node.arguments.args, &*node.arguments.keywords) {
            ([Expr::Generator(inner)], []) => (&inner.elt, &inner.generators),
            _ => {
                let builtin = if any { Builtin::Any } else { Builtin::All };
                return self.builtin(node, builtin);
            }
        };
        let comprehension = Box::new(self.comprehension(generators, element, None)?);
        let op = if any {
            Op::AnyOf(comprehension)
        } else {
            Op::AllOf(comprehension)
        };
        Ok(self.push(op, node))
    }

    /// `dict(…, name=value)` is `{**dict(…), 'name': value}`.
    fn dict_call(&mut self, node: &ast::ExprCall) -> Result<Id, Error> {
        let arguments = self.exprs(&node.arguments.args)?;
        self.check_count("dict", (0, 1), arguments.len(), node)?;
        let base = self.push(
            Op::Call(Box::new(Call {
                function: Builtin::Dict,
                arguments,
                key: None,
                option: None,
            })),
            node,
        );
        if node.arguments.keywords.is_empty() {
            return Ok(base);
        }
        let mut entries = vec![Entry::Spread(base)];
        for keyword in &node.arguments.keywords {
            let name = keyword.arg.as_ref().map_or("", ast::Identifier::as_str);
            let name = self.constant(Value::text(name), keyword);
            entries.push(Entry::Pair(name, self.expr(&keyword.value)?));
        }
        Ok(self.push(Op::Dict(entries.into()), node))
    }

    fn builtin(&mut self, node: &ast::ExprCall, function: Builtin) -> Result<Id, Error> {
        let mut key = None;
        let mut option = None;
        let mut rest = Vec::new();
        for keyword in &node.arguments.keywords {
            let name = keyword.arg.as_ref().map_or("", ast::Identifier::as_str);
            match (function, name) {
                (Builtin::Sorted | Builtin::Min | Builtin::Max, "key") => {
                    key = self.callee(&keyword.value)?;
                }
                (Builtin::Sorted, "reverse") | (Builtin::Min | Builtin::Max, "default") => {
                    option = Some(self.expr(&keyword.value)?);
                }
                _ => rest.push(keyword),
            }
        }
        let bound = self.bind(
            node,
            function.name(),
            function.arity(),
            function.parameters(),
            &rest,
        )?;
        // A gap can only be the first of two, which no function of ours has as its own default.
        let arguments = bound.into_iter().map(|argument| {
            argument.ok_or_else(|| {
                let message = format!("`{}` lacks its first argument", function.name());
                self.error(Fault::type_error(message), node)
            })
        });
        let arguments = arguments.collect::<Result<_, _>>()?;
        let call = Call {
            function,
            arguments,
            key,
            option,
        };
        Ok(self.push(Op::Call(Box::new(call)), node))
    }

    /// `key=`: the name of a function, or `None`.
    fn callee(&mut self, node: &Expr) -> Result<Option<Callee>, Error> {
        match node {
            Expr::NoneLiteral(_) => return Ok(None),
            Expr::Name(name) => {
                let text = name.id.as_str();
                if let Some(function) = self.schema.root().method(text) {
                    return Ok(Some(Callee::Host(function.id)));
                }
                if let Some(builtin) = Builtin::named(text) {
                    return Ok(Some(Callee::Builtin(builtin)));
                }
            }
            _ => {}
        }
        Err(self.unsupported("`key` takes the name of a function, such as `len`", node))
    }

    fn method(&mut self, node: &ast::ExprCall, func: &ast::ExprAttribute) -> Result<Id, Error> {
        let name = func.attr.as_str();
        self.check_public(name, &func.attr)?;
        let receiver = self.expr(&func.value)?;
        if let Some(record) = self.record(receiver) {
            return match record.method(name).cloned() {
                Some(function) => self.host(node, &function),
                None => {
                    let owner = super::span(&*func.value).of(self.source);
                    let fault = suggest::method(record, owner, name);
                    Err(self.error(fault, &func.attr))
                }
            };
        }
        let Some(method) = Method::named(name) else {
            return Err(self.error(unknown_method(name), &func.attr));
        };
        let keywords: Vec<&ast::Keyword> = node.arguments.keywords.iter().collect();
        let bound = self.bind(node, name, method.arity(), method.parameters(), &keywords)?;
        let call = MethodCall {
            method,
            receiver,
            arguments: bound.into(),
        };
        Ok(self.push(Op::Method(Box::new(call)), node))
    }

    fn host(&mut self, node: &ast::ExprCall, function: &Function) -> Result<Id, Error> {
        let names: Vec<&str> = function.parameters.iter().map(|p| &*p.name).collect();
        let least = function.parameters.iter().filter(|p| !p.optional).count();
        let keywords: Vec<&ast::Keyword> = node.arguments.keywords.iter().collect();
        let arity = (least, names.len());
        let bound = self.bind(node, &function.name, arity, &names, &keywords)?;
        let missing = bound.iter().position(Option::is_none);
        if let Some(missing) = missing {
            let message = format!("`{}` lacks `{}`", function.name, names[missing]);
            return Err(self.error(Fault::type_error(message), node));
        }
        let arguments = bound.into_iter().flatten().collect();
        Ok(self.push(Op::Host(function.id, arguments), node))
    }

    /// Puts arguments given by name into their places.
    fn bind(
        &mut self,
        node: &ast::ExprCall,
        function: &str,
        arity: (usize, usize),
        names: &[&str],
        keywords: &[&ast::Keyword],
    ) -> Result<Bound, Error> {
        let positional = self.exprs(&node.arguments.args)?;
        let mut bound: Bound = positional.iter().copied().map(Some).collect();
        for keyword in keywords {
            let name = keyword.arg.as_ref().map_or("", ast::Identifier::as_str);
            let place = names.iter().position(|known| *known == name);
            let Some(place) = place.filter(|_| !name.is_empty()) else {
                let message = format!("`{function}` has no argument named `{name}`");
                return Err(self.error(Fault::type_error(message), *keyword));
            };
            if bound.get(place).copied().flatten().is_some() {
                let message = format!("`{function}` got `{name}` twice");
                return Err(self.error(Fault::type_error(message), *keyword));
            }
            if bound.len() <= place {
                bound.resize(place + 1, None);
            }
            bound[place] = Some(self.expr(&keyword.value)?);
        }
        let given = bound.iter().flatten().count();
        self.check_count(function, arity, given.max(positional.len()), node)?;
        Ok(bound)
    }

    fn check_count(
        &self,
        function: &str,
        (least, most): (usize, usize),
        given: usize,
        node: &impl Ranged,
    ) -> Result<(), Error> {
        if (least..=most).contains(&given) {
            return Ok(());
        }
        let wanted = match (least, most) {
            (least, most) if least == most => format!("{least}"),
            (least, most) if given < least && most > 9 => format!("at least {least}"),
            (least, most) => format!("{least} to {most}"),
        };
        let message = format!("`{function}` takes {wanted} arguments, and got {given}");
        Err(self.error(Fault::type_error(message), node))
    }
}

fn unknown_method(name: &str) -> Fault {
    if builtins::is_mutator(name) {
        let message = format!("`{name}` would change its value, and expressions change nothing");
        return Fault::new(ErrorKind::Unsupported, message);
    }
    if let Some(instead) = builtins::left_out(name) {
        let message = format!("there is no `{name}`");
        return Fault::new(ErrorKind::Unsupported, message).hint(instead);
    }
    suggest::among(
        format!("there is no method `{name}`"),
        name,
        Method::names(),
    )
}
