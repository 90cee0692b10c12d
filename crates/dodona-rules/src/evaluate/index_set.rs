//! A set of indices.

/// A bit set of indices, iterated in ascending order.
pub(super) struct IndexSet {
    words: Vec<u64>,
}

impl IndexSet {
    /// An empty set for indices below `len`.
    pub(super) fn new(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(64)],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }

    pub(super) fn len(&self) -> usize {
        let counts = self.words.iter().map(|word| word.count_ones() as usize);
        counts.sum()
    }

    /// Calls `visit` for each index, the lowest first.
    #[inline]
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize)) {
        for (at, word) in self.words.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                visit(at * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_visited_in_order() {
        let mut set = IndexSet::new(200);
        for index in [199, 0, 63, 64, 5, 128] {
            set.add(index);
        }
        let mut taken = Vec::new();
        set.for_each(|index| taken.push(index));
        assert_eq!(taken, [0, 5, 63, 64, 128, 199]);
        assert_eq!(set.len(), 6);
        IndexSet::new(0).for_each(|index| panic!("{index} was not added"));
    }
}
