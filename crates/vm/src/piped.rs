//! `risetime vm shell` whose input is a pipe or a file: a line at a time, each when the guest asks.
//!
//! ```text
//! guest  / # ▮            asks              host  sends a line, or at the end of the input: exit
//!        freq             echoes it               leaves that out
//!        …: 600000        answers                 prints it
//!        / # ▮            asks again              sends the next one
//! ```
//!
//! (What is sent before the console is open is lost: that is why.) What the guest says before it asks
//! for the first time, its kernel's words and the help, is shown only if it never does. The first command that
//! fails, which the prompt then says (`/ (failed) # `), is the last one.

use std::io::{self, BufRead, Read, Write};

/// A console gives a line of at most 4095 bytes to whoever reads it.
const MAX_LINE: usize = 4000;

/// Reason for which a conversation ended early.
#[derive(Debug)]
pub(crate) enum Broken {
    /// A line of the input that cannot be sent: its number from 1, and what is wrong.
    Input(usize, String),
    /// The input, or what the guest says.
    Here(io::Error),
    /// The output.
    Out(io::Error),
    /// The command in this line of the input, from 1, failed.
    Failed(usize, String),
    /// The guest ended, having said this, before it asked for anything.
    NeverAsked(String),
}

/// Sends the lines of `input` to the guest, which is heard in `said` and spoken to in `to`, and prints its
/// answers on `out`, until it ends.
///
/// Errors: see [`Broken`].
pub(crate) fn converse(
    said: &mut impl Read,
    to: &mut impl Write,
    input: impl BufRead,
    out: &mut impl Write,
) -> Result<(), Broken> {
    let mut input = input.split(b'\n').enumerate();
    // The line that is being said, all that was said before the first question, and whether the next
    // line is an echo.
    let (mut line, mut before, mut asked, mut echo) = (Vec::new(), Vec::new(), false, false);
    // The line that was sent last, by its number; the one that failed.
    let (mut sent, mut failed) = (None, None);
    // What the kernel says of being switched off is no answer.
    let mut leaves = false;
    let mut chunk = [0; 4096];
    loop {
        let n = match said.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Broken::Here(e)),
        };
        for byte in chunk[..n].iter().filter(|b| **b != b'\r') {
            line.push(*byte);
            if *byte != b'\n' {
                continue;
            }
            if !asked {
                before.append(&mut line);
            } else if !std::mem::take(&mut echo) && !leaves {
                out.write_all(&line).map_err(Broken::Out)?;
            }
            line.clear();
        }
        out.flush().map_err(Broken::Out)?;
        if let Some(fine) = question(&line) {
            (asked, echo) = (true, true);
            line.clear();
            failed = sent.take().filter(|_| !fine);
            let mut next = match input.next().filter(|_| failed.is_none()) {
                Some((i, bytes)) => {
                    let bytes = command(bytes.map_err(Broken::Here)?);
                    let bytes = bytes.map_err(|what| Broken::Input(i + 1, what))?;
                    sent = Some((i + 1, String::from_utf8_lossy(&bytes).into_owned()));
                    bytes
                }
                None => b"exit".to_vec(),
            };
            leaves = matches!(next.trim_ascii(), b"exit" | b"poweroff");
            next.push(b'\n');
            // A guest that has ended hears nothing more; what it said last is still to come.
            let _ = to.write_all(&next).and_then(|()| to.flush());
        }
    }
    if !asked {
        before.append(&mut line);
        return Err(Broken::NeverAsked(String::from_utf8_lossy(&before).into_owned()));
    }
    if !leaves {
        out.write_all(&line).map_err(Broken::Out)?;
    }
    out.flush().map_err(Broken::Out)?;
    failed.map_or(Ok(()), |(line, command)| Err(Broken::Failed(line, command)))
}

/// Whether it is the shell's prompt, and if so, whether the command before it went well: the directory it is in,
/// ` (failed)` or not, and ` # `. (An answer with a line that begins so is taken for one; nothing in `/sys` or
/// `/proc` does.)
fn question(line: &[u8]) -> Option<bool> {
    let said = line.strip_suffix(b" # ")?;
    let path = said.strip_suffix(b" (failed)").unwrap_or(said);
    (path.first() == Some(&b'/') && !path.contains(&b' ')).then_some(path == said)
}

/// A line of the input as it may be sent: to a console, some bytes are keys.
fn command(mut line: Vec<u8>) -> Result<Vec<u8>, String> {
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    match line.iter().find(|b| b.is_ascii_control() && **b != b'\t') {
        Some(b) => Err(format!("has the control character {b:#04x}")),
        None if line.len() > MAX_LINE => {
            Err(format!("is {} bytes long, wanted at most {MAX_LINE}", line.len()))
        }
        None => Ok(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    /// A guest that answers each line that it hears by `obey`, which gives `None` to end; it speaks in
    /// pieces of `piece` bytes.
    struct Guest<F> {
        obey: F,
        heard: Arc<Mutex<Vec<String>>>,
        seen: usize,
        says: VecDeque<u8>,
        piece: usize,
    }

    impl<F: FnMut(&str) -> Option<String>> Read for Guest<F> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            if self.says.is_empty() {
                let heard = self.heard.lock().unwrap();
                if let Some(line) = heard.get(self.seen) {
                    self.seen += 1;
                    self.says.extend(format!("{line}\r\n").bytes());
                    if let Some(answer) = (self.obey)(line) {
                        let failed = if answer.contains("no command") { " (failed)" } else { "" };
                        let answer = answer.replace('\n', "\r\n");
                        self.says.extend(format!("{answer}/{failed} # ").bytes());
                    }
                }
            }
            let n = self.says.len().min(self.piece).min(buf.len());
            self.says.drain(..n).zip(buf).for_each(|(b, to)| *to = b);
            Ok(n)
        }
    }

    struct Ear(Arc<Mutex<Vec<String>>>);

    impl Write for Ear {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let line = std::str::from_utf8(bytes).unwrap().strip_suffix('\n').unwrap();
            self.0.lock().unwrap().push(line.to_string());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Converses with a guest; returns what is printed, and the lines that the guest hears.
    fn talk(first: &str, input: &str, piece: usize) -> (Result<String, Broken>, Vec<String>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let obey = |line: &str| match line {
            "exit" => None,
            "" => Some(String::new()),
            "ask" => Some("what # is\n/a path # \n".to_string()),
            line => Some(format!("{line}: no command\n")),
        };
        let says = first.bytes().collect();
        let mut guest = Guest { obey, heard: Arc::clone(&heard), seen: 0, says, piece };
        let mut out = Vec::new();
        let done = converse(&mut guest, &mut Ear(Arc::clone(&heard)), input.as_bytes(), &mut out);
        let heard = heard.lock().unwrap().clone();
        (done.map(|()| String::from_utf8(out).unwrap()), heard)
    }

    #[test]
    fn each_line_waits_for_its_question_and_the_end_switches_off() {
        let boot = "[    0.1] a kernel\r\n\r\nhelp\r\n/ # ";
        for piece in [1, 3, 4096] {
            let (said, heard) = talk(boot, "ask\r\n\nask\n", piece);
            assert_eq!(said.unwrap(), "what # is\n/a path # \nwhat # is\n/a path # \n", "{piece}");
            assert_eq!(heard, ["ask", "", "ask", "exit"]);
        }
        let (said, heard) = talk(boot, "ask\nexit\nask\n", 4096);
        assert_eq!(said.unwrap(), "what # is\n/a path # \n");
        assert_eq!(heard, ["ask", "exit"], "who leaves is asked nothing more");
        let (_, heard) = talk(boot, "", 4096);
        assert_eq!(heard, ["exit"]);
    }

    #[test]
    fn the_first_command_that_fails_is_the_last() {
        let (said, heard) = talk("/ # ", "ask\n\nfalse\nask\n", 4096);
        let Err(Broken::Failed(line, command)) = said else { panic!("{said:?}") };
        assert_eq!((line, command.as_str()), (3, "false"));
        assert_eq!(heard, ["ask", "", "false", "exit"]);
        let (said, heard) = talk("/ # ", "false", 3);
        assert!(matches!(said, Err(Broken::Failed(1, _))), "{said:?}");
        assert_eq!(heard, ["false", "exit"]);
    }

    #[test]
    fn a_guest_that_never_asks_is_quoted() {
        let (said, heard) = talk("Kernel panic - not syncing\r\nend", "ask\n", 5);
        let Err(Broken::NeverAsked(words)) = said else { panic!("{said:?}") };
        assert_eq!((words.as_str(), heard.len()), ("Kernel panic - not syncing\nend", 0));
    }

    #[test]
    fn a_line_that_would_be_keys_is_not_sent() {
        let (said, heard) = talk("/ # ", "ask\na\u{4}b\n", 4096);
        let Err(Broken::Input(line, what)) = said else { panic!("{said:?}") };
        assert_eq!((line, what.as_str()), (2, "has the control character 0x04"));
        assert_eq!(heard, ["ask"]);
        let (said, _) = talk("/ # ", &"x".repeat(MAX_LINE + 1), 4096);
        assert!(matches!(said, Err(Broken::Input(1, _))), "{said:?}");
    }
}
