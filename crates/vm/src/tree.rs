//! A device tree as data: nodes and properties, flattened (`vm-fdt`) or printed for a reader.
//!
//! References between nodes are labels; a node gets its phandle by having one. Printing and
//! flattening walk the same tree, so what is shown is what boots.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    name: String,
    label: Option<String>,
    props: Vec<(String, Prop)>,
    children: Vec<Node>,
}

/// Contents of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Prop {
    /// 32-bit cells; each a number or a reference to a label.
    Cells(Vec<Cell>),
    /// One 64-bit number (`/bits/ 64`).
    U64(u64),
    /// Strings.
    Text(Vec<String>),
    /// A property without a value.
    Flag,
}

/// A 32-bit cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// A number.
    N(u32),
    /// The phandle of the node with this label.
    Ref(String),
}

impl From<u32> for Cell {
    fn from(n: u32) -> Cell {
        Cell::N(n)
    }
}

impl Node {
    /// A node; the root's name is empty.
    pub(crate) fn new(name: impl Into<String>) -> Node {
        Node { name: name.into(), ..Node::default() }
    }
    /// Adds a label, so that others can refer to the node.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Node {
        self.label = Some(label.into());
        self
    }
    /// Adds a property of cells.
    pub(crate) fn cells<C: Into<Cell>>(
        mut self,
        name: &str,
        cells: impl IntoIterator<Item = C>,
    ) -> Node {
        self.props.push((name.into(), Prop::Cells(cells.into_iter().map(C::into).collect())));
        self
    }
    /// Adds a property of one cell.
    pub(crate) fn cell(self, name: &str, value: u32) -> Node {
        self.cells(name, [value])
    }
    /// Adds a property that refers to one node.
    pub(crate) fn refer(self, name: &str, label: &str) -> Node {
        self.cells(name, [Cell::Ref(label.into())])
    }
    /// Adds a property of one 64-bit number.
    pub(crate) fn u64(mut self, name: &str, value: u64) -> Node {
        self.props.push((name.into(), Prop::U64(value)));
        self
    }
    /// Adds a property of strings.
    pub(crate) fn text(mut self, name: &str, values: &[&str]) -> Node {
        self.props.push((name.into(), Prop::Text(values.iter().map(|v| v.to_string()).collect())));
        self
    }
    /// Adds a property without a value.
    pub(crate) fn flag(mut self, name: &str) -> Node {
        self.props.push((name.into(), Prop::Flag));
        self
    }
    /// Adds a child.
    pub(crate) fn child(mut self, child: Node) -> Node {
        self.children.push(child);
        self
    }
    /// Adds children.
    pub(crate) fn children(mut self, children: impl IntoIterator<Item = Node>) -> Node {
        self.children.extend(children);
        self
    }

    /// The flattened tree, as a kernel takes it.
    ///
    /// Errors: a reference to a label that does not exist, or what `vm-fdt` refuses (names).
    pub(crate) fn flatten(&self) -> Result<Vec<u8>, String> {
        let mut handles = BTreeMap::new();
        self.number_labels(&mut handles);
        let mut fdt = vm_fdt::FdtWriter::new().map_err(|e| e.to_string())?;
        self.write_to(&mut fdt, &handles)?;
        fdt.finish().map_err(|e| e.to_string())
    }

    fn number_labels<'a>(&'a self, handles: &mut BTreeMap<&'a str, u32>) {
        if let Some(label) = &self.label {
            let next = handles.len() as u32 + 1;
            handles.insert(label, next);
        }
        self.children.iter().for_each(|c| c.number_labels(handles));
    }

    fn write_to(
        &self,
        fdt: &mut vm_fdt::FdtWriter,
        handles: &BTreeMap<&str, u32>,
    ) -> Result<(), String> {
        let place = |e: vm_fdt::Error| format!("device tree: node `{}`: {e}", self.name);
        let node = fdt.begin_node(&self.name).map_err(place)?;
        for (name, prop) in &self.props {
            match prop {
                Prop::Cells(cells) => {
                    let number = |c: &Cell| match c {
                        Cell::N(n) => Ok(*n),
                        Cell::Ref(l) => handles.get(l.as_str()).copied().ok_or(format!(
                            "device tree: node `{}`: no node is labelled `{l}`",
                            self.name
                        )),
                    };
                    let cells: Vec<u32> =
                        cells.iter().map(number).collect::<Result<_, String>>()?;
                    fdt.property_array_u32(name, &cells)
                }
                Prop::U64(n) => fdt.property_u64(name, *n),
                Prop::Text(texts) => fdt.property_string_list(name, texts.clone()),
                Prop::Flag => fdt.property_null(name),
            }
            .map_err(place)?;
        }
        if let Some(label) = &self.label {
            fdt.property_phandle(handles[label.as_str()]).map_err(place)?;
        }
        for c in &self.children {
            c.write_to(fdt, handles)?;
        }
        fdt.end_node(node).map_err(place)
    }

    /// The tree as device tree source, for a reader (`dtc` takes it, too).
    pub(crate) fn source(&self) -> String {
        let mut s = String::from("/dts-v1/;\n\n");
        self.print(&mut s, 0);
        s
    }

    fn print(&self, s: &mut String, depth: usize) {
        let indent = "\t".repeat(depth);
        let name = if self.name.is_empty() { "/" } else { &self.name };
        let label = self.label.as_ref().map(|l| format!("{l}: ")).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(s, "{indent}{label}{name} {{");
        for (name, prop) in &self.props {
            let value = match prop {
                Prop::Cells(cells) => {
                    let words: Vec<String> = cells
                        .iter()
                        .map(|c| match c {
                            Cell::N(n) if reads_better_in_hex(name) => format!("{n:#x}"),
                            Cell::N(n) => n.to_string(),
                            Cell::Ref(l) => format!("&{l}"),
                        })
                        .collect();
                    format!(" = <{}>", words.join(" "))
                }
                Prop::U64(n) => format!(" = /bits/ 64 <{n}>"),
                Prop::Text(texts) => format!(
                    " = {}",
                    texts.iter().map(|t| format!("{t:?}")).collect::<Vec<_>>().join(", ")
                ),
                Prop::Flag => String::new(),
            };
            let _ = writeln!(s, "{indent}\t{name}{value};");
        }
        for (i, c) in self.children.iter().enumerate() {
            if i > 0 || !self.props.is_empty() {
                s.push('\n');
            }
            c.print(s, depth + 1);
        }
        let _ = writeln!(s, "{indent}}};");
    }
}

fn reads_better_in_hex(property: &str) -> bool {
    matches!(property, "reg" | "cpu_on" | "cpu_off" | "cpu_suspend" | "arm,psci-suspend-param")
}
