/** The colours of a plot. */
export type Theme = 'light' | 'dark';

export interface Palette {
  background: string;
  ink: string;
  /** Ticks, captions, reference lines. */
  muted: string;
  grid: string;
  /**
   * The first is ours, the second PyTorch's, the fourth JAX's (`partyColors`). Distinguishable with each common form of colour
   * blindness, and by lightness (after Okabe and Ito, 2008); each is readable as text on the background.
   */
  series: readonly string[];
}

const LIGHT: Palette = {
  background: '#ffffff',
  ink: '#1b1f24',
  muted: '#59626d',
  grid: '#dfe3e8',
  series: ['#0b67a8', '#b84a00', '#007a65', '#8f3f80', '#806200', '#4d5661', '#5747b8', '#a8265e'],
};

const DARK: Palette = {
  background: '#14171b',
  ink: '#e8eaed',
  muted: '#a3adb8',
  grid: '#30363d',
  series: ['#63b3ed', '#f39a55', '#3cc9a5', '#dc9bce', '#dcb83f', '#a9b4c0', '#aaa0f5', '#f596b8'],
};

export const PALETTES: Readonly<Record<Theme, Palette>> = { light: LIGHT, dark: DARK };

/** The palette by the names of CSS variables, for a plot inside a page that defines them. */
export const CSS_PALETTE: Palette = {
  background: 'var(--background)',
  ink: 'var(--ink)',
  muted: 'var(--muted)',
  grid: 'var(--grid)',
  series: LIGHT.series.map((_, index) => `var(--series-${index + 1})`),
};

/** The definitions that {@link CSS_PALETTE} refers to, for both themes. */
export function paletteVariables(): string {
  const define = (name: string, pick: (palette: Palette) => string) =>
    `  --${name}: light-dark(${pick(LIGHT)}, ${pick(DARK)});\n`;
  return [
    ':root {\n',
    define('background', (palette) => palette.background),
    define('ink', (palette) => palette.ink),
    define('muted', (palette) => palette.muted),
    define('grid', (palette) => palette.grid),
    ...LIGHT.series.map((_, index) => define(`series-${index + 1}`, (palette) => palette.series[index]!)),
    '}\n',
  ].join('');
}
