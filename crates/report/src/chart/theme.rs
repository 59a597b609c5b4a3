//! Colours. Series: M. Okabe and K. Ito, "Color Universal Design", 2008; without yellow on white.

use super::{Colour, Theme};

/// Red, green, blue.
pub(super) type Rgb = [u8; 3];

/// Series of a chart before colours come again.
const SERIES: usize = 6;

/// The colours of a theme.
pub(super) struct Palette {
    pub(super) paper: Rgb,
    pub(super) ink: Rgb,
    /// Text of less weight.
    pub(super) dim: Rgb,
    /// Lines of the grid.
    pub(super) grid: Rgb,
    series: [Rgb; SERIES],
}

const fn rgb(hex: u32) -> Rgb {
    [(hex >> 16) as u8, (hex >> 8) as u8, hex as u8]
}

/// Blue, vermillion, green, purple, orange, sky blue.
const LIGHT: Palette = Palette {
    paper: rgb(0xffffff),
    ink: rgb(0x1b1f24),
    dim: rgb(0x57606a),
    grid: rgb(0xdfe3e8),
    series: [
        rgb(0x0072b2),
        rgb(0xd55e00),
        rgb(0x009e73),
        rgb(0xcc79a7),
        rgb(0xe69f00),
        rgb(0x56b4e9),
    ],
};

/// Sky blue, orange, green, purple, yellow, vermillion: the lighter ones first.
const DARK: Palette = Palette {
    paper: rgb(0x14181d),
    ink: rgb(0xe6e9ec),
    dim: rgb(0x9aa4af),
    grid: rgb(0x2e353d),
    series: [
        rgb(0x56b4e9),
        rgb(0xe69f00),
        rgb(0x00b386),
        rgb(0xd98cb8),
        rgb(0xf0e442),
        rgb(0xe87130),
    ],
};

/// Dark to light: cividis (J. Nuñez and others, 2018), at six places.
const HEAT: [Rgb; 6] =
    [rgb(0x00224e), rgb(0x35456c), rgb(0x666970), rgb(0x948e77), rgb(0xc8b866), rgb(0xfee838)];

impl Palette {
    pub(super) const fn of(theme: Theme) -> &'static Palette {
        match theme {
            Theme::Light => &LIGHT,
            Theme::Dark => &DARK,
        }
    }

    pub(super) fn series(&self, colour: Colour) -> Rgb {
        match colour {
            Colour::Ink => self.ink,
            Colour::Nth(n) => self.series[n % SERIES],
        }
    }
}

/// Whether a colour is there for the second time, and has to be told from the first.
pub(super) fn again(colour: Colour) -> bool {
    matches!(colour, Colour::Nth(n) if n / SERIES % 2 == 1)
}

/// The colour of a value between the least (0) and the greatest (1), and that of text on it.
pub(super) fn heat(share: f64) -> (Rgb, Rgb) {
    let at = share.clamp(0.0, 1.0) * (HEAT.len() - 1) as f64;
    let i = (at as usize).min(HEAT.len() - 2);
    let mix = |c: usize| {
        let (low, high) = (f64::from(HEAT[i][c]), f64::from(HEAT[i + 1][c]));
        (low + (high - low) * (at - i as f64)).round() as u8
    };
    ([mix(0), mix(1), mix(2)], if share < 0.5 { rgb(0xffffff) } else { rgb(0x000000) })
}
