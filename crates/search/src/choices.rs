//! Choices of one size for each dimension.
//!
//! There is one factor of growth for each dimension, so choices are counted and looked up by their number, never listed.

use ahash::AHashMap;

/// The remaining limits of a choice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Room {
    /// The largest product of all sizes.
    pub most: i64,
    /// The most dimensions with a size above 1; `None` if any number may have one.
    pub several: Option<usize>,
}

impl Room {
    /// The room that a size leaves to the other dimensions; `None` if the size itself does not fit.
    fn beside(self, size: i64) -> Option<Room> {
        let several = match self.several {
            Some(left) if size > 1 => Some(left.checked_sub(1)?),
            several => several,
        };
        (size <= self.most).then(|| Room { most: self.most / size, several })
    }
}

/// All choices of one size per dimension that fit the room, in order: the first dimension changes fastest. Sizes are
/// positive.
pub(crate) struct Choices {
    lists: Vec<Vec<i64>>,
    room: Room,
    /// For each number of dimensions, from none: the number of choices by the room that the other dimensions leave.
    ways: Vec<AHashMap<Room, u64>>,
}

impl Choices {
    pub fn new(lists: Vec<Vec<i64>>, room: Room) -> Choices {
        let mut ways: Vec<AHashMap<Room, u64>> = lists.iter().map(|_| AHashMap::new()).collect();
        ways.push(AHashMap::from([(room, 0)]));
        // First the rooms that can remain for each number of dimensions, then their choices, fewest dimensions first.
        for (d, list) in lists.iter().enumerate().rev() {
            let (inner, outer) = ways.split_at_mut(d + 1);
            let rooms = outer[0].keys().flat_map(|room| list.iter().filter_map(|size| room.beside(*size)));
            inner[d].extend(rooms.map(|room| (room, 0)));
        }
        ways[0].values_mut().for_each(|ways| *ways = 1);
        for (d, list) in lists.iter().enumerate() {
            let (inner, outer) = ways.split_at_mut(d + 1);
            for (room, ways) in &mut outer[0] {
                let rooms = list.iter().filter_map(|size| room.beside(*size));
                *ways = rooms.fold(0, |sum, room| sum.saturating_add(inner[d][&room]));
            }
        }
        Choices { lists, room, ways }
    }

    /// The number of choices.
    pub fn count(&self) -> u64 {
        self.ways[self.lists.len()][&self.room]
    }

    /// The choice with this number, from 0; `None` beyond the last one.
    pub fn get(&self, number: u64) -> Option<Vec<i64>> {
        let (mut left, mut room) = (number, self.room);
        let mut sizes = vec![1; self.lists.len()];
        for (d, list) in self.lists.iter().enumerate().rev() {
            (sizes[d], room) = list.iter().find_map(|size| {
                let inner = room.beside(*size)?;
                let ways = self.ways[d][&inner];
                let found = left < ways;
                left -= if found { 0 } else { ways };
                found.then_some((*size, inner))
            })?;
        }
        // Without dimensions there is one choice.
        (left == 0).then_some(sizes)
    }

    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = Vec<i64>> + '_ {
        (0..self.count()).filter_map(|number| self.get(number))
    }

    /// All choices or, if there are more than `most`, that many at equal distances.
    pub fn some(&self, most: u64) -> impl Iterator<Item = Vec<i64>> + '_ {
        let (count, taken) = (self.count(), self.count().min(most));
        let number =
            move |position: u64| (u128::from(position) * u128::from(count) / u128::from(taken)) as u64;
        (0..taken).filter_map(move |position| self.get(number(position)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitting(lists: &[&[i64]], room: Room) -> Choices {
        Choices::new(lists.iter().map(|list| list.to_vec()).collect(), room)
    }

    /// The product of the lists, one by one.
    fn listed(lists: &[&[i64]], room: Room) -> Vec<Vec<i64>> {
        let mut all = vec![Vec::new()];
        for list in lists.iter().rev() {
            let longer =
                |rest: &Vec<i64>| list.iter().map(|size| [&[*size], &rest[..]].concat()).collect::<Vec<_>>();
            all = all.iter().flat_map(longer).collect();
        }
        let several = |sizes: &Vec<i64>| sizes.iter().filter(|size| **size > 1).count();
        all.retain(|sizes| sizes.iter().product::<i64>() <= room.most);
        all.retain(|sizes| room.several.is_none_or(|most| several(sizes) <= most));
        all
    }

    #[test]
    fn choices_are_those_of_the_whole_product_in_its_order() {
        let lists: [&[i64]; 4] = [&[1, 2, 4, 8], &[16, 32, 20], &[1, 3], &[1, 2, 7, 5]];
        for most in [0, 15, 16, 40, 64, 1024, i64::MAX] {
            for several in [None, Some(0), Some(1), Some(2), Some(4)] {
                let room = Room { most, several };
                let (choices, expected) = (fitting(&lists, room), listed(&lists, room));
                assert_eq!(choices.count(), expected.len() as u64, "{room:?}");
                assert_eq!(choices.all().collect::<Vec<_>>(), expected, "{room:?}");
                assert_eq!(choices.get(expected.len() as u64), None, "{room:?}");
            }
        }
        let none = fitting(&[], Room { most: 1, several: None });
        assert_eq!((none.count(), none.get(0), none.get(1)), (1, Some(Vec::new()), None));
    }

    #[test]
    fn so_many_at_equal_distances_are_taken_of_more() {
        let choices = fitting(&[&[1, 2, 3], &[1, 2]], Room { most: 100, several: None });
        let first = |most: u64| choices.some(most).map(|sizes| (sizes[0], sizes[1])).collect::<Vec<_>>();
        assert_eq!(first(3), [(1, 1), (3, 1), (2, 2)]);
        assert_eq!(first(6), first(100));
    }

    #[test]
    fn many_dimensions_are_counted_without_a_list() {
        let lists = vec![vec![1, 2, 4, 8]; 64];
        let six = Choices::new(lists.clone(), Room { most: 64, several: None });
        // Exponents that add up to at most 6, none above 3.
        assert_eq!(six.count(), 130_978_705);
        let last = six.get(six.count() - 1);
        assert!(last.is_some_and(|sizes| points(&sizes) == 64));
        let all = Choices::new(lists, Room { most: i64::MAX, several: None });
        assert!(all.count() > 1 << 60 && all.get(1 << 60).is_some());
    }

    fn points(sizes: &[i64]) -> i64 {
        sizes.iter().product()
    }
}
