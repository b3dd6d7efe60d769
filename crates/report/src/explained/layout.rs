//! Places the nodes of a graph in layers: every edge leads downwards, and few of them cross.

/// The space between neighbours of a layer.
const GAP: f64 = 14.0;
/// The width of an edge that passes through a layer.
const PASSING: f64 = 6.0;
/// Rounds of ordering and of straightening.
const ROUNDS: usize = 16;

/// The position of a node or of a bend of an edge.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Placed {
    /// Its layer, from 0 at the top.
    pub layer: usize,
    /// Its centre.
    pub x: f64,
}

/// A graph in layers.
pub(super) struct Layout {
    /// The place of each node.
    pub places: Vec<Placed>,
    /// For each edge the places that it passes, from the producer to the consumer.
    pub paths: Vec<Vec<Placed>>,
    /// The width of the widest layer.
    pub width: f64,
    /// The number of layers.
    pub layers: usize,
}

/// The graph with a bend wherever an edge passes a layer.
struct Bent {
    layer: Vec<usize>,
    width: Vec<f64>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    /// The nodes of each layer, from left to right.
    layers: Vec<Vec<usize>>,
}

impl Layout {
    /// Places nodes of given widths. Edges that would close a cycle are ignored.
    pub fn new(widths: &[f64], edges: &[(usize, usize)]) -> Layout {
        let edges: Vec<(usize, usize)> = edges.iter().copied().filter(|(from, to)| from != to).collect();
        let layer = layers_of(widths.len(), &edges);
        let (mut bent, chains) = Bent::new(widths, layer, &edges);
        bent.order();
        let x = bent.straighten();
        let placed = |node: &usize| Placed { layer: bent.layer[*node], x: x[*node] };
        let ends = x.iter().zip(&bent.width).map(|(x, width)| x + width / 2.0);
        Layout {
            places: (0..widths.len()).map(|node| placed(&node)).collect(),
            paths: chains.iter().map(|chain| chain.iter().map(placed).collect()).collect(),
            width: ends.fold(0.0, f64::max),
            layers: bent.layers.len(),
        }
    }
}

/// The layer of each node: below all that it reads, and sources right above their first reader.
fn layers_of(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut layer = vec![0; nodes];
    // Each round settles at least one more layer.
    for _ in 0..nodes {
        let mut moved = false;
        for (from, to) in edges {
            if layer[*to] <= layer[*from] && layer[*from] + 1 < nodes {
                layer[*to] = layer[*from] + 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    for node in 0..nodes {
        if edges.iter().all(|(_, to)| *to != node) {
            let readers = edges.iter().filter(|(from, _)| *from == node).map(|(_, to)| layer[*to]);
            layer[node] = readers.min().unwrap_or(1).saturating_sub(1);
        }
    }
    layer
}

impl Bent {
    /// Adds the bends. Also returns the nodes and bends along each edge.
    fn new(widths: &[f64], layer: Vec<usize>, edges: &[(usize, usize)]) -> (Bent, Vec<Vec<usize>>) {
        let count = layer.iter().max().map_or(0, |last| last + 1);
        let mut bent = Bent {
            layer,
            width: widths.to_vec(),
            above: vec![Vec::new(); widths.len()],
            below: vec![Vec::new(); widths.len()],
            layers: Vec::new(),
        };
        let mut chains = Vec::with_capacity(edges.len());
        for (from, to) in edges {
            let mut chain = vec![*from];
            for layer in bent.layer[*from] + 1..bent.layer[*to] {
                bent.layer.push(layer);
                bent.width.push(PASSING);
                bent.above.push(Vec::new());
                bent.below.push(Vec::new());
                chain.push(bent.layer.len() - 1);
            }
            chain.push(*to);
            for pair in chain.windows(2) {
                bent.below[pair[0]].push(pair[1]);
                bent.above[pair[1]].push(pair[0]);
            }
            chains.push(chain);
        }
        bent.layers = vec![Vec::new(); count];
        for (node, layer) in bent.layer.iter().enumerate() {
            bent.layers[*layer].push(node);
        }
        (bent, chains)
    }

    /// Orders each layer by the mean position of its neighbours, downwards and upwards in turns.
    fn order(&mut self) {
        let mut position = vec![0.0; self.layer.len()];
        let place = |position: &mut Vec<f64>, layer: &[usize]| {
            for (at, node) in layer.iter().enumerate() {
                position[*node] = at as f64 / layer.len() as f64;
            }
        };
        self.layers.iter().for_each(|layer| place(&mut position, layer));
        for round in 0..ROUNDS {
            let down = round % 2 == 0;
            let count = self.layers.len();
            for step in 0..count {
                let at = if down { step } else { count - 1 - step };
                let neighbours = if down { &self.above } else { &self.below };
                let mut layer = std::mem::take(&mut self.layers[at]);
                let wanted = |node: &usize| mean(neighbours[*node].iter().map(|other| position[*other]));
                let keys: Vec<(usize, f64)> =
                    layer.iter().map(|node| (*node, wanted(node).unwrap_or(position[*node]))).collect();
                layer.sort_by(|a, b| key(&keys, *a).total_cmp(&key(&keys, *b)));
                place(&mut position, &layer);
                self.layers[at] = layer;
            }
        }
    }

    /// The centre of each node: close to its neighbours, without overlaps.
    fn straighten(&self) -> Vec<f64> {
        let mut x = vec![0.0; self.layer.len()];
        for layer in &self.layers {
            let mut end = 0.0;
            for node in layer {
                x[*node] = end + self.width[*node] / 2.0;
                end += self.width[*node] + GAP;
            }
        }
        for round in 0..ROUNDS {
            for step in 0..self.layers.len() {
                let at = if round % 2 == 0 { step } else { self.layers.len() - 1 - step };
                let layer = &self.layers[at];
                let near = |node: &usize| self.above[*node].iter().chain(&self.below[*node]);
                let wanted: Vec<f64> = layer
                    .iter()
                    .map(|node| mean(near(node).map(|other| x[*other])).unwrap_or(x[*node]))
                    .collect();
                for (node, place) in layer.iter().zip(self.apart(layer, &wanted)) {
                    x[*node] = place;
                }
            }
        }
        let starts = x.iter().zip(&self.width).map(|(x, width)| x - width / 2.0);
        let first = starts.fold(f64::INFINITY, f64::min);
        x.iter().map(|x| x - if first.is_finite() { first } else { 0.0 }).collect()
    }

    /// Positions close to the wanted ones, in order and without overlaps: the mean of pushing only to the right and
    /// pushing only to the left.
    fn apart(&self, layer: &[usize], wanted: &[f64]) -> Vec<f64> {
        let apart = |a: usize, b: usize| (self.width[layer[a]] + self.width[layer[b]]) / 2.0 + GAP;
        let (mut right, mut left) = (wanted.to_vec(), wanted.to_vec());
        for at in 1..layer.len() {
            right[at] = right[at].max(right[at - 1] + apart(at - 1, at));
            let back = layer.len() - 1 - at;
            left[back] = left[back].min(left[back + 1] - apart(back, back + 1));
        }
        right.iter().zip(&left).map(|(right, left)| (right + left) / 2.0).collect()
    }
}

fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0.0), |(sum, count), number| (sum + number, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

fn key(keys: &[(usize, f64)], node: usize) -> f64 {
    keys.iter().find(|(known, _)| *known == node).map_or(0.0, |(_, key)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_lead_down_and_boxes_do_not_overlap() {
        // A diamond with a long edge, and a source that only the last node reads.
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (0, 4), (5, 4), (4, 4)];
        let widths = [80.0, 120.0, 90.0, 70.0, 100.0, 70.0];
        let Layout { places, paths, width, layers } = Layout::new(&widths, &edges);
        assert_eq!((layers, paths.len()), (4, 7), "an edge to itself is not drawn");
        assert_eq!(places.iter().map(|place| place.layer).collect::<Vec<_>>(), [0, 1, 1, 2, 3, 2]);
        assert_eq!(paths[5].len(), 4, "the long edge passes two layers");
        for path in &paths {
            assert!(path.windows(2).all(|pair| pair[0].layer + 1 == pair[1].layer), "{path:?}");
        }
        for (a, one) in places.iter().enumerate() {
            assert!(one.x >= widths[a] / 2.0 - 1e-6 && one.x + widths[a] / 2.0 <= width + 1e-6);
            for (b, other) in
                places.iter().enumerate().filter(|(b, other)| *b != a && other.layer == one.layer)
            {
                assert!((one.x - other.x).abs() >= (widths[a] + widths[b]) / 2.0, "{a} and {b}");
            }
        }
    }

    #[test]
    fn odd_graphs_are_placed() {
        assert_eq!(Layout::new(&[], &[]).layers, 0);
        assert_eq!(Layout::new(&[70.0, 70.0], &[]).layers, 1);
        // No pipeline has a cycle, but the layout must terminate even then.
        assert!(Layout::new(&[70.0; 3], &[(0, 1), (1, 2), (2, 0)]).layers <= 3);
    }
}
