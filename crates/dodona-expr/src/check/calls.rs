//! The types of calls.

use std::sync::Arc;

use super::{Checker, common, is_number};
use crate::builtins::{Builtin, Method};
use crate::error::Error;
use crate::ir::{Call, Id, MethodCall};
use crate::schema::{FunctionId, Kind, Type};

fn list_of(inner: Type) -> Type {
    Type::of(Kind::List(Arc::new(inner)))
}

impl Checker<'_> {
    pub(super) fn call(&mut self, call: &Call, id: Id) -> Result<Type, Error> {
        if let Some(option) = call.option {
            self.infer(option)?;
        }
        let mut types = Vec::with_capacity(call.arguments.len());
        for &argument in &call.arguments {
            types.push((argument, self.infer(argument)?));
        }
        match call.function {
            Builtin::Str => Ok(Type::of(Kind::Str)),
            Builtin::Bool => Ok(Type::of(Kind::Bool)),
            Builtin::Int | Builtin::Float | Builtin::Abs | Builtin::Round => {
                self.number_call(call.function, &types, id)
            }
            Builtin::Len => {
                self.sized(&types)?;
                Ok(Type::of(Kind::Int))
            }
            Builtin::Min | Builtin::Max if types.len() > 1 => {
                let mut kinds = types.iter().map(|(_, ty)| ty.clone());
                let first = kinds.next().unwrap_or_else(Type::any);
                Ok(kinds.fold(first, |one, two| common(&one, &two)))
            }
            function => self.over_elements(function, &types),
        }
    }

    fn number_call(
        &mut self,
        function: Builtin,
        types: &[(Id, Type)],
        id: Id,
    ) -> Result<Type, Error> {
        let result = match function {
            Builtin::Float => Type::of(Kind::Float),
            Builtin::Int => Type::of(Kind::Int),
            Builtin::Round if types.len() == 1 => Type::of(Kind::Int),
            _ => match types.first().map(|(_, ty)| &ty.kind) {
                Some(Kind::Float) => Type::of(Kind::Float),
                Some(Kind::Int | Kind::Bool) => Type::of(Kind::Int),
                _ => Type::any(),
            },
        };
        if let Some((argument, ty)) = types.first() {
            self.needs_value(ty, *argument);
            let texts = matches!(function, Builtin::Int | Builtin::Float);
            let fits =
                is_number(&ty.kind) || ty.kind == Kind::Any || (texts && ty.kind == Kind::Str);
            if ty.kind == Kind::None {
                return self.none_here(*argument);
            }
            if !fits {
                let message = format!(
                    "`{}` wants a number, not {a_ty}",
                    function.name(),
                    a_ty = ty.a_type()
                );
                return self.never_works(message, id);
            }
        }
        Ok(result)
    }

    fn sized(&mut self, types: &[(Id, Type)]) -> Result<(), Error> {
        for (argument, ty) in types {
            self.needs_value(ty, *argument);
            if ty.kind == Kind::None {
                self.none_here(*argument)?;
            }
            if is_number(&ty.kind) {
                self.never_works(
                    format!("{a_ty} has no length", a_ty = ty.a_type()),
                    *argument,
                )?;
            }
        }
        Ok(())
    }

    /// Functions that go through the elements of their first argument.
    fn over_elements(&mut self, function: Builtin, types: &[(Id, Type)]) -> Result<Type, Error> {
        let element = match types.first() {
            Some((argument, ty)) => {
                self.needs_value(ty, *argument);
                // `dict` also takes records, which have no elements.
                if function == Builtin::Dict {
                    Type::any()
                } else {
                    self.element_of(ty, *argument)?
                }
            }
            None => Type::any(),
        };
        Ok(match function {
            Builtin::Any | Builtin::All => Type::of(Kind::Bool),
            Builtin::Min | Builtin::Max => element,
            Builtin::Sorted | Builtin::Reversed | Builtin::List => list_of(element),
            Builtin::Tuple => Type::of(Kind::Tuple),
            Builtin::Set => Type::of(Kind::Set),
            Builtin::Dict => Type::of(Kind::Dict(Arc::new(Type::any()))),
            _ => match element.kind {
                Kind::Int | Kind::Bool if types.len() == 1 => Type::of(Kind::Int),
                _ => Type::any(),
            },
        })
    }

    pub(super) fn method(&mut self, call: &MethodCall, id: Id) -> Result<Type, Error> {
        let receiver = self.value(call.receiver)?;
        let mut types = Vec::with_capacity(call.arguments.len());
        for argument in call.arguments.iter().flatten() {
            types.push(self.infer(*argument)?);
        }
        let method = call.method;
        match answer(method, &receiver.kind, &types) {
            Some(ty) => Ok(ty),
            None if receiver.kind == Kind::None => self.none_here(call.receiver),
            None => {
                let message = format!(
                    "{a_receiver} has no method `{}`",
                    method.name(),
                    a_receiver = receiver.a_type()
                );
                self.never_works(message, id)
            }
        }
    }

    pub(super) fn host(&mut self, id: FunctionId, arguments: &[Id]) -> Result<Type, Error> {
        let schema = self.schema;
        let Some(function) = schema.find_function(id) else {
            return Ok(Type::any());
        };
        for (parameter, &argument) in function.parameters.iter().zip(arguments) {
            let ty = self.infer(argument)?;
            if !parameter.ty.nullable {
                self.needs_value(&ty, argument);
            }
            if !accepts(&parameter.ty, &ty) {
                let (name, wanted) = (&function.name, &parameter.ty);
                let message = format!("`{name}` wants {wanted} for `{}`, not {ty}", parameter.name);
                self.never_works(message, argument)?;
            }
        }
        Ok(function.returns.clone())
    }
}

/// Whether a parameter takes a value of this type.
fn accepts(parameter: &Type, ty: &Type) -> bool {
    match (&parameter.kind, &ty.kind) {
        (Kind::Any, _) | (_, Kind::Any) => true,
        (_, Kind::None) => parameter.nullable,
        (Kind::Float, Kind::Int | Kind::Bool) | (Kind::Int, Kind::Bool) => true,
        (one, two) => std::mem::discriminant(one) == std::mem::discriminant(two),
    }
}

/// What a method returns; none if values of this kind do not have it.
fn answer(method: Method, receiver: &Kind, arguments: &[Type]) -> Option<Type> {
    match receiver {
        Kind::Any => Some(Type::any()),
        Kind::Str => of_text(method),
        Kind::List(_) | Kind::Tuple => match method {
            Method::Count | Method::Index => Some(Type::of(Kind::Int)),
            Method::Copy if *receiver != Kind::Tuple => Some(Type::of(receiver.clone())),
            _ => None,
        },
        Kind::Dict(inner) => of_dict(method, inner, arguments),
        Kind::Set => match method {
            Method::IsDisjoint | Method::IsSubset | Method::IsSuperset => {
                Some(Type::of(Kind::Bool))
            }
            Method::Copy
            | Method::Union
            | Method::Intersection
            | Method::Difference
            | Method::SymmetricDifference => Some(Type::of(Kind::Set)),
            _ => None,
        },
        Kind::Int | Kind::Bool if method == Method::BitLength => Some(Type::of(Kind::Int)),
        // A host may give an integer for a float.
        Kind::Float if method == Method::IsInteger => Some(Type::of(Kind::Bool)),
        _ => None,
    }
}

fn of_dict(method: Method, inner: &Arc<Type>, arguments: &[Type]) -> Option<Type> {
    Some(match method {
        Method::Get => match arguments {
            [_, default] => common(inner, default),
            _ => Type {
                kind: inner.kind.clone(),
                nullable: inner.kind != Kind::Any,
            },
        },
        Method::Has => Type::of(Kind::Bool),
        Method::Keys => list_of(Type::of(Kind::Str)),
        Method::Values => list_of(Type::clone(inner)),
        Method::Items => list_of(Type::of(Kind::Tuple)),
        Method::Copy => Type::of(Kind::Dict(inner.clone())),
        _ => return None,
    })
}

fn of_text(method: Method) -> Option<Type> {
    Some(match method {
        Method::Count | Method::Find | Method::Index | Method::RFind | Method::RIndex => {
            Type::of(Kind::Int)
        }
        Method::EndsWith
        | Method::StartsWith
        | Method::IsAlnum
        | Method::IsAlpha
        | Method::IsAscii
        | Method::IsDecimal
        | Method::IsDigit
        | Method::IsIdentifier
        | Method::IsLower
        | Method::IsNumeric
        | Method::IsPrintable
        | Method::IsSpace
        | Method::IsTitle
        | Method::IsUpper => Type::of(Kind::Bool),
        Method::Partition | Method::RPartition => Type::of(Kind::Tuple),
        Method::Split | Method::RSplit | Method::SplitLines => list_of(Type::of(Kind::Str)),
        Method::Capitalize
        | Method::Casefold
        | Method::Center
        | Method::ExpandTabs
        | Method::Join
        | Method::LJust
        | Method::Lower
        | Method::LStrip
        | Method::RemovePrefix
        | Method::RemoveSuffix
        | Method::Replace
        | Method::RJust
        | Method::RStrip
        | Method::Strip
        | Method::SwapCase
        | Method::Title
        | Method::Upper
        | Method::ZFill => Type::of(Kind::Str),
        _ => return None,
    })
}
