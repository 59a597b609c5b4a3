//! Type information: where a field is inside a kernel structure, from the kernel's own.
//!
//! ```text
//! header   magic eb9f  version flags  hdr_len type_off type_len str_off str_len
//! type     name_off  info (kind << 24 | member count, bit 31: bit fields)  size or type
//!          followed by what the kind brings: a struct's members are (name_off type offset)
//! ```
//!
//! Read: what is needed to walk over all types and into structures, unions (also nameless ones),
//! typedefs, qualifiers and pointers, and the arguments of a function. Left out: everything else, and
//! big-endian files.
//!
//! Source: Documentation/bpf/btf.rst.

use std::fmt;

const MAGIC: u16 = 0xeb9f;
const KIND_INT: u32 = 1;
const KIND_PTR: u32 = 2;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_FUNC: u32 = 12;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
/// Largest depth of nameless structures in each other.
const MAX_DEPTH: u32 = 16;

/// Type information.
#[derive(Debug)]
pub struct Btf<'a> {
    strings: &'a [u8],
    types: &'a [u8],
    /// Byte offset of each type in `types`; type 0 is `void` and has none.
    starts: Vec<u32>,
}

/// A member of a structure.
struct Member {
    /// Offset in bits.
    offset: u64,
    /// Length in bits, of a bit field.
    width: Option<u32>,
    /// Type of the member.
    id: u32,
}

/// Reason for which there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BtfError(String);

impl fmt::Display for BtfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel types: {}", self.0)
    }
}

fn err<T>(what: impl Into<String>) -> Result<T, BtfError> {
    Err(BtfError(what.into()))
}

fn word(bytes: &[u8], at: usize) -> Result<u32, BtfError> {
    let end = at.checked_add(4).and_then(|end| bytes.get(at..end));
    end.map_or_else(
        || err(format!("cut short at byte {at}")),
        |b| Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
    )
}

fn slice(bytes: &[u8], start: u64, len: u32) -> Result<&[u8], BtfError> {
    let range = usize::try_from(start).ok().zip(usize::try_from(start + u64::from(len)).ok());
    range
        .and_then(|(a, b)| bytes.get(a..b))
        .map_or_else(|| err("a section lies outside the file"), Ok)
}

struct Type {
    kind: u32,
    members: u32,
    bit_fields: bool,
    /// The type it refers to, or its size.
    refers: u32,
    name: u32,
    /// Offset of the kind's own data.
    body: usize,
}

impl<'a> Btf<'a> {
    /// The type information in `bytes` (`/sys/kernel/btf/vmlinux`).
    ///
    /// Errors: not of this form, or a kind of type that is not known (its length is not either).
    pub fn parse(bytes: &'a [u8]) -> Result<Btf<'a>, BtfError> {
        if word(bytes, 0)? & 0xffff != u32::from(MAGIC) {
            return err("not in BTF's form");
        }
        let head = u64::from(word(bytes, 4)?);
        let types = slice(bytes, head + u64::from(word(bytes, 8)?), word(bytes, 12)?)?;
        let strings = slice(bytes, head + u64::from(word(bytes, 16)?), word(bytes, 20)?)?;
        let mut btf = Btf { strings, types, starts: vec![0] };
        let mut at = 0;
        while at < types.len() {
            btf.starts.push(at as u32);
            let t = btf.at(at)?;
            at = t.body + t.body_len()?;
        }
        if at != types.len() {
            return err("the last type is cut short");
        }
        Ok(btf)
    }

    fn at(&self, at: usize) -> Result<Type, BtfError> {
        let info = word(self.types, at + 4)?;
        Ok(Type {
            kind: info >> 24 & 0x1f,
            members: info & 0xffff,
            bit_fields: info >> 31 == 1,
            refers: word(self.types, at + 8)?,
            name: word(self.types, at)?,
            body: at + 12,
        })
    }

    fn of_id(&self, id: u32) -> Result<Type, BtfError> {
        match self.starts.get(id as usize) {
            Some(start) if id != 0 => self.at(*start as usize),
            _ => err(format!("there is no type {id}")),
        }
    }

    fn name(&self, offset: u32) -> &'a [u8] {
        let rest = self.strings.get(offset as usize..).unwrap_or_default();
        &rest[..rest.iter().position(|b| *b == 0).unwrap_or(rest.len())]
    }

    /// The byte offset of `STRUCT.FIELD`, where the field may be one inside another
    /// (`sched_entity.avg.util_avg`).
    ///
    /// Errors: no such structure or field, or a bit field.
    pub fn offset(&self, path: &str) -> Result<u64, BtfError> {
        let mut names = path.split('.');
        let root = names.next().unwrap_or_default();
        let mut inside = self.structure(root)?;
        let mut bits = 0;
        let mut field = None;
        for name in names {
            let Some(found) = self.member(&inside, name.as_bytes(), 0)? else {
                return err(format!("{path}: there is no {name} in it"));
            };
            bits += found.offset;
            field = Some(name);
            inside = self.resolved(found.id)?;
        }
        match field {
            None => err(format!("{path}: wanted STRUCTURE.FIELD")),
            Some(name) if bits % 8 != 0 => err(format!("{path}: {name} is a bit field")),
            Some(_) => Ok(bits / 8),
        }
    }

    /// The structure or union called `name`, which has members.
    fn structure(&self, name: &str) -> Result<Type, BtfError> {
        for start in &self.starts[1..] {
            let t = self.at(*start as usize)?;
            if (t.kind == KIND_STRUCT || t.kind == KIND_UNION)
                && self.name(t.name) == name.as_bytes()
            {
                return Ok(t);
            }
        }
        err(format!("there is no structure {name}"))
    }

    /// A member, looked for in nameless members too.
    fn member(&self, of: &Type, name: &[u8], depth: u32) -> Result<Option<Member>, BtfError> {
        if (of.kind != KIND_STRUCT && of.kind != KIND_UNION) || depth > MAX_DEPTH {
            return Ok(None);
        }
        for i in 0..of.members as usize {
            let at = of.body + i * 12;
            let (member_name, id) = (self.name(word(self.types, at)?), word(self.types, at + 4)?);
            let place = word(self.types, at + 8)?;
            let offset = u64::from(if of.bit_fields { place & 0xff_ffff } else { place });
            if member_name == name {
                let width = Some(place >> 24).filter(|width| of.bit_fields && *width > 0);
                return Ok(Some(Member { offset, width, id }));
            }
            if member_name.is_empty()
                && let Some(inner) = self.member(&self.resolved(id)?, name, depth + 1)?
            {
                return Ok(Some(Member { offset: offset + inner.offset, ..inner }));
            }
        }
        Ok(None)
    }

    /// The type behind typedefs and qualifiers.
    fn resolved(&self, id: u32) -> Result<Type, BtfError> {
        let mut t = self.of_id(id)?;
        for _ in 0..64 {
            match t.kind {
                8..=11 | 18 => t = self.of_id(t.refers)?,
                _ => return Ok(t),
            }
        }
        err("a type refers to itself")
    }

    /// The offset of the per-CPU variable `name` in each CPU's area.
    ///
    /// Errors: no such variable.
    fn percpu(&self, name: &str) -> Result<u64, BtfError> {
        let of = |kind| {
            let starts = self.starts.iter().enumerate().skip(1);
            starts.filter_map(move |(id, start)| {
                Some((id, self.at(*start as usize).ok()?)).filter(|(_, t)| t.kind == kind)
            })
        };
        let variable = of(KIND_VAR).find(|(_, t)| self.name(t.name) == name.as_bytes());
        let Some((variable, _)) = variable else {
            return err(format!("there is no variable {name}"));
        };
        for (_, section) in of(KIND_DATASEC) {
            for i in 0..section.members as usize {
                let at = section.body + i * 12;
                if word(self.types, at)? as usize == variable {
                    return Ok(word(self.types, at + 4)?.into());
                }
            }
        }
        err(format!("{name} is in no section"))
    }

    /// The arguments of a function: name and type.
    ///
    /// Errors: no such function.
    fn arguments(&self, function: &str) -> Result<Vec<(&'a [u8], u32)>, BtfError> {
        for start in &self.starts[1..] {
            let t = self.at(*start as usize)?;
            if t.kind == KIND_FUNC && self.name(t.name) == function.as_bytes() {
                let prototype = self.of_id(t.refers)?;
                let argument = |i: usize| {
                    let at = prototype.body + i * 8;
                    Ok((self.name(word(self.types, at)?), word(self.types, at + 4)?))
                };
                return (0..prototype.members as usize).map(argument).collect();
            }
        }
        err(format!("there is no function {function}"))
    }

    /// Whether there is a function of this name.
    pub fn has_function(&self, function: &str) -> bool {
        self.arguments(function).is_ok()
    }

    /// Translates for a probe at the entry of `function` `ARGUMENT->FIELD.FIELD->FIELD`, with its
    /// type: `+8(+16($arg1)):u64`.
    ///
    /// Errors: no such function, argument or field; what is no number in the end.
    pub fn fetch(&self, function: &str, expression: &str) -> Result<String, BtfError> {
        let wrong = |what: &str| err(format!("{expression}: {what}"));
        let start = expression.find(['-', '.']).unwrap_or(expression.len());
        let (argument, mut rest) = expression.split_at(start);
        let arguments = self.arguments(function)?;
        let Some(number) = arguments.iter().position(|a| a.0 == argument.as_bytes()) else {
            return err(format!("{function} has no argument {argument}"));
        };
        let (mut text, mut id) = (format!("$arg{}", number + 1), arguments[number].1);
        // Where in what `text` points to, once that has been looked into; in bits.
        let mut place: Option<u64> = None;
        let mut width = None;
        while !rest.is_empty() {
            let pointer = rest.strip_prefix("->");
            let Some(names) = pointer.or(rest.strip_prefix('.')) else {
                return wrong("wanted `->` or `.`");
            };
            let mut inside = self.resolved(id)?;
            if pointer.is_some() {
                if inside.kind != KIND_PTR {
                    return wrong("`->` behind what is no pointer");
                }
                inside = self.resolved(inside.refers)?;
                if let Some(bits) = place {
                    text = format!("+{}({text})", bits / 8);
                }
                place = Some(0);
            }
            let Some(bits) = place else { return wrong("`.` behind an argument") };
            let end = names.find(['-', '.']).unwrap_or(names.len());
            let Some(member) = self.member(&inside, &names.as_bytes()[..end], 0)? else {
                return wrong(&format!("there is no {}", &names[..end]));
            };
            (place, width, id) = (Some(bits + member.offset), member.width, member.id);
            rest = &names[end..];
        }
        let kind = match (width, place) {
            (Some(width), Some(bits)) => format!("b{width}@{}/32", bits % 32),
            _ => match self.number(id)? {
                Some(kind) => kind,
                None => return wrong("this is no number"),
            },
        };
        match (place, width) {
            (Some(bits), Some(_)) => Ok(format!("+{}({text}):{kind}", bits / 32 * 4)),
            (Some(bits), None) => Ok(format!("+{}({text}):{kind}", bits / 8)),
            (None, _) => Ok(format!("{text}:{kind}")),
        }
    }

    /// A type as probes call it, if it is a number or an address: `s32`.
    fn number(&self, id: u32) -> Result<Option<String>, BtfError> {
        const SIGNED: u32 = 1;
        let t = self.resolved(id)?;
        let signed = match t.kind {
            KIND_INT => word(self.types, t.body)? >> 24 & SIGNED != 0,
            KIND_ENUM => false,
            KIND_PTR => return Ok(Some("x64".into())),
            _ => return Ok(None),
        };
        let known = matches!(t.refers, 1 | 2 | 4 | 8);
        Ok(known.then(|| format!("{}{}", if signed { 's' } else { 'u' }, 8 * t.refers)))
    }

    /// A term of an expression: a number, `%VARIABLE` of each CPU, `STRUCT.FIELD`, or the bytes of a `#STRUCT`.
    fn term(&self, term: &str) -> Result<i64, BtfError> {
        if let Ok(number) = term.parse::<u32>() {
            return Ok(number.into());
        }
        if let Some(structure) = term.strip_prefix('#') {
            return Ok(self.structure(structure)?.refers.into());
        }
        let place = match term.strip_prefix('%') {
            Some(variable) => self.percpu(variable)?,
            None => self.offset(term)?,
        };
        Ok(place as i64)
    }

    /// `text` with each `{TERM+TERM-TERM…}` replaced by its number (which may be negative). A term is
    /// an offset `STRUCT.FIELD`, the place `%VARIABLE` in a CPU's area, the size of a `#STRUCT`, or a number.
    pub fn expand(&self, text: &str) -> Result<String, BtfError> {
        let mut done = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((place, tail)) = after.split_once('}') else {
                return err(format!("{text}: `{{` without `}}`"));
            };
            let mut number = 0;
            for added in place.split('+') {
                let mut terms = added.split('-');
                number += self.term(terms.next().unwrap_or_default())?;
                for taken in terms {
                    number -= self.term(taken)?;
                }
            }
            done += before;
            done += &number.to_string();
            rest = tail;
        }
        Ok(done + rest)
    }
}

impl Type {
    /// Bytes after the common three words.
    fn body_len(&self) -> Result<usize, BtfError> {
        let n = self.members as usize;
        match self.kind {
            KIND_INT | KIND_VAR | 17 => Ok(4),
            3 => Ok(12),
            KIND_STRUCT | KIND_UNION | KIND_DATASEC | 19 => Ok(12 * n),
            KIND_ENUM | 13 => Ok(8 * n),
            KIND_PTR | 7..=KIND_FUNC | 16 | 18 => Ok(0),
            kind => err(format!("kind {kind} of type is not known")),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Types and strings by hand.
    #[derive(Default)]
    struct Make {
        types: Vec<u8>,
        strings: Vec<u8>,
    }

    impl Make {
        fn new() -> Make {
            Make { types: Vec::new(), strings: vec![0] }
        }
        fn name(&mut self, name: &str) -> u32 {
            if name.is_empty() {
                return 0;
            }
            let at = self.strings.len() as u32;
            self.strings.extend_from_slice(name.as_bytes());
            self.strings.push(0);
            at
        }
        fn words(&mut self, words: &[u32]) {
            words.iter().for_each(|w| self.types.extend_from_slice(&w.to_le_bytes()));
        }
        fn plain(&mut self, name: &str, kind: u32, refers: u32, body: &[u32]) {
            let name = self.name(name);
            self.words(&[name, kind << 24, refers]);
            self.words(body);
        }
        fn compound(
            &mut self,
            name: &str,
            kind: u32,
            bit_fields: bool,
            members: &[(&str, u32, u32)],
        ) {
            let name = self.name(name);
            self.words(&[name, kind << 24 | u32::from(bit_fields) << 31 | members.len() as u32, 0]);
            for (name, id, offset) in members {
                let name = self.name(name);
                self.words(&[name, *id, *offset]);
            }
        }
        fn bytes(&self) -> Vec<u8> {
            let mut b = vec![0x9f, 0xeb, 1, 0];
            for w in
                [24, 0, self.types.len() as u32, self.types.len() as u32, self.strings.len() as u32]
            {
                b.extend_from_slice(&w.to_le_bytes());
            }
            b.extend_from_slice(&self.types);
            b.extend_from_slice(&self.strings);
            b
        }
    }

    fn sample() -> Vec<u8> {
        let mut m = Make::new();
        m.plain("int", 1, 4, &[32]); // 1
        m.compound("avg", KIND_STRUCT, false, &[("sum", 1, 0), ("util", 1, 64)]); // 2
        m.plain("", 10, 2, &[]); // 3: const avg
        m.plain("avg_t", 8, 3, &[]); // 4: typedef
        m.compound("", KIND_UNION, false, &[("x", 1, 0), ("y", 1, 32)]); // 5: nameless
        m.plain("", 3, 0, &[1, 1, 8]); // 6: array
        m.plain("thing", 7, 0, &[]); // 7: forward declaration of the same name
        m.compound(
            "thing",
            KIND_STRUCT,
            true,
            &[("pid", 1, 32), ("", 5, 128), ("avg", 4, 512), ("flag", 1, 1 << 24 | 3)],
        ); // 8
        m.bytes()
    }

    #[test]
    fn offsets_go_through_names_typedefs_and_nameless_unions() {
        let bytes = sample();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.offset("thing.pid"), Ok(4));
        assert_eq!(btf.offset("thing.x"), Ok(16));
        assert_eq!(btf.offset("thing.y"), Ok(20));
        assert_eq!(btf.offset("thing.avg"), Ok(64));
        assert_eq!(btf.offset("thing.avg.util"), Ok(72));
        assert_eq!(
            btf.expand("pid=+{thing.pid-thing.avg.util}($arg1) {avg.util}"),
            Ok("pid=+-68($arg1) 8".into())
        );
        assert_eq!(btf.expand("nothing"), Ok("nothing".into()));
    }

    #[test]
    fn variables_of_each_cpu_lie_in_their_section() {
        let mut m = Make::new();
        m.plain("int", 1, 4, &[32]); // 1
        m.compound("menu", KIND_STRUCT, false, &[("bucket", 1, 32), ("ptr", 1, 96)]); // 2
        m.plain("menus", KIND_VAR, 2, &[0]); // 3
        m.plain("devs", KIND_VAR, 2, &[0]); // 4
        m.compound(".data..percpu", KIND_DATASEC, false, &[]); // 5: two variables, by hand
        let at = m.types.len() - 8;
        m.types[at..at + 4].copy_from_slice(&(KIND_DATASEC << 24 | 2).to_le_bytes());
        m.words(&[3, 4096, 16, 4, 64, 16]);
        let bytes = m.bytes();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.expand("x=+{%menus+menu.ptr+8-%devs}($arg2)"), Ok("x=+4052($arg2)".into()));
        assert_eq!(btf.expand("{%devs-%menus}"), Ok("-4032".into()));
        assert!(btf.expand("{%none}").is_err() && btf.expand("{}").is_err());
    }

    /// `kick(struct rq *rq, int why, bool sure)` with an rq that points to a task.
    pub(crate) fn sample_of_functions() -> Vec<u8> {
        let mut m = Make::new();
        m.plain("int", KIND_INT, 4, &[1 << 24 | 32]); // 1
        m.plain("u64", KIND_INT, 8, &[64]); // 2
        m.plain("bool", KIND_INT, 1, &[4 << 24 | 8]); // 3
        m.compound("se", KIND_STRUCT, false, &[("load", 2, 0), ("vruntime", 2, 64)]); // 4
        m.compound(
            "task",
            KIND_STRUCT,
            true,
            &[("pid", 1, 32), ("se", 4, 128), ("on", 1, 2 << 24 | 69)],
        ); // 5
        m.plain("", KIND_PTR, 5, &[]); // 6
        m.plain("rcu", 18, 6, &[]); // 7: a type tag
        m.compound("", KIND_UNION, false, &[("donor", 7, 0), ("curr", 7, 0)]); // 8
        m.compound("rq", KIND_STRUCT, false, &[("cpu", 1, 0), ("", 8, 64)]); // 9
        m.plain("", KIND_PTR, 9, &[]); // 10
        let names = ["rq", "why", "sure"].map(|n| m.name(n));
        m.plain("", 13, 0, &[names[0], 10, names[1], 1, names[2], 3]); // 11
        let at = m.types.len() - 6 * 4 - 8;
        m.types[at..at + 4].copy_from_slice(&(13 << 24 | 3_u32).to_le_bytes());
        m.plain("kick", KIND_FUNC, 11, &[]); // 12
        m.bytes()
    }

    #[test]
    fn expressions_are_read_through_pointers() {
        let bytes = sample_of_functions();
        let btf = Btf::parse(&bytes).unwrap();
        let fetch = |text: &str| btf.fetch("kick", text).map_err(|e| e.to_string());
        assert_eq!(fetch("why"), Ok("$arg2:s32".into()));
        assert_eq!(fetch("sure"), Ok("$arg3:u8".into()));
        assert_eq!(fetch("rq"), Ok("$arg1:x64".into()));
        assert_eq!(fetch("rq->cpu"), Ok("+0($arg1):s32".into()));
        assert_eq!(fetch("rq->curr"), Ok("+8($arg1):x64".into()));
        assert_eq!(fetch("rq->curr->se.vruntime"), Ok("+24(+8($arg1)):u64".into()));
        assert_eq!(fetch("rq->curr->on"), Ok("+8(+8($arg1)):b2@5/32".into()));
        for (text, what) in [
            ("rq->curr->se", "rq->curr->se: this is no number"),
            ("rq->none", "rq->none: there is no none"),
            ("rq.cpu", "rq.cpu: `.` behind an argument"),
            ("why->cpu", "why->cpu: `->` behind what is no pointer"),
            ("rq-cpu", "rq-cpu: wanted `->` or `.`"),
            ("me", "kick has no argument me"),
        ] {
            assert_eq!(fetch(text), Err(format!("kernel types: {what}")));
        }
        assert!(btf.fetch("kiss", "rq").is_err());
        assert!(btf.has_function("kick") && !btf.has_function("task"));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let bytes = sample();
        let btf = Btf::parse(&bytes).unwrap();
        let fault = |path: &str| btf.offset(path).unwrap_err().to_string();
        assert_eq!(fault("task.pid"), "kernel types: there is no structure task");
        assert_eq!(fault("thing.z"), "kernel types: thing.z: there is no z in it");
        assert_eq!(fault("thing.pid.x"), "kernel types: thing.pid.x: there is no x in it");
        assert_eq!(fault("thing.flag"), "kernel types: thing.flag: flag is a bit field");
        assert_eq!(fault("thing"), "kernel types: thing: wanted STRUCTURE.FIELD");
        assert!(btf.expand("{thing.pid").is_err());
    }

    #[test]
    fn a_damaged_file_is_an_error_or_harmless() {
        let good = sample();
        for end in 0..good.len() {
            assert!(Btf::parse(&good[..end]).is_err(), "cut at {end}");
        }
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                if let Ok(btf) = Btf::parse(&bad) {
                    let _ = btf.offset("thing.avg.util");
                }
            }
        }
        let mut unknown = Make::new();
        unknown.plain("new", 31, 0, &[]);
        assert_eq!(
            Btf::parse(&unknown.bytes()).err(),
            Some(BtfError("kind 31 of type is not known".into()))
        );
    }

    #[test]
    fn a_typedef_of_itself_ends() {
        let mut m = Make::new();
        m.plain("loop", 8, 1, &[]);
        m.compound("s", KIND_STRUCT, false, &[("a", 1, 0)]);
        let bytes = m.bytes();
        assert!(Btf::parse(&bytes).unwrap().offset("s.a.b").is_err());
        // A nameless member of its own type: bounded too.
        let mut m = Make::new();
        m.compound("s", KIND_STRUCT, false, &[("", 1, 0)]);
        let bytes = m.bytes();
        assert!(Btf::parse(&bytes).unwrap().offset("s.a").is_err());
    }

    /// The kernel that runs the tests, where it has type information: `se` and `pid` are in
    /// every `task_struct`, and `sched_entity` lies within it.
    #[test]
    fn this_kernels_types_are_understood() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let btf = Btf::parse(&bytes).unwrap();
        let (se, avg) =
            (btf.offset("task_struct.se").unwrap(), btf.offset("sched_entity.avg").unwrap());
        assert_eq!(btf.offset("task_struct.se.avg"), Ok(se + avg));
        assert_eq!(avg % 64, 0, "sched_avg is cache-aligned");
        assert!(btf.offset("task_struct.pid").unwrap() > se);
    }
}
