//! Reader of device tree source (`.dts`, `.dtsi`), as the kernel has it or preprocessed.
//!
//! ```text
//! /dts-v1/;  / { … };  &label { … };  &{/path} { … };
//! label: name@unit { property = <1 &label>, "text", [0a 0b], /bits/ 64 <2000000000>; child { … }; };
//! /delete-node/ name;  /delete-property/ name;  /include/ "file"
//! ```
//!
//! A node that is named again takes in what is new, and its later values win, as `dtc` has it. A word that no
//! header explained is kept as such ([`Datum::Word`]).
//!
//! Source: the Devicetree Specification 0.4, chapter 6.

mod cells;
mod lines;

pub(in crate::import) use lines::ReadInclude;

use super::{Datum, MAX_DEPTH, MAX_NODES, Node, NodeId, Prop, Tree};
use lines::Lines;
use risetime_model::InputError;

/// A tree from source.
pub(in crate::import) struct Source {
    /// The tree.
    pub(in crate::import) tree: Tree,
    /// Files that are included and were not there, a line each.
    pub(in crate::import) missing: Vec<String>,
}

/// Text that is being read.
struct Reader<'l> {
    lines: &'l Lines,
    text: &'l str,
    /// Offsets in `text` at which its lines begin.
    starts: Vec<usize>,
    at: usize,
    tree: Tree,
    missing: Vec<String>,
}

/// Reads the tree in `text`, which errors call `file`; `read` gives what it includes.
///
/// Errors: what is wrong, with file, line and column.
pub(in crate::import) fn parse(
    text: &str,
    file: &str,
    read: &ReadInclude<'_>,
) -> Result<Source, InputError> {
    let lines = lines::read(text, file, read)?;
    let root = Node { place: file.to_owned(), ..Node::default() };
    let tree = Tree { nodes: vec![root] };
    let missing = lines.missing.clone();
    let ends = lines.text.match_indices('\n').map(|(i, _)| i + 1);
    let starts = std::iter::once(0).chain(ends).collect();
    let mut reader = Reader { lines: &lines, text: &lines.text, starts, at: 0, tree, missing };
    reader.file()?;
    Ok(Source { tree: reader.tree, missing: reader.missing })
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The file, line and column of byte `at`.
    fn place(&self, at: usize) -> String {
        let line = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        let column = at - self.starts[line] + 1;
        let known = self.lines.origin.get(line).or(self.lines.origin.last());
        match known {
            Some((file, no)) => format!("{}:{no}:{column}", self.lines.files[*file]),
            None => self.lines.files.first().cloned().unwrap_or_default(),
        }
    }

    fn error<T>(&self, what: impl Into<String>) -> Result<T, InputError> {
        Err(InputError::new(self.place(self.at), what))
    }

    /// Says what is here in place of `wanted`.
    fn unexpected<T>(&self, wanted: &str) -> Result<T, InputError> {
        let found: String = self.rest().chars().take_while(|c| *c != '\n').take(20).collect();
        match found.trim() {
            "" if self.rest().trim().is_empty() => self.error(format!("ends, wanted {wanted}")),
            found => self.error(format!("`{}`, wanted {wanted}", found.escape_debug())),
        }
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes `word` if it comes next.
    fn take(&mut self, word: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn want(&mut self, word: &str) -> Result<(), InputError> {
        match self.take(word) {
            true => Ok(()),
            false => self.unexpected(&format!("`{word}`")),
        }
    }

    /// Takes a name of a node or property; empty: none comes next.
    fn name(&mut self) -> String {
        self.blanks();
        let good = |c: char| c.is_ascii_alphanumeric() || ",._+-?#@".contains(c);
        let rest = self.rest();
        let end = rest.find(|c| !good(c)).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        self.at += end;
        name
    }

    /// Takes a word; empty: none comes next.
    fn word(&mut self) -> String {
        self.blanks();
        let rest = self.rest();
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word = rest[..rest.find(|c| !good(c)).unwrap_or(rest.len())].to_owned();
        self.at += word.len();
        word
    }

    /// Takes a label or a path in braces, behind a `&`.
    fn reference(&mut self) -> Result<String, InputError> {
        if self.take("{") {
            let Some(end) = self.rest().find('}') else { return self.unexpected("`}`") };
            let path = self.rest()[..end].trim().to_owned();
            self.at += end + 1;
            return Ok(path);
        }
        let label = match self.rest().starts_with(char::is_whitespace) {
            true => String::new(),
            false => self.word(),
        };
        match label.is_empty() {
            true => self.unexpected("a label"),
            false => Ok(label),
        }
    }

    fn find(&self, reference: &str) -> Option<NodeId> {
        self.tree.resolve(&super::Cell::Ref(reference.to_owned()))
    }

    fn file(&mut self) -> Result<(), InputError> {
        loop {
            self.blanks();
            if self.rest().is_empty() {
                return Ok(());
            }
            if self.take("/dts-v1/") || self.take("/plugin/") {
                self.want(";")?;
            } else if self.take("/memreserve/") {
                let Some(end) = self.rest().find(';') else { return self.unexpected("`;`") };
                self.at += end + 1;
            } else if self.take("/delete-node/") {
                self.want("&")?;
                let node = self.reference()?;
                self.want(";")?;
                if let Some(node) = self.find(&node) {
                    self.remove(node);
                }
            } else if self.take("/omit-if-no-ref/") {
                // Whether anybody refers to the node changes nothing here.
            } else if self.take("&") {
                self.override_of(Vec::new())?;
            } else if self.take_root() {
                self.body(0, 1)?;
            } else if self.rest().starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                let label = self.name();
                if !self.take(":") {
                    self.at -= label.len();
                    return self.unexpected("`/ {`, `&label {` or `/dts-v1/;`");
                }
                self.labelled(label)?;
            } else {
                return self.unexpected("`/ {`, `&label {` or `/dts-v1/;`");
            }
        }
    }

    /// Takes the `/` of the root.
    fn take_root(&mut self) -> bool {
        let rest = self.rest().strip_prefix('/').unwrap_or("");
        let found = rest.starts_with(|c: char| c.is_whitespace() || c == '{');
        self.at += usize::from(found);
        found
    }

    /// A node at the top that has a label of its own.
    fn labelled(&mut self, label: String) -> Result<(), InputError> {
        if self.take("&") {
            return self.override_of(vec![label]);
        }
        self.want("/")?;
        self.tree.nodes[0].labels.push(label);
        self.body(0, 1)
    }

    /// Takes in what a file adds to a node elsewhere, behind its `&`.
    fn override_of(&mut self, labels: Vec<String>) -> Result<(), InputError> {
        let at = self.at;
        let reference = self.reference()?;
        let node = match self.find(&reference) {
            Some(node) => node,
            // Of a file that is not there: its nodes hang nowhere.
            None if !self.missing.is_empty() => self.new_node(reference, at)?,
            None => {
                self.at = at;
                return self.error(format!("`&{reference}` is no node of this tree"));
            }
        };
        self.tree.nodes[node].labels.extend(labels);
        self.body(node, 1)
    }

    fn new_node(&mut self, name: String, at: usize) -> Result<NodeId, InputError> {
        if self.tree.nodes.len() >= MAX_NODES {
            return self.error("more nodes than any machine has");
        }
        let place = self.place(at);
        self.tree.nodes.push(Node { name, place, ..Node::default() });
        Ok(self.tree.nodes.len() - 1)
    }

    /// `{ … };` of `node`.
    fn body(&mut self, node: NodeId, depth: usize) -> Result<(), InputError> {
        self.want("{")?;
        if depth > MAX_DEPTH {
            return self.error(format!("more than {MAX_DEPTH} nodes in nodes"));
        }
        while !self.take("}") {
            self.statement(node, depth)?;
        }
        self.want(";")
    }

    fn statement(&mut self, node: NodeId, depth: usize) -> Result<(), InputError> {
        if self.take("/delete-node/") {
            let gone = match self.take("&") {
                true => {
                    let reference = self.reference()?;
                    self.find(&reference)
                }
                false => {
                    let name = self.name();
                    self.exact_child(node, &name)
                }
            };
            gone.into_iter().for_each(|gone| self.remove(gone));
            return self.want(";");
        }
        if self.take("/delete-property/") {
            let name = self.name();
            self.tree.nodes[node].props.retain(|(own, _)| *own != name);
            return self.want(";");
        }
        if self.take("/omit-if-no-ref/") {
            return Ok(());
        }
        let mut labels = Vec::new();
        loop {
            self.blanks();
            let at = self.at;
            let name = self.name();
            if name.is_empty() {
                return self.unexpected("a property, a node or `}`");
            }
            if self.take(":") {
                labels.push(name);
                continue;
            }
            self.blanks();
            match self.rest().chars().next() {
                Some('{') => {
                    let child = match self.exact_child(node, &name) {
                        Some(child) => child,
                        None => {
                            let child = self.new_node(name, at)?;
                            self.tree.nodes[node].children.push(child);
                            child
                        }
                    };
                    self.tree.nodes[child].labels.extend(labels);
                    return self.body(child, depth + 1);
                }
                Some('=') => {
                    self.at += 1;
                    let data = self.value()?;
                    self.set(node, name, data, at);
                    return self.want(";");
                }
                Some(';') => {
                    self.set(node, name, Vec::new(), at);
                    return self.want(";");
                }
                Some('(') => {
                    self.at = at;
                    let hint = "run it through the preprocessor first: cpp -nostdinc -I include -undef -x assembler-with-cpp";
                    let what = format!("`{name}(…)` stands where a property does: a macro");
                    return Err(InputError::new(self.place(at), what).hint(hint));
                }
                _ => return self.unexpected(&format!("`=`, `{{` or `;` behind `{name}`")),
            }
        }
    }

    fn exact_child(&self, node: NodeId, name: &str) -> Option<NodeId> {
        let children = &self.tree.nodes[node].children;
        children.iter().find(|id| self.tree.nodes[**id].name == name).copied()
    }

    /// Takes `gone` out of its parent, and its labels with it.
    fn remove(&mut self, gone: NodeId) {
        self.tree.nodes.iter_mut().for_each(|n| n.children.retain(|id| *id != gone));
        let mut open = vec![gone];
        while let Some(id) = open.pop() {
            let node = &mut self.tree.nodes[id];
            node.labels.clear();
            node.props.clear();
            open.extend(std::mem::take(&mut node.children));
        }
    }

    fn set(&mut self, node: NodeId, name: String, data: Vec<Datum>, at: usize) {
        let prop = Prop { data, place: self.place(at) };
        let props = &mut self.tree.nodes[node].props;
        match props.iter_mut().find(|(own, _)| *own == name) {
            Some((_, old)) => *old = prop,
            None => props.push((name, prop)),
        }
    }
}
