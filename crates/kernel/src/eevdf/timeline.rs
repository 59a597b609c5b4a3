//! The queued entities in order of virtual deadline, with the three aggregates the scheduler
//! asks for: the least vruntime of any subtree, the shortest and the longest slice.
//!
//! ```text
//! order:  deadline (signed wrapping difference), then order of insertion
//! node:   min_vruntime = min over its subtree       -> leftmost eligible in O(log n)
//!         min_slice, max_slice likewise             -> read at the root
//! ```
//!
//! The kernel keeps a red-black tree (`cfs_rq::tasks_timeline`); its shape is not observable,
//! so this is a treap whose priorities are a fixed hash of a counter: the same operations give
//! the same tree. Entities live in a slab and are found by task through a sorted index.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::{Entity, EntityId};

const NIL: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node {
    entity: Entity,
    /// Order of insertion: decides among equal deadlines.
    seq: u64,
    /// Heap priority of the treap.
    priority: u64,
    left: u32,
    right: u32,
    min_vruntime: u64,
    min_slice: u64,
    max_slice: u64,
}

impl Node {
    /// A node of the tree without children.
    fn new(entity: Entity, seq: u64) -> Node {
        Node {
            seq,
            priority: spread(seq),
            left: NIL,
            right: NIL,
            min_vruntime: entity.vruntime,
            min_slice: entity.slice,
            max_slice: entity.slice,
            entity,
        }
    }
}

/// The tree of entities that are queued and not running.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Timeline {
    index: Vec<(EntityId, u32)>,
    root: u32,
    nodes: Vec<Node>,
    free: Vec<u32>,
    next_seq: u64,
}

/// Whether virtual time `a` is before `b`; both may have wrapped.
#[inline]
pub(crate) fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// Spreads a counter over 64 bits (the finaliser of splitmix64).
fn spread(counter: u64) -> u64 {
    let mut z = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Timeline {
    pub(crate) const fn new() -> Timeline {
        Timeline { nodes: Vec::new(), free: Vec::new(), index: Vec::new(), root: NIL, next_seq: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.root == NIL
    }

    pub(crate) fn get(&self, id: EntityId) -> Option<&Entity> {
        self.slot(id).map(|(_, n)| &self.nodes[n as usize].entity)
    }

    /// Gives access to an entity, for fields that neither order nor aggregate anything.
    pub(crate) fn get_mut(&mut self, id: EntityId) -> Option<&mut Entity> {
        let (_, n) = self.slot(id)?;
        Some(&mut self.nodes[n as usize].entity)
    }

    /// Iterates over all entities, by task number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entity> {
        self.index.iter().map(|&(_, n)| &self.nodes[n as usize].entity)
    }

    pub(crate) fn insert(&mut self, entity: Entity) {
        let at = match self.index.binary_search_by_key(&entity.id, |&(id, _)| id) {
            Ok(_) => {
                debug_assert!(false, "{} is queued already", entity.id);
                return;
            }
            Err(at) => at,
        };
        let id = entity.id;
        let n = self.allocate(entity);
        self.index.insert(at, (id, n));
        self.root = self.insert_under(self.root, n);
    }

    pub(crate) fn remove(&mut self, id: EntityId) -> Option<Entity> {
        let (at, n) = self.slot(id)?;
        self.index.remove(at);
        self.root = self.remove_under(self.root, n);
        self.free.push(n);
        Some(self.nodes[n as usize].entity)
    }

    /// Replaces a queued entity in place. Among entities of equal deadline it keeps its position,
    /// unless its deadline is new.
    pub(crate) fn put_right(&mut self, entity: Entity) {
        let Some((_, n)) = self.slot(entity.id) else { return };
        self.root = self.remove_under(self.root, n);
        let old = &self.nodes[n as usize];
        let (seq, same) = (old.seq, old.entity.deadline == entity.deadline);
        self.nodes[n as usize] = Node::new(entity, if same { seq } else { self.next_seq });
        self.next_seq += u64::from(!same);
        self.root = self.insert_under(self.root, n);
    }

    /// Takes all of them out, in order: inserted again one by one, equal deadlines stand as they stood.
    pub(crate) fn drain(&mut self) -> Vec<Entity> {
        let mut order: Vec<u32> = self.index.iter().map(|&(_, n)| n).collect();
        order.sort_by(|&a, &b| if self.less(a, b) { Ordering::Less } else { Ordering::Greater });
        let all = order.iter().map(|&n| self.nodes[n as usize].entity).collect();
        *self = Timeline { next_seq: self.next_seq, ..Timeline::new() };
        all
    }

    /// A new slice for `id` where it stands: nothing moves (`min_vruntime_cb_propagate`).
    pub(crate) fn set_slice(&mut self, id: EntityId, slice: u64) {
        let Some((_, n)) = self.slot(id) else { return };
        if self.nodes[n as usize].entity.slice != slice {
            self.nodes[n as usize].entity.slice = slice;
            self.refresh_path(self.root, n);
        }
    }

    fn refresh_path(&mut self, t: u32, n: u32) {
        if t == NIL {
            return;
        }
        if t != n {
            let node = &self.nodes[t as usize];
            let next = if self.less(n, t) { node.left } else { node.right };
            self.refresh_path(next, n);
        }
        self.refresh(t);
    }

    /// The shortest slice of the queued entities; `u64::MAX` if there is none.
    pub(crate) fn min_slice(&self) -> u64 {
        if self.root == NIL { u64::MAX } else { self.nodes[self.root as usize].min_slice }
    }

    /// The longest slice of the queued entities; 0 if there is none.
    pub(crate) fn max_slice(&self) -> u64 {
        if self.root == NIL { 0 } else { self.nodes[self.root as usize].max_slice }
    }

    /// The least vruntime of the queued entities.
    pub(crate) fn min_vruntime(&self) -> Option<u64> {
        (self.root != NIL).then(|| self.nodes[self.root as usize].min_vruntime)
    }

    /// The entity with the earliest deadline among all.
    pub(crate) fn first(&self) -> Option<&Entity> {
        self.first_eligible(|_| true)
    }

    /// The entity that comes after the first.
    pub(crate) fn second(&self) -> Option<&Entity> {
        let (mut above, mut t) = (NIL, self.root);
        while t != NIL && self.nodes[t as usize].left != NIL {
            (above, t) = (t, self.nodes[t as usize].left);
        }
        if t == NIL {
            return None;
        }
        let mut second = self.nodes[t as usize].right;
        if second == NIL {
            second = above;
        } else {
            while self.nodes[second as usize].left != NIL {
                second = self.nodes[second as usize].left;
            }
        }
        (second != NIL).then(|| &self.nodes[second as usize].entity)
    }

    /// The entity with the earliest deadline among those whose vruntime is `eligible`; that
    /// must hold for every vruntime before one for which it holds.
    pub(crate) fn first_eligible(&self, eligible: impl Fn(u64) -> bool) -> Option<&Entity> {
        let mut t = self.root;
        while t != NIL {
            let node = &self.nodes[t as usize];
            if node.left != NIL && eligible(self.nodes[node.left as usize].min_vruntime) {
                t = node.left;
            } else if eligible(node.entity.vruntime) {
                return Some(&node.entity);
            } else {
                t = node.right;
            }
        }
        None
    }

    fn slot(&self, id: EntityId) -> Option<(usize, u32)> {
        let at = self.index.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        Some((at, self.index[at].1))
    }

    fn allocate(&mut self, entity: Entity) -> u32 {
        let node = Node::new(entity, self.next_seq);
        self.next_seq += 1;
        match self.free.pop() {
            Some(n) => {
                self.nodes[n as usize] = node;
                n
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        }
    }

    /// Whether `a` stands before `b` in the tree.
    fn less(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.nodes[a as usize], &self.nodes[b as usize]);
        let order = a.entity.deadline.wrapping_sub(b.entity.deadline) as i64;
        order < 0 || (order == 0 && a.seq < b.seq)
    }

    /// Recomputes the aggregates of `t` from its entity and its children.
    fn refresh(&mut self, t: u32) {
        let node = &self.nodes[t as usize];
        let entity = &node.entity;
        let mut sums = (entity.vruntime, entity.slice, entity.slice);
        for child in [node.left, node.right] {
            if child != NIL {
                let child = &self.nodes[child as usize];
                if before(child.min_vruntime, sums.0) {
                    sums.0 = child.min_vruntime;
                }
                sums.1 = sums.1.min(child.min_slice);
                sums.2 = sums.2.max(child.max_slice);
            }
        }
        let node = &mut self.nodes[t as usize];
        (node.min_vruntime, node.min_slice, node.max_slice) = sums;
    }

    fn insert_under(&mut self, t: u32, n: u32) -> u32 {
        if t == NIL {
            return n;
        }
        if self.nodes[n as usize].priority > self.nodes[t as usize].priority {
            let (left, right) = self.split(t, n);
            let node = &mut self.nodes[n as usize];
            (node.left, node.right) = (left, right);
            self.refresh(n);
            return n;
        }
        if self.less(n, t) {
            self.nodes[t as usize].left = self.insert_under(self.nodes[t as usize].left, n);
        } else {
            self.nodes[t as usize].right = self.insert_under(self.nodes[t as usize].right, n);
        }
        self.refresh(t);
        t
    }

    /// Divides subtree `t` into what stands before `n` and what stands after it.
    fn split(&mut self, t: u32, n: u32) -> (u32, u32) {
        if t == NIL {
            return (NIL, NIL);
        }
        let halves = if self.less(t, n) {
            let (left, right) = self.split(self.nodes[t as usize].right, n);
            self.nodes[t as usize].right = left;
            (t, right)
        } else {
            let (left, right) = self.split(self.nodes[t as usize].left, n);
            self.nodes[t as usize].left = right;
            (left, t)
        };
        self.refresh(t);
        halves
    }

    fn remove_under(&mut self, t: u32, n: u32) -> u32 {
        if t == n {
            let node = &self.nodes[n as usize];
            return self.merge(node.left, node.right);
        }
        if self.less(n, t) {
            self.nodes[t as usize].left = self.remove_under(self.nodes[t as usize].left, n);
        } else {
            self.nodes[t as usize].right = self.remove_under(self.nodes[t as usize].right, n);
        }
        self.refresh(t);
        t
    }

    /// Joins two subtrees, all of `a` standing before all of `b`.
    fn merge(&mut self, a: u32, b: u32) -> u32 {
        if a == NIL {
            return b;
        }
        if b == NIL {
            return a;
        }
        if self.nodes[a as usize].priority > self.nodes[b as usize].priority {
            self.nodes[a as usize].right = self.merge(self.nodes[a as usize].right, b);
            self.refresh(a);
            a
        } else {
            self.nodes[b as usize].left = self.merge(a, self.nodes[b as usize].left);
            self.refresh(b);
            b
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::TaskId;
    use crate::weight::LoadWeight;

    fn entity(id: u32, deadline: u64, vruntime: u64, slice: u64) -> Entity {
        let mut entity = Entity::new(TaskId(id), LoadWeight::of_nice(0));
        (entity.deadline, entity.vruntime, entity.slice) = (deadline, vruntime, slice);
        entity
    }

    /// The tree against a list kept in order, over 20,000 insertions and removals around the
    /// point where virtual time wraps.
    #[test]
    fn agrees_with_a_sorted_list() {
        let (mut tree, mut list) = (Timeline::new(), Vec::<Entity>::new());
        for step in 0..20_000u64 {
            let random = spread(step);
            let id = (random % 300) as u32;
            if let Some(at) = list.iter().position(|e| e.id == TaskId(id)).filter(|_| step % 3 == 0)
            {
                let mut changed = Entity { vruntime: (random >> 30) % 1000, ..list[at] };
                if step % 2 == 0 {
                    changed.deadline = ((random >> 20) % 100).wrapping_sub(50);
                }
                let old = core::mem::replace(&mut list[at], changed);
                if old.deadline != changed.deadline {
                    list.remove(at);
                    let at = list.partition_point(|e| !before(changed.deadline, e.deadline));
                    list.insert(at, changed);
                }
                tree.put_right(changed);
            } else if let Some(at) = list.iter().position(|e| e.id == TaskId(id)) {
                assert_eq!(tree.remove(TaskId(id).into()), Some(list.remove(at)));
            } else {
                let deadline = ((random >> 20) % 100).wrapping_sub(50);
                let new = entity(id, deadline, (random >> 30) % 1000, 1 + (random >> 40) % 50);
                let at = list.partition_point(|e| !before(deadline, e.deadline));
                list.insert(at, new);
                tree.insert(new);
            }
            let limit = (random >> 50) % 1000;
            assert_eq!(
                tree.first_eligible(|v| v <= limit),
                list.iter().find(|e| e.vruntime <= limit)
            );
            assert_eq!(tree.first(), list.first());
            assert_eq!(tree.second(), list.get(1));
            assert_eq!(tree.len(), list.len());
            assert_eq!(tree.min_vruntime(), list.iter().map(|e| e.vruntime).min());
            assert_eq!(tree.min_slice(), list.iter().map(|e| e.slice).min().unwrap_or(u64::MAX));
            assert_eq!(tree.max_slice(), list.iter().map(|e| e.slice).max().unwrap_or(0));
        }
    }

    #[test]
    fn equal_deadlines_keep_the_order_of_insertion() {
        let mut tree = Timeline::new();
        for id in [5, 3, 9, 1] {
            tree.insert(entity(id, 7, 0, 1));
        }
        let order: Vec<u32> = core::iter::from_fn(|| {
            let id = tree.first()?.id;
            tree.remove(id)?.id.as_task().map(|t| t.0)
        })
        .collect();
        assert_eq!(order, [5, 3, 9, 1]);
        assert_eq!(tree.remove(TaskId(5).into()), None);
    }
}
