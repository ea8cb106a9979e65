//! A partition of states into blocks that can be split in time that the split-off part takes
//! (Valmari and Lehtinen 2008, "Efficient minimization of DFAs with partial transition functions").

/// States in blocks.
pub struct Partition {
    /// States, those of a block next to each other.
    order: Vec<u32>,
    /// Where each state stands in the order.
    place: Vec<u32>,
    /// The block of each state.
    block: Vec<u32>,
    /// Per block: where it begins, where its marked states end, where it ends.
    bounds: Vec<[u32; 3]>,
}

impl Partition {
    /// Two blocks (or one): the states that accept, and the others.
    pub fn new(accepting: &[bool]) -> Self {
        let count = accepting.len() as u32;
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_by_key(|&state| accepting[state as usize]);
        let split = accepting.iter().filter(|&&accepting| !accepting).count() as u32;
        let mut parts = Self {
            place: vec![0; accepting.len()],
            block: vec![0; accepting.len()],
            order,
            bounds: Vec::new(),
        };
        for [from, to] in [[0, split], [split, count]] {
            if from < to {
                for at in from..to {
                    let state = parts.order[at as usize] as usize;
                    parts.place[state] = at;
                    parts.block[state] = parts.bounds.len() as u32;
                }
                parts.bounds.push([from, from, to]);
            }
        }
        parts
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.bounds.len()
    }

    /// The block that `state` is in.
    pub fn block_of(&self, state: usize) -> u32 {
        self.block[state]
    }

    /// The states of a block.
    pub fn members(&self, block: u32) -> &[u32] {
        let [from, _, to] = self.bounds[block as usize];
        &self.order[from as usize..to as usize]
    }

    /// Marks a state; a block that had no marked one is added to `touched`.
    pub fn mark(&mut self, state: u32, touched: &mut Vec<u32>) {
        let block = self.block[state as usize];
        let [from, marked, _] = self.bounds[block as usize];
        let at = self.place[state as usize];
        if at < marked {
            return;
        }
        if from == marked {
            touched.push(block);
        }
        let other = self.order[marked as usize];
        self.order.swap(at as usize, marked as usize);
        self.place[other as usize] = at;
        self.place[state as usize] = marked;
        self.bounds[block as usize][1] += 1;
    }

    /// Makes the marked states of a block, or the others if they are fewer, a block of their own.
    /// Nothing if all are marked.
    pub fn split(&mut self, block: u32) -> Option<u32> {
        let [from, marked, to] = self.bounds[block as usize];
        self.bounds[block as usize][1] = from;
        if marked == to {
            return None;
        }
        let fresh = self.bounds.len() as u32;
        let part = if marked - from <= to - marked {
            self.bounds[block as usize] = [marked, marked, to];
            [from, from, marked]
        } else {
            self.bounds[block as usize] = [from, from, marked];
            [marked, marked, to]
        };
        for at in part[0]..part[2] {
            let state = self.order[at as usize] as usize;
            self.block[state] = fresh;
        }
        self.bounds.push(part);
        Some(fresh)
    }
}
