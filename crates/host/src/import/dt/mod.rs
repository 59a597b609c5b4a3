//! A device tree as data, whichever form it came in.
//!
//! Source ([`dts`]) names other nodes by label or path, a flattened tree ([`dtb`]), or one of
//! files ([`files`]), by the number in their
//! `phandle`; [`Tree::resolve`] takes either. A value that nobody here asks for is kept unread, so that macros of
//! a kernel's own trees (`GIC_SPI`, …) need no headers as long as no figure hangs on them.

pub(super) mod cpus;
pub(super) mod dtb;
pub(super) mod dts;
pub(super) mod files;

use risetime_model::InputError;

/// Nodes in nodes, at most.
pub(super) const MAX_DEPTH: usize = 64;
/// Nodes of a tree, at most.
pub(super) const MAX_NODES: usize = 200_000;

/// A tree of nodes; the first one is the root.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// All nodes, parents before their children.
    pub(super) nodes: Vec<Node>,
}

/// A node by its index.
pub(super) type NodeId = usize;

/// A node of a device tree.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Name with its unit address: `cpu@100`; empty: the root.
    pub(super) name: String,
    /// Labels by which source refers to it.
    pub(super) labels: Vec<String>,
    /// Properties in their order; a name is there once.
    pub(super) props: Vec<(String, Prop)>,
    /// Children in their order.
    pub(super) children: Vec<NodeId>,
    /// Place in the file: line or byte offset.
    pub(super) place: String,
}

/// A property's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prop {
    /// Parts in their order; none: a property without a value.
    pub(super) data: Vec<Datum>,
    /// Place of the property.
    pub(super) place: String,
}

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Datum {
    /// A 32-bit cell.
    Cell(u32),
    /// A reference to another node, by label or path.
    Ref(String),
    /// A word for which only a preprocessor knows a number.
    Word(String),
    /// A text.
    Text(String),
    /// Bytes of a flattened tree, or of `[…]`.
    Bytes(Vec<u8>),
}

/// A cell that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// A number.
    N(u32),
    /// A reference by label or path.
    Ref(String),
    /// A word without a number.
    Word(String),
}

impl Prop {
    /// The value as 32-bit cells.
    ///
    /// Errors: a text, or bytes that are no multiple of four.
    pub(super) fn cells(&self, name: &str) -> Result<Vec<Cell>, InputError> {
        let mut cells = Vec::new();
        for datum in &self.data {
            match datum {
                Datum::Cell(n) => cells.push(Cell::N(*n)),
                Datum::Ref(label) => cells.push(Cell::Ref(label.clone())),
                Datum::Word(word) => cells.push(Cell::Word(word.clone())),
                Datum::Bytes(bytes) if bytes.len().is_multiple_of(4) => {
                    let number = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
                    cells.extend(bytes.chunks_exact(4).map(|b| Cell::N(number(b))));
                }
                Datum::Bytes(bytes) => {
                    let what = format!("`{name}` has {} bytes, wanted cells of 4", bytes.len());
                    return Err(InputError::new(&*self.place, what));
                }
                Datum::Text(_) => {
                    return Err(InputError::new(
                        &*self.place,
                        format!("`{name}` is text, wanted cells"),
                    ));
                }
            }
        }
        Ok(cells)
    }

    /// The value as numbers of 32 bits.
    ///
    /// Errors: as [`Prop::cells`]'s, and a cell that is no number.
    pub(super) fn numbers(&self, name: &str) -> Result<Vec<u32>, InputError> {
        let number = |cell: Cell| match cell {
            Cell::N(n) => Ok(n),
            Cell::Word(word) | Cell::Ref(word) => {
                let what = format!("`{name}` holds `{word}`, wanted a number");
                let hint = "run it through the preprocessor first: cpp -nostdinc -I include -undef -x assembler-with-cpp";
                Err(InputError::new(&*self.place, what).hint(hint))
            }
        };
        self.cells(name)?.into_iter().map(number).collect()
    }

    /// The value as texts; none where it is none.
    pub(super) fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for datum in &self.data {
            match datum {
                Datum::Text(text) => texts.push(text.clone()),
                Datum::Bytes(bytes) => {
                    let parts = bytes.split(|b| *b == 0).filter(|part| !part.is_empty());
                    texts.extend(parts.map(|part| String::from_utf8_lossy(part).into_owned()));
                }
                _ => {}
            }
        }
        texts
    }
}

impl Node {
    /// The property called `name`.
    pub(super) fn prop(&self, name: &str) -> Option<&Prop> {
        self.props.iter().find(|(own, _)| own == name).map(|(_, prop)| prop)
    }

    /// The only number of `name`; `None`: absent.
    ///
    /// Errors: not exactly one cell, or one that is no number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u32>, InputError> {
        let Some(prop) = self.prop(name) else { return Ok(None) };
        match prop.numbers(name)?[..] {
            [n] => Ok(Some(n)),
            ref n => {
                let what = format!("`{name}` has {} cells, wanted 1", n.len());
                Err(InputError::new(&*prop.place, what))
            }
        }
    }

    /// Whether the node is there to be used (`status`, of_device_is_available).
    pub(super) fn is_available(&self) -> bool {
        let status = self.prop("status").and_then(|p| p.texts().into_iter().next());
        status.is_none_or(|s| s == "okay" || s == "ok")
    }
}

impl Tree {
    /// The child of `node` whose name, with or without its unit address, is `name`.
    pub(super) fn child(&self, node: NodeId, name: &str) -> Option<NodeId> {
        let is = |id: &&NodeId| {
            let own = &self.nodes[**id].name;
            own == name || own.split('@').next() == Some(name)
        };
        self.nodes[node].children.iter().find(is).copied()
    }

    /// The node that a cell refers to.
    pub(super) fn resolve(&self, cell: &Cell) -> Option<NodeId> {
        match cell {
            Cell::N(phandle) => self.nodes.iter().position(|n| {
                ["phandle", "linux,phandle"]
                    .iter()
                    .any(|name| n.number(name).ok().flatten() == Some(*phandle))
            }),
            Cell::Ref(path) if path.starts_with('/') => self.by_path(path),
            Cell::Ref(label) => self.nodes.iter().position(|n| n.labels.contains(label)),
            Cell::Word(_) => None,
        }
    }

    /// The node at `path`.
    pub(super) fn by_path(&self, path: &str) -> Option<NodeId> {
        let mut at = 0;
        for part in path.split('/').filter(|p| !p.is_empty()) {
            at = self.child(at, part)?;
        }
        (!self.nodes.is_empty()).then_some(at)
    }

    /// The nodes that the property `name` of `node` refers to, one for each cell.
    ///
    /// Errors: a cell that refers to nothing.
    pub(super) fn references(&self, node: NodeId, name: &str) -> Result<Vec<NodeId>, InputError> {
        let Some(prop) = self.nodes[node].prop(name) else { return Ok(Vec::new()) };
        let resolve = |cell: &Cell| {
            self.resolve(cell).ok_or_else(|| {
                let to = match cell {
                    Cell::N(n) => format!("phandle {n}"),
                    Cell::Ref(label) | Cell::Word(label) => format!("`{label}`"),
                };
                let what = format!("`{name}` refers to {to}, which no node has");
                InputError::new(&*prop.place, what).hint(
                    "a file that it includes may be missing: give the whole tree, or the .dtb",
                )
            })
        };
        prop.cells(name)?.iter().map(resolve).collect()
    }

    /// The node to which the first cell of `name` refers; `None`: no such property.
    ///
    /// Errors: a reference to nothing.
    pub(super) fn reference(&self, node: NodeId, name: &str) -> Result<Option<NodeId>, InputError> {
        let Some(prop) = self.nodes[node].prop(name) else { return Ok(None) };
        let first = Prop { data: Vec::new(), place: prop.place.clone() };
        let cells = prop.cells(name)?;
        match cells.first() {
            None => Err(InputError::new(first.place, format!("`{name}` is empty"))),
            Some(cell) => match self.resolve(cell) {
                Some(id) => Ok(Some(id)),
                None => self.references(node, name).map(|ids| ids.first().copied()),
            },
        }
    }
}
