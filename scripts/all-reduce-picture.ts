// What `packages/collectives/README.md` begins with: the four ranks of its first program, before and after.

const colors = {
  light: { text: '#1f2328', line: '#8c959f', before: '#dbeafe', after: '#dcfce7' },
  dark: { text: '#e6edf3', line: '#6e7681', before: '#1e3a5f', after: '#1d4a32' },
} as const;

const ranks = [0, 1, 2, 3];
const elements = 4;
const cell = 44;
const rowHeight = 64;
const left = { before: 110, after: 560 };

/** Each rank's tensor, full of its rank + 1, and the sum of all on each. */
export function allReducePicture(theme: keyof typeof colors): string {
  const { text, line, before, after } = colors[theme];
  const sum = ranks.reduce((total, rank) => total + rank + 1, 0);
  const height = ranks.length * rowHeight + 40;
  const middle = 40 + (ranks.length * rowHeight) / 2 - 10;
  const tensor = (x: number, rank: number, value: number, fill: string) =>
    Array.from({ length: elements }, (_, i) => {
      const [at, y] = [x + i * cell, 40 + rank * rowHeight];
      return (
        `<rect x="${at}" y="${y}" width="${cell - 4}" height="${cell - 4}" rx="4" fill="${fill}" stroke="${line}"/>` +
        `<text x="${at + cell / 2 - 2}" y="${y + 26}" text-anchor="middle">${value}</text>`
      );
    }).join('');
  const end = left.before + elements * cell + 6;
  const rows = ranks.map((rank) => {
    const y = 40 + rank * rowHeight + 20;
    return [
      `<text x="90" y="${y + 6}" text-anchor="end">rank ${rank}</text>`,
      tensor(left.before, rank, rank + 1, before),
      `<path d="M${end} ${y} L360 ${middle} M500 ${middle} L${left.after - 10} ${y}" stroke="${line}" fill="none"/>`,
      tensor(left.after, rank, sum, after),
    ].join('\n');
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 ${height}" width="780" height="${height}" ` +
      `font-family="system-ui, sans-serif" font-size="16" fill="${text}" role="img">`,
    `<title>allReduce: the sum of all ranks' tensors, on all ranks</title>`,
    ...rows,
    `<rect x="360" y="${middle - 24}" width="140" height="48" rx="8" fill="none" stroke="${line}"/>`,
    `<text x="430" y="${middle + 6}" text-anchor="middle">allReduce(x)</text>`,
    '</svg>\n',
  ].join('\n');
}
