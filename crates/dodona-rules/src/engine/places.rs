//! A set of places in a list.

/// Places, taken out in order however they were put in.
pub(super) struct Places {
    words: Vec<u64>,
}

impl Places {
    /// None of so many.
    pub(super) fn of(places: usize) -> Self {
        Self {
            words: vec![0; places.div_ceil(64)],
        }
    }

    /// Puts one in.
    #[inline]
    pub(super) fn add(&mut self, place: usize) {
        self.words[place / 64] |= 1 << (place % 64);
    }

    /// How many are in it.
    pub(super) fn len(&self) -> usize {
        let counts = self.words.iter().map(|word| word.count_ones() as usize);
        counts.sum()
    }

    /// Takes note of each, the lowest first.
    #[inline]
    pub(super) fn in_order(&self, mut note: impl FnMut(usize)) {
        for (at, word) in self.words.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                note(at * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
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
        let mut taken = Vec::new();
        places.in_order(|place| taken.push(place));
        assert_eq!(taken, [0, 5, 63, 64, 128, 199]);
        assert_eq!(places.len(), 6);
        Places::of(0).in_order(|place| panic!("{place} was not put in"));
    }
}
