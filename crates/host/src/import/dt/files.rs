//! A device tree as a running kernel shows it: `/proc/device-tree`, a directory for each node, a file for each property.
//!
//! A property holds the bytes of a flattened tree. Directories have no order: nodes of one name go by their unit addresses,
//! as trees mostly have them.

use super::{Datum, MAX_DEPTH, MAX_NODES, Node, Prop, Tree};
use crate::Root;
use risetime_model::InputError;

/// Directory of the root node.
pub(in crate::import) const DIR: &str = "/proc/device-tree";

/// Whether `root` has a tree with CPUs in it.
pub(in crate::import) fn tells(root: &Root) -> bool {
    root.bytes(&format!("{DIR}/#address-cells")).is_some()
        && !root.list(&format!("{DIR}/cpus")).is_empty()
}

/// Reads the tree below [`DIR`].
///
/// Errors: more nodes, or nodes in nodes, than any machine has.
pub(in crate::import) fn read(root: &Root, file: &str) -> Result<Tree, InputError> {
    let mut tree = Tree::default();
    node(root, file, DIR, String::new(), 0, &mut tree)?;
    Ok(tree)
}

/// The unit address of a node's name; without one: 0.
fn address(name: &str) -> (&str, u64) {
    let (kind, at) = name.split_once('@').unwrap_or((name, ""));
    (kind, u64::from_str_radix(at.split(',').next().unwrap_or(at), 16).unwrap_or(0))
}

fn node(
    root: &Root,
    file: &str,
    dir: &str,
    name: String,
    depth: usize,
    tree: &mut Tree,
) -> Result<usize, InputError> {
    let place = format!("{file}: {dir}");
    if depth >= MAX_DEPTH || tree.nodes.len() >= MAX_NODES {
        return Err(InputError::new(place, "more nodes in nodes than any machine has"));
    }
    let id = tree.nodes.len();
    tree.nodes.push(Node { name, place, ..Node::default() });
    let mut names = root.list(dir);
    names.sort_by(|a, b| address(a).cmp(&address(b)));
    for name in names {
        let path = format!("{dir}/{name}");
        if let Some(value) = root.bytes(&path) {
            // The kernel adds it: the node's name is that of the directory.
            if name == "name" {
                continue;
            }
            let data = if value.is_empty() { Vec::new() } else { vec![Datum::Bytes(value)] };
            let place = format!("{file}: {path}");
            tree.nodes[id].props.push((name, Prop { data, place }));
        } else {
            let child = node(root, file, &path, name, depth + 1, tree)?;
            tree.nodes[id].children.push(child);
        }
    }
    Ok(id)
}
