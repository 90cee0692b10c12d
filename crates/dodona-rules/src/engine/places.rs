//! A set of places in a list.

/// Places, taken out in order however they were put in.
pub(super) struct Places {
    words: Vec<u64>,
    count: usize,
}

impl Places {
    /// None of so many.
    pub(super) fn of(places: usize) -> Self {
        Self {
            words: vec![0; places.div_ceil(64)],
            count: 0,
        }
    }

    /// Puts one in that was not.
    pub(super) fn add(&mut self, place: usize) {
        self.words[place / 64] |= 1 << (place % 64);
        self.count += 1;
    }

    /// How many were put in.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The lowest first.
    pub(super) fn in_order(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let lowest = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(at * 64 + lowest)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_out_in_order() {
        let mut places = Places::of(200);
        for place in [199, 0, 63, 64, 5, 128] {
            places.add(place);
        }
        let taken: Vec<usize> = places.in_order().collect();
        assert_eq!(taken, [0, 5, 63, 64, 128, 199]);
        assert_eq!(places.len(), 6);
        assert_eq!(Places::of(0).in_order().count(), 0);
    }
}
