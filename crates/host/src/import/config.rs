//! The configuration of a kernel (`/boot/config-*`, `/proc/config.gz`): its HZ.

use super::Input;
use super::draft::Draft;
use risetime_model::InputError;

/// Whether the input is a kernel configuration.
pub(super) fn tells(input: &Input) -> bool {
    let set = |line: &str| line.starts_with("CONFIG_") || line.starts_with("# CONFIG_");
    input.text().is_some_and(|text| text.lines().take(200).filter(|l| set(l)).count() > 0)
}

/// Reads `CONFIG_HZ`.
pub(super) fn read(input: &Input) -> Result<Draft, InputError> {
    let text = input.text().unwrap_or_default();
    let wanted = |(_, line): &(usize, &str)| line.starts_with("CONFIG_HZ=");
    let Some((n, line)) = text.lines().enumerate().find(wanted) else {
        return Err(InputError::new(&*input.name, "has no CONFIG_HZ=…: no ticks to read"));
    };
    let hz = line["CONFIG_HZ=".len()..].trim().parse().ok().filter(|hz| (24..=10_000).contains(hz));
    let Some(hz) = hz else {
        let what = "CONFIG_HZ is none, wanted 24 to 10000";
        return Err(InputError::new(format!("{}:{}", input.name, n + 1), what));
    };
    let mut draft = Draft { hz: Some(hz), ..Draft::default() };
    draft.source("hz", format!("{}: CONFIG_HZ", input.name));
    Ok(draft)
}
