//! The values of a statement's placeholders.

use crate::error::DbError;
use crate::value::{ToValue, ValueRef};

/// What hands one value, with its number counted from 1, to the engine.
type Put<'a> = dyn FnMut(usize, ValueRef<'_>) -> Result<(), DbError> + 'a;

/// Takes values for the placeholders `?1`, `?2` and so on, in order.
pub struct Binder<'a> {
    put: &'a mut Put<'a>,
    bound: usize,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(put: &'a mut Put<'a>) -> Self {
        Binder { put, bound: 0 }
    }

    /// Binds the next placeholder.
    pub fn push(&mut self, value: &(impl ToValue + ?Sized)) -> Result<(), DbError> {
        self.bound += 1;
        let index = self.bound;
        let value = value
            .to_value()
            .map_err(|source| DbError::Parameter { index, source })?;
        (self.put)(index, value)
    }

    pub(crate) fn bound(&self) -> usize {
        self.bound
    }
}

/// The values of a statement: `()`, a tuple of up to twelve, or a slice of one type. For a list
/// whose types are known only at run time use `&[&dyn ToValue]` or `&[ValueRef]`.
pub trait Params {
    /// Binds every value, in order.
    fn bind(&self, binder: &mut Binder<'_>) -> Result<(), DbError>;
}

impl<P: Params + ?Sized> Params for &P {
    fn bind(&self, binder: &mut Binder<'_>) -> Result<(), DbError> {
        (**self).bind(binder)
    }
}

impl<T: ToValue> Params for [T] {
    fn bind(&self, binder: &mut Binder<'_>) -> Result<(), DbError> {
        self.iter().try_for_each(|value| binder.push(value))
    }
}

impl<T: ToValue, const N: usize> Params for [T; N] {
    fn bind(&self, binder: &mut Binder<'_>) -> Result<(), DbError> {
        self.as_slice().bind(binder)
    }
}

impl<T: ToValue> Params for Vec<T> {
    fn bind(&self, binder: &mut Binder<'_>) -> Result<(), DbError> {
        self.as_slice().bind(binder)
    }
}

impl Params for () {
    fn bind(&self, _: &mut Binder<'_>) -> Result<(), DbError> {
        Ok(())
    }
}

macro_rules! tuples {
    ($($name:ident),+) => {
        impl<$($name: ToValue),+> Params for ($($name,)+) {
            fn bind(&self, binder: &mut Binder<'_>) -> Result<(), DbError> {
                #[expect(non_snake_case, reason = "a type parameter names its own value")]
                let ($($name,)+) = self;
                $(binder.push($name)?;)+
                Ok(())
            }
        }
    };
}

tuples!(A);
tuples!(A, B);
tuples!(A, B, C);
tuples!(A, B, C, D);
tuples!(A, B, C, D, E);
tuples!(A, B, C, D, E, F);
tuples!(A, B, C, D, E, F, G);
tuples!(A, B, C, D, E, F, G, H);
tuples!(A, B, C, D, E, F, G, H, I);
tuples!(A, B, C, D, E, F, G, H, I, J);
tuples!(A, B, C, D, E, F, G, H, I, J, K);
tuples!(A, B, C, D, E, F, G, H, I, J, K, L);
